# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := kit/adapter.c kit/adapter_net.c
