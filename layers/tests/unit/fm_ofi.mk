# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/common/wire_ofi.mk
include $(LAYERS_ROOT)/tests/ranks/ranks.mk
TEST_SOURCES := $(WIRE_SOURCES) $(RANKS_SOURCES) fm/fm.c common/fiber.c tests/styles/fm.c
TEST_PKGS := $(WIRE_PKGS)
