# SPDX-License-Identifier: BSD-3-Clause
OWN_SOURCES := fm/fm.c kit/fiber.c kit/fiber_overflow.c
ADAPTER_SOURCES := fm/adapter.c
include $(LAYERS_ROOT)/wire/style.mk
