# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := wire/mpi/which.c
TEST_PKGS := ompi-c
