# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/common/wire_ucx.mk
LAYER_SOURCES := fm/ucx.c fm/adapter.c fm/fm.c common/fiber.c common/fiber_overflow.c common/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
