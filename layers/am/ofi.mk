# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ofi/wire.mk
LAYER_SOURCES := am/ofi.c am/adapter.c am/messages.c am/calls.c am/am.c am/am_poll.c am/am_send.c am/am_xfer.c am/am_grant.c wire/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
