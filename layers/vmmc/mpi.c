/* SPDX-License-Identifier: BSD-3-Clause */
/* vmmc-mpi: VMMC-2 on MPI's one-sided operations; a notification is a message after a flush. */
#include "vmmc/adapter.h"
#include "wire/mpi/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1, /* into the target's memory */
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_MPI_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "vmmc-mpi",
	.style = "vmmc",
	.caps = CADGE_MPI_CAPS(VMMC_CAPS),
	CADGE_MPI_SLOTS,
	VMMC_SLOTS,
};
