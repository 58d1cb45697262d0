# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := wire/ucx/landing.c
TEST_PKGS := ucx
