# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/ucx/wire.mk
include $(LAYERS_ROOT)/tests/styles/frame.mk
TEST_SOURCES := $(WIRE_SOURCES) $(FRAME_SOURCES) tests/ranks/ucx_leaks.c bip/bip.c bip/bip_send.c bip/bip_receive.c tests/styles/bip.c
TEST_PKGS := $(WIRE_PKGS)
