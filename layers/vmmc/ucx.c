/* SPDX-License-Identifier: BSD-3-Clause */
/* vmmc-ucx: VMMC-2 on UCX's remote writes and active messages. */
#include "wire/ucx/ucx.h"
#include "vmmc/adapter.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1, /* into the target's memory, or the socket's buffers */
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_UCX_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "vmmc-ucx",
	.style = "vmmc",
	.caps = VMMC_CAPS | CADGE_CAP_OWN_THREADS,
	CADGE_STYLE_SLOTS,
	VMMC_SLOTS,
};
