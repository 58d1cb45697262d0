# SPDX-License-Identifier: BSD-3-Clause
# The wire on libfabric: a layer's .mk includes this and adds WIRE_SOURCES and WIRE_PKGS to its own.
WIRE_SOURCES := wire/ofi/wire.c wire/ofi/flow.c wire/ofi/memory.c wire/packets.c wire/ofi/ofi.c wire/rdma_device.c \
	wire/ofi/params.c wire/ofi/rma.c kit/adapter.c kit/adapter_net.c
WIRE_PKGS := libfabric
