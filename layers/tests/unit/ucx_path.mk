# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := common/ucx_path.c common/adapter.c
TEST_PKGS := ucx
