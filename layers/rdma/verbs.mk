# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/verbs.c rdma/verbs_device.c rdma/verbs_memory.c rdma/verbs_queue.c rdma/verbs_flow.c common/adapter.c common/adapter_net.c common/rdma_device.c common/mailbox.c common/mailbox_send.c
LAYER_PKGS := libibverbs
