# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := tests/unit/support/pair.c
TEST_PKGS := ucx
# Not linked with it: UCX would be loaded, and read its variables, before this program sets them.
TEST_LIBS := -Wl,--as-needed
