/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPI makes of a style: it cannot sleep, and between hosts the target's library has to run (wire.c). */
#ifndef CADGE_WIRE_MPI_STYLE_H
#define CADGE_WIRE_MPI_STYLE_H

#include "wire/style.h"

#define CADGE_MPI_CAPS(caps)                                                                                 \
	(((caps) & ~(CADGE_CAP_NET | CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD)) | CADGE_CAP_OWN_THREADS |         \
	 CADGE_CAP_ONE_INIT)
#define CADGE_MPI_SLOTS   CADGE_STYLE_SLOTS_AWAKE
#define CADGE_MPI_THREADS 8 /* of MPI and PMIx: connections to mpirun, timers */

#endif
