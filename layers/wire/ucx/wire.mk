# SPDX-License-Identifier: BSD-3-Clause
# The wire on UCX: a layer's .mk includes this and adds WIRE_SOURCES and WIRE_PKGS to its own.
WIRE_SOURCES := wire/ucx/wire.c wire/ucx/memory.c wire/packets.c wire/ucx/ucx.c wire/ucx/path.c wire/ucx/rma.c wire/rdma_device.c \
	kit/adapter.c kit/adapter_net.c
WIRE_PKGS := ucx
