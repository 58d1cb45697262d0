/* SPDX-License-Identifier: BSD-3-Clause */
/* am-ucx: Active Messages II on those of UCX. */
#include "am/adapter.h"
#include "wire/ucx/ucx.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send =
		1, /* into shared memory, or the socket's buffers; packets are read where they came */
	.waker = CADGE_WAKER_LIBRARY,
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_UCX_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "am-ucx",
	.style = "am",
	.caps = AM_CAPS | CADGE_CAP_OWN_THREADS,
	CADGE_STYLE_SLOTS,
	AM_SLOTS,
};
