# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := native/dgram.c common/adapter.c common/adapter_net.c common/ofi.c common/rdma_device.c common/ofi_params.c
LAYER_PKGS := libfabric
