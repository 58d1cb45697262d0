# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/wire/mpi/wire.mk
LAYER_SOURCES := vmmc/mpi.c vmmc/adapter.c vmmc/onesided.c vmmc/mail.c vmmc/vmmc.c vmmc/memory.c vmmc/redirect.c vmmc/utlb.c \
	wire/mailbox.c wire/mailbox_send.c wire/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
LAYER_CFLAGS := $(WIRE_CFLAGS)
LAYER_LIBS := $(WIRE_LIBS)
