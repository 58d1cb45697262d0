# SPDX-License-Identifier: BSD-3-Clause
# The frame of a style's tests: a test's .mk includes this and adds FRAME_SOURCES to its own.
include $(LAYERS_ROOT)/tests/ranks/ranks.mk
FRAME_SOURCES := $(RANKS_SOURCES) tests/styles/frame.c tests/styles/stranger.c tests/styles/guard.c
