# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/ucx.c common/adapter.c common/adapter_net.c common/ucx.c common/rdma_device.c common/ucx_path.c common/ucx_rma.c common/mailbox.c common/mailbox_send.c
LAYER_PKGS := ucx
