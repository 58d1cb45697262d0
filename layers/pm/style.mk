# SPDX-License-Identifier: BSD-3-Clause
# The style on a wire: a substrate's .mk sets WIRE and includes this. STYLE_SOURCES are its own API and the wire below, for tests as well.
include $(LAYERS_ROOT)/wire/$(WIRE)/wire.mk
STYLE_SOURCES := pm/pm.c pm/pin.c pm/remote.c $(WIRE_SOURCES)
LAYER_SOURCES := pm/$(WIRE).c pm/adapter.c pm/send.c pm/long.c pm/memory.c wire/style.c $(STYLE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
LAYER_CFLAGS := $(WIRE_CFLAGS)
LAYER_LIBS := $(WIRE_LIBS)
