# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := mpi/p2p.c mpi/path.c
LAYER_PKGS := ompi-c
# The process-wide end of MPI runs at exit, so the module must still be mapped then.
LAYER_LIBS := -Wl,-z,nodelete
