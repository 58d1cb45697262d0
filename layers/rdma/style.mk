# SPDX-License-Identifier: BSD-3-Clause
# The style on a wire: a substrate's .mk sets WIRE and includes this. Its file includes adapter.c and those sources of the wire that
# RDMA_UNIT names.
include $(LAYERS_ROOT)/wire/$(WIRE)/wire.mk
LAYER_SOURCES := rdma/$(WIRE).c wire/mail.c wire/mailbox.c wire/mailbox_send.c wire/style.c $(filter-out $(RDMA_UNIT),$(WIRE_SOURCES))
LAYER_PKGS := $(WIRE_PKGS)
LAYER_CFLAGS := $(WIRE_CFLAGS)
LAYER_LIBS := $(WIRE_LIBS)
