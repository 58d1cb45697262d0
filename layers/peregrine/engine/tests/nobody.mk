# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/peregrine/engine/sources.mk
TEST_SOURCES := $(PGR_SOURCES)
TEST_PKGS := $(PGR_PKGS)
