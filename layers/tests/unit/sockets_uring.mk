# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := tests/unit/support/pair.c sockets/endpoint.c common/adapter.c common/adapter_net.c
