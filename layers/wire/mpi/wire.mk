# SPDX-License-Identifier: BSD-3-Clause
# The wire on MPI: a layer's .mk includes this and adds WIRE_SOURCES, WIRE_PKGS, WIRE_CFLAGS and WIRE_LIBS to its own.
WIRE_SOURCES := wire/mpi/wire.c wire/mpi/memory.c wire/mpi/window.c wire/mpi/world.c wire/mpi/which.c wire/mpi/path.c wire/packets.c kit/adapter.c kit/adapter_net.c
WIRE_PKGS := ompi-c
# As in p2p.mk, where each is explained.
WIRE_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags pmix 2>/dev/null))
WIRE_LIBS := -Wl,-z,nodelete -Wl,-z,undefs
