# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/ofi.c rdma/ofi_flow.c common/adapter.c common/adapter_net.c common/ofi.c common/rdma_device.c common/ofi_params.c common/ofi_rma.c common/mailbox.c common/mailbox_send.c
LAYER_PKGS := libfabric
