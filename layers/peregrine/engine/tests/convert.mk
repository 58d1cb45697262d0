# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := peregrine/engine/base/convert.c
