# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/vmmc/style.mk
include $(LAYERS_ROOT)/tests/styles/frame.mk
TEST_SOURCES := $(STYLE_SOURCES) $(FRAME_SOURCES) tests/styles/vmmc.c
