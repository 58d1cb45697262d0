# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/verbs.c rdma/verbs_device.c rdma/verbs_memory.c rdma/verbs_queue.c rdma/verbs_flow.c kit/adapter.c kit/adapter_net.c wire/rdma_device.c wire/mailbox.c wire/mailbox_send.c
LAYER_PKGS := libibverbs
