# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/peregrine/engine/sources.mk
TEST_SOURCES := $(PGR_SOURCES) peregrine/engine/tests/support/alone.c
TEST_PKGS := $(PGR_PKGS)
TEST_LIBS := -Wl,--wrap=malloc -Wl,--wrap=calloc
