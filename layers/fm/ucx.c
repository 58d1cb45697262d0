/* SPDX-License-Identifier: BSD-3-Clause */
/* fm-ucx: Fast Messages on UCX's active messages. */
#include "wire/ucx/ucx.h"
#include "wire/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,    /* into shared memory, or the socket's buffers */
	.copies_on_receive = 1, /* out of them: a packet that may be kept is UCX's copy, where it is short */
	.waker = CADGE_WAKER_LIBRARY,
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_UCX_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "fm-ucx",
	.style = "fm",
	.caps = CADGE_STYLE_CAPS | CADGE_CAP_FLOW_CONTROL | CADGE_CAP_OWN_THREADS,
	.semantics = cadge_semantics_of_messages,
	CADGE_STYLE_SLOTS,
};
