# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := common/ucx_landing.c
TEST_PKGS := ucx
