# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := wire/rdma_device.c
