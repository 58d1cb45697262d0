/* SPDX-License-Identifier: BSD-3-Clause */
/* pm-mpi: PM 1.2 on MPI's messages and one-sided writes. */
#include "pm/adapter.h"
#include "wire/mpi/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,    /* into shared memory */
	.copies_on_receive = 1, /* into the receive that was posted */
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_MPI_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "pm-mpi",
	.style = "pm",
	.caps = CADGE_MPI_CAPS(PM_CAPS),
	CADGE_MPI_SLOTS,
	PM_SLOTS,
};
