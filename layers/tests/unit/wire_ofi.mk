# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/common/wire_ofi.mk
TEST_SOURCES := $(WIRE_SOURCES) tests/wire/main.c tests/wire/rank.c tests/wire/end.c tests/wire/t_packets.c tests/wire/t_life.c \
	tests/wire/t_memory.c tests/conformance/hosts.c
TEST_PKGS := $(WIRE_PKGS)
