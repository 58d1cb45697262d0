/* SPDX-License-Identifier: BSD-3-Clause */
/* fm-mpi: Fast Messages on MPI's messages. */
#include "wire/mpi/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,    /* into shared memory */
	.copies_on_receive = 1, /* into the receive that was posted */
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_MPI_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "fm-mpi",
	.style = "fm",
	.caps = CADGE_MPI_CAPS(CADGE_STYLE_CAPS | CADGE_CAP_FLOW_CONTROL),
	CADGE_MPI_SLOTS,
	.semantics = cadge_semantics_of_messages,
};
