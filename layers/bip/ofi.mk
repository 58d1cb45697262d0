# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/common/wire_ofi.mk
LAYER_SOURCES := bip/ofi.c bip/adapter.c bip/bip.c bip/bip_send.c bip/bip_receive.c common/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
