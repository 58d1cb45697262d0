# SPDX-License-Identifier: BSD-3-Clause
# The wire on verbs: a style's style.mk includes this.
WIRE_SOURCES := wire/verbs/wire.c wire/verbs/notes.c wire/verbs/remote.c wire/verbs/device.c wire/verbs/memory.c wire/verbs/queue.c wire/packets.c wire/rdma_device.c \
	kit/adapter.c kit/adapter_net.c
WIRE_PKGS := libibverbs
WIRE_CFLAGS := -iquote $(LAYERS_ROOT)/wire/verbs
WIRE_LIBS :=
WIRE_TEST_SOURCES :=
WIRE_TEST_LIBS :=
