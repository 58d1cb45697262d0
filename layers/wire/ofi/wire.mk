# SPDX-License-Identifier: BSD-3-Clause
# The wire on libfabric: a style's style.mk includes this.
WIRE_SOURCES := wire/ofi/wire.c wire/ofi/flow.c wire/ofi/memory.c wire/packets.c wire/ofi/ofi.c wire/rdma_device.c \
	wire/ofi/params.c wire/ofi/rma.c kit/adapter.c kit/adapter_net.c
WIRE_PKGS := libfabric
WIRE_CFLAGS := -iquote $(LAYERS_ROOT)/wire/ofi
WIRE_LIBS :=
WIRE_TEST_SOURCES :=
WIRE_TEST_LIBS :=
