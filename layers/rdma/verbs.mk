# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/verbs.c rdma/verbs_flow.c wire/verbs/device.c wire/verbs/memory.c wire/verbs/queue.c kit/adapter.c kit/adapter_net.c wire/rdma_device.c wire/mailbox.c wire/mailbox_send.c
LAYER_PKGS := libibverbs
