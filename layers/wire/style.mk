# SPDX-License-Identifier: BSD-3-Clause
# A style on the wire that WIRE names: the style's own style.mk includes this. STYLE_SOURCES are its own API and the wire below, for
# tests as well.
include $(LAYERS_ROOT)/wire/$(WIRE)/wire.mk
STYLE_SOURCES := $(OWN_SOURCES) $(WIRE_SOURCES)
LAYER_SOURCES := $(ADAPTER_SOURCES) wire/style.c $(STYLE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
LAYER_CFLAGS := $(WIRE_CFLAGS)
LAYER_LIBS := $(WIRE_LIBS)
