# SPDX-License-Identifier: BSD-3-Clause
# The wire on libfabric: a layer's .mk includes this and adds WIRE_SOURCES and WIRE_PKGS to its own.
WIRE_SOURCES := common/wire_ofi.c common/wire_ofi_flow.c common/wire_ofi_memory.c common/wire_packets.c common/ofi.c common/rdma_device.c \
	common/ofi_params.c common/ofi_rma.c common/adapter.c common/adapter_net.c
WIRE_PKGS := libfabric
