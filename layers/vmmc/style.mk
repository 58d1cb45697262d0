# SPDX-License-Identifier: BSD-3-Clause
# The style on a wire: a substrate's .mk sets WIRE and includes this. STYLE_SOURCES are its own API and the wire below, for tests as well.
include $(LAYERS_ROOT)/wire/$(WIRE)/wire.mk
STYLE_SOURCES := vmmc/vmmc.c vmmc/memory.c vmmc/redirect.c vmmc/utlb.c $(WIRE_SOURCES)
LAYER_SOURCES := vmmc/$(WIRE).c vmmc/adapter.c vmmc/onesided.c wire/mail.c wire/mailbox.c wire/mailbox_send.c wire/style.c $(STYLE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
LAYER_CFLAGS := $(WIRE_CFLAGS)
LAYER_LIBS := $(WIRE_LIBS)
