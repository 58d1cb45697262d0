# SPDX-License-Identifier: BSD-3-Clause
# The wire on MPI: a style's style.mk includes this.
WIRE_SOURCES := wire/mpi/wire.c wire/mpi/memory.c wire/mpi/far.c wire/mpi/window.c wire/mpi/world.c wire/mpi/which.c wire/mpi/path.c wire/packets.c kit/adapter.c kit/adapter_net.c
WIRE_PKGS := ompi-c
# As in mpi/p2p.mk, where each is explained.
WIRE_CFLAGS := -iquote $(LAYERS_ROOT)/wire/mpi $(call packages-cflags,pmix)
WIRE_LIBS := -Wl,-z,nodelete -Wl,-z,undefs
WIRE_TEST_SOURCES :=
# A program cannot leave it so: path.c reads tables of libopen-pal, which comes with libmpi.
WIRE_TEST_LIBS := -Wl,--copy-dt-needed-entries
