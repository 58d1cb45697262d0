# SPDX-License-Identifier: BSD-3-Clause
# A substrate's file includes adapter.c and those sources of the wire that RDMA_UNIT names.
OWN_SOURCES :=
ADAPTER_SOURCES := rdma/$(WIRE).c wire/mail.c wire/mailbox.c wire/mailbox_send.c
include $(LAYERS_ROOT)/wire/style.mk
LAYER_SOURCES := $(filter-out $(RDMA_UNIT),$(LAYER_SOURCES))
