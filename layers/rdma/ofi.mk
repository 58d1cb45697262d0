# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/ofi.c rdma/ofi_flow.c kit/adapter.c kit/adapter_net.c wire/ofi/ofi.c wire/rdma_device.c wire/ofi/params.c wire/ofi/rma.c wire/mailbox.c wire/mailbox_send.c
LAYER_PKGS := libfabric
