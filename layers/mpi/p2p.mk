# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := mpi/p2p.c mpi/p2p_flow.c wire/mpi/world.c wire/mpi/which.c wire/mpi/path.c kit/adapter.c kit/adapter_net.c
LAYER_PKGS := ompi-c
# Open MPI 5's internal headers include PMIx's; libopenmpi-dev depends on them.
LAYER_CFLAGS := $(call packages-cflags,pmix)
# The process-wide end of MPI runs at exit, so the module must still be mapped then. path.c reads tables of libopen-pal, which
# comes with libmpi and which no package of pkg-config names: what it has is found when the module is loaded.
LAYER_LIBS := -Wl,-z,nodelete -Wl,-z,undefs
