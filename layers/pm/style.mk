# SPDX-License-Identifier: BSD-3-Clause
OWN_SOURCES := pm/pm.c pm/pin.c pm/remote.c
ADAPTER_SOURCES := pm/adapter.c pm/send.c pm/long.c pm/memory.c
include $(LAYERS_ROOT)/wire/style.mk
