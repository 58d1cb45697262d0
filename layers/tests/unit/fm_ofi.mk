# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ofi/wire.mk
include $(LAYERS_ROOT)/tests/styles/frame.mk
TEST_SOURCES := $(WIRE_SOURCES) $(FRAME_SOURCES) fm/fm.c kit/fiber.c kit/fiber_overflow.c tests/styles/fm.c
TEST_PKGS := $(WIRE_PKGS)
