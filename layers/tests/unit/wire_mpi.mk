# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/mpi/wire.mk
include $(LAYERS_ROOT)/tests/ranks/ranks.mk
TEST_SOURCES := $(WIRE_SOURCES) $(RANKS_SOURCES) tests/wire/list.c tests/wire/end.c tests/wire/t_packets.c tests/wire/t_life.c \
	tests/wire/t_memory.c tests/wire/t_rights.c
TEST_PKGS := $(WIRE_PKGS)
TEST_CFLAGS := $(WIRE_CFLAGS)
# path.c reads tables of libopen-pal, which comes with libmpi.
TEST_LIBS := -Wl,--copy-dt-needed-entries
