# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := wire/ucx/path.c kit/adapter.c
TEST_PKGS := ucx
