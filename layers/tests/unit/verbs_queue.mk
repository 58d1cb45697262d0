# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := wire/verbs/queue.c wire/verbs/memory.c wire/verbs/device.c wire/rdma_device.c kit/adapter.c kit/adapter_net.c
TEST_PKGS := libibverbs
