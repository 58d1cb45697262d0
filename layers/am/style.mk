# SPDX-License-Identifier: BSD-3-Clause
# The style on a wire: a substrate's .mk sets WIRE and includes this. STYLE_SOURCES are its own API and the wire below, for tests as well.
include $(LAYERS_ROOT)/wire/$(WIRE)/wire.mk
STYLE_SOURCES := am/am.c am/am_poll.c am/am_send.c am/am_xfer.c am/am_grant.c $(WIRE_SOURCES)
LAYER_SOURCES := am/$(WIRE).c am/adapter.c am/messages.c am/calls.c wire/style.c $(STYLE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
LAYER_CFLAGS := $(WIRE_CFLAGS)
LAYER_LIBS := $(WIRE_LIBS)
