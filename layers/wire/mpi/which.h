/* SPDX-License-Identifier: BSD-3-Clause */
/* Which MPI this is, what its launcher told this process, and how it is put on the data network. All legal before MPI runs. */
#ifndef CADGE_WIRE_MPI_WHICH_H
#define CADGE_WIRE_MPI_WHICH_H

#include <stdbool.h>

#include "cadge/layer.h"

/* As MPI_Get_library_version says it: "Open MPI" and "4.1.4", "MPICH" and "5.0.2"; another one is "MPI", with all that it says. */
const char *mpi_which_name(void);
const char *mpi_which_version(void);

bool mpi_which_is_open_mpi(void);
/* A release of Open MPI before `major`.0; false for any other MPI, whatever its number. */
bool mpi_which_is_open_mpi_before(int major);

/* Of the job, and those of them on this host (from srun: on the first host); 0: no launcher told. */
int mpi_which_ranks(void);
int mpi_which_ranks_here(void);

/*
 * Placement, not tuning: the data network's interface, and between hosts the network even where both ranks share a host. What
 * the user or the launcher set stays. `osc`, where not NULL, is Open MPI's component for one-sided operations. False: there is
 * no room in the environment.
 */
bool mpi_which_place(const struct cadge_open_args *args, const char *osc);
/* The interface that it was put on; "" before. */
const char *mpi_which_interface(void);

#endif
