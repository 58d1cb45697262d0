# SPDX-License-Identifier: BSD-3-Clause
OWN_SOURCES := am/am.c am/am_poll.c am/am_send.c am/am_xfer.c am/am_grant.c
ADAPTER_SOURCES := am/adapter.c am/messages.c am/calls.c
include $(LAYERS_ROOT)/wire/style.mk
