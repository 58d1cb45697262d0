# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ofi/wire.mk
include $(LAYERS_ROOT)/tests/styles/frame.mk
TEST_SOURCES := $(WIRE_SOURCES) $(FRAME_SOURCES) vmmc/vmmc.c vmmc/memory.c vmmc/redirect.c vmmc/utlb.c tests/styles/vmmc.c
TEST_PKGS := $(WIRE_PKGS)
