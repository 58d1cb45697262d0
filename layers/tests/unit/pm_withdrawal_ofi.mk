# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ofi/wire.mk
include $(LAYERS_ROOT)/tests/styles/frame.mk
TEST_SOURCES := $(WIRE_SOURCES) $(FRAME_SOURCES) pm/pm.c pm/pin.c pm/remote.c tests/styles/pm_withdrawal.c
TEST_PKGS := $(WIRE_PKGS)
