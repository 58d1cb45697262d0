/* SPDX-License-Identifier: BSD-3-Clause */
/* vmmc-mpi: VMMC-2 on MPI's one-sided operations; a notification is a message after a flush. */
#include "vmmc/adapter.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1, /* into the target's memory */
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = 8, /* of MPI and PMIx: connections to mpirun, timers */
};

const struct cadge_layer cadge_style_layer = {
	.name = "vmmc-mpi",
	.style = "vmmc",
	.caps = (CADGE_STYLE_CAPS_AWAKE & ~CADGE_CAP_NET) | VMMC_OWN_CAPS | CADGE_CAP_OWN_THREADS |
		CADGE_CAP_ONE_INIT,
	CADGE_STYLE_SLOTS_AWAKE,
	VMMC_OWN_SLOTS,
};
