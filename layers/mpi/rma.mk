# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := mpi/rma.c mpi/rma_flow.c mpi/window.c mpi/world.c mpi/which.c mpi/path.c common/adapter.c common/adapter_net.c common/mailbox.c common/mailbox_send.c
LAYER_PKGS := ompi-c
# As in p2p.mk, where each is explained.
LAYER_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags pmix 2>/dev/null))
LAYER_LIBS := -Wl,-z,nodelete -Wl,-z,undefs
