# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/mpi/wire.mk
include $(LAYERS_ROOT)/tests/styles/frame.mk
TEST_SOURCES := $(WIRE_SOURCES) $(FRAME_SOURCES) vmmc/vmmc.c vmmc/memory.c vmmc/redirect.c vmmc/utlb.c tests/styles/vmmc_withdrawal.c
TEST_PKGS := $(WIRE_PKGS)
TEST_CFLAGS := $(WIRE_CFLAGS)
# path.c reads tables of libopen-pal, which comes with libmpi.
TEST_LIBS := -Wl,--copy-dt-needed-entries
