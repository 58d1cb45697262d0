# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := tests/unit/support/pair.c sockets/endpoint.c kit/adapter.c kit/adapter_net.c
