# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/ucx.c kit/adapter.c kit/adapter_net.c wire/ucx/ucx.c wire/rdma_device.c wire/ucx/path.c wire/ucx/rma.c wire/mailbox.c wire/mailbox_send.c
LAYER_PKGS := ucx
