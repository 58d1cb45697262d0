# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ucx/wire.mk
LAYER_SOURCES := fm/ucx.c fm/adapter.c fm/fm.c kit/fiber.c kit/fiber_overflow.c wire/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
