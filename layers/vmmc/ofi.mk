# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/common/wire_ofi.mk
LAYER_SOURCES := vmmc/ofi.c vmmc/adapter.c vmmc/onesided.c vmmc/mail.c vmmc/vmmc.c vmmc/memory.c vmmc/redirect.c vmmc/utlb.c \
	common/mailbox.c common/mailbox_send.c common/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
