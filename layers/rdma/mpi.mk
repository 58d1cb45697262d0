# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/mpi.c rdma/mpi_flow.c wire/mpi/window.c wire/mpi/world.c wire/mpi/which.c wire/mpi/path.c kit/adapter.c kit/adapter_net.c wire/mailbox.c wire/mailbox_send.c
LAYER_PKGS := ompi-c
# As in mpi/p2p.mk, where each is explained.
LAYER_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags pmix 2>/dev/null))
LAYER_LIBS := -Wl,-z,nodelete -Wl,-z,undefs
