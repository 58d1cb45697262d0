/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI under a style: it cannot sleep, and between hosts the target's library has to run (wire.c). */
#ifndef CADGE_WIRE_MPI_SUBSTRATE_H
#define CADGE_WIRE_MPI_SUBSTRATE_H

#include "wire/style.h"

#define CADGE_MPI_THREADS 8 /* of MPI and PMIx: connections to mpirun, timers */

#define CADGE_SUBSTRATE "mpi"
#define CADGE_SUBSTRATE_CAPS(caps)                                                                           \
	(((caps) & ~(CADGE_CAP_NET | CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD)) | CADGE_CAP_OWN_THREADS |         \
	 CADGE_CAP_ONE_INIT)
#define CADGE_SUBSTRATE_SLOTS CADGE_STYLE_SLOTS_AWAKE
/* Copies: into shared memory; into the receive that was posted. */
#define CADGE_SUBSTRATE_PACKETS(holds) CADGE_SUBSTRATE_PUTS, .copies_on_receive = 1
#define CADGE_SUBSTRATE_PUTS                                                                                 \
	.copies_on_send = 1, .thread_role = CADGE_THREADS_HOUSEKEEPING, .threads_max = CADGE_MPI_THREADS

#endif
