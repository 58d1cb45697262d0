# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ucx/wire.mk
LAYER_SOURCES := bip/ucx.c bip/adapter.c bip/bip.c bip/bip_send.c bip/bip_receive.c wire/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
