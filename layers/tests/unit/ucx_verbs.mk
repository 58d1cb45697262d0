# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := tests/unit/support/pair.c
TEST_PKGS := ucx
