# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/tests/ranks/ranks.mk
TEST_SOURCES := $(RANKS_SOURCES) tests/sketches/end.c
