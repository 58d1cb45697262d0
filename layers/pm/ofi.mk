# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ofi/wire.mk
LAYER_SOURCES := pm/ofi.c pm/adapter.c pm/send.c pm/long.c pm/memory.c pm/pm.c pm/pin.c pm/remote.c wire/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
