# SPDX-License-Identifier: BSD-3-Clause
OWN_SOURCES := bip/bip.c bip/bip_send.c bip/bip_receive.c
ADAPTER_SOURCES := bip/adapter.c
include $(LAYERS_ROOT)/wire/style.mk
