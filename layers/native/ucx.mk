# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := native/ucx.c common/adapter.c common/adapter_net.c common/ucx.c common/rdma_device.c common/ucx_path.c common/ucx_landing.c
LAYER_PKGS := ucx
LAYER_CFLAGS := -fno-plt
