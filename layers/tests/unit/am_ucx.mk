# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ucx/wire.mk
include $(LAYERS_ROOT)/tests/styles/frame.mk
TEST_SOURCES := $(WIRE_SOURCES) $(FRAME_SOURCES) tests/ranks/ucx_leaks.c am/am.c am/am_poll.c am/am_send.c am/am_xfer.c am/am_grant.c tests/styles/am.c tests/styles/am_end.c tests/styles/am_long.c tests/styles/am_refused.c tests/styles/am_stranger.c
TEST_PKGS := $(WIRE_PKGS)
