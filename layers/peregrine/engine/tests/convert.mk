# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := peregrine/engine/core/convert.c
