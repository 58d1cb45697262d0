# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/peregrine/engine/sources.mk
LAYER_SOURCES := peregrine/udp.c peregrine/adapter.c kit/adapter.c $(PGR_SOURCES)
LAYER_PKGS := $(PGR_PKGS)
