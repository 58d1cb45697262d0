# SPDX-License-Identifier: BSD-3-Clause
OWN_SOURCES := vmmc/vmmc.c vmmc/memory.c vmmc/redirect.c vmmc/utlb.c
ADAPTER_SOURCES := vmmc/adapter.c vmmc/onesided.c wire/mail.c wire/mailbox.c wire/mailbox_send.c
include $(LAYERS_ROOT)/wire/style.mk
