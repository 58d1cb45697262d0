/* SPDX-License-Identifier: BSD-3-Clause */
/* pm-ucx: PM 1.2 on UCX's active messages and remote writes. */
#include "wire/ucx/ucx.h"
#include "pm/adapter.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send =
		1, /* into shared memory, or the socket's buffers; packets are read where they came */
	.waker = CADGE_WAKER_LIBRARY,
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_UCX_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "pm-ucx",
	.style = "pm",
	.caps = PM_CAPS | CADGE_CAP_OWN_THREADS,
	CADGE_STYLE_SLOTS,
	PM_SLOTS,
};
