# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/am/style.mk
include $(LAYERS_ROOT)/tests/styles/frame.mk
TEST_SOURCES := $(STYLE_SOURCES) $(FRAME_SOURCES) tests/styles/am.c tests/styles/am_end.c tests/styles/am_long.c tests/styles/am_refused.c tests/styles/am_stranger.c
