# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/$(WIRE)/wire.mk
include $(LAYERS_ROOT)/tests/ranks/ranks.mk
TEST_SOURCES := $(WIRE_SOURCES) $(RANKS_SOURCES) tests/wire/list.c tests/wire/end.c tests/wire/t_packets.c tests/wire/t_life.c \
	tests/wire/t_memory.c tests/wire/t_rights.c
