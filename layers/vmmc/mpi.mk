# SPDX-License-Identifier: BSD-3-Clause
include $(LAYERS_ROOT)/mpi/wire.mk
LAYER_SOURCES := vmmc/mpi.c vmmc/adapter.c vmmc/onesided.c vmmc/mail.c vmmc/vmmc.c vmmc/memory.c vmmc/redirect.c vmmc/utlb.c \
	common/mailbox.c common/mailbox_send.c common/style.c $(WIRE_SOURCES)
LAYER_PKGS := $(WIRE_PKGS)
LAYER_CFLAGS := $(WIRE_CFLAGS)
LAYER_LIBS := $(WIRE_LIBS)
