# SPDX-License-Identifier: BSD-3-Clause
# The wire on UCX: a style's style.mk includes this.
WIRE_SOURCES := wire/ucx/wire.c wire/ucx/memory.c wire/packets.c wire/ucx/ucx.c wire/ucx/path.c wire/ucx/rma.c wire/rdma_device.c \
	kit/adapter.c kit/adapter_net.c
WIRE_PKGS := ucx
WIRE_CFLAGS := -iquote $(LAYERS_ROOT)/wire/ucx
WIRE_LIBS :=
WIRE_TEST_SOURCES := tests/ranks/ucx_leaks.c
WIRE_TEST_LIBS :=
