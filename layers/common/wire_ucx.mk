# SPDX-License-Identifier: BSD-3-Clause
# The wire on UCX: a layer's .mk includes this and adds WIRE_SOURCES and WIRE_PKGS to its own.
WIRE_SOURCES := common/wire_ucx.c common/wire_ucx_memory.c common/wire_packets.c common/ucx.c common/ucx_path.c common/ucx_rma.c common/rdma_device.c \
	common/adapter.c common/adapter_net.c
WIRE_PKGS := ucx
