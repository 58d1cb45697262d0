# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/common/wire_ofi.mk
LAYER_SOURCES := fm/ofi.c fm/adapter.c fm/fm.c common/fiber.c common/fiber_overflow.c common/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
