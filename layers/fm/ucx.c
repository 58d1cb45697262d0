/* SPDX-License-Identifier: BSD-3-Clause */
/* fm-ucx: Fast Messages on UCX's active messages. */
#include "common/ucx.h"
#include "fm/adapter.h"

const struct cadge_traits fm_traits_of_library = {
	.copies_on_send =
		1, /* into shared memory, or the socket's buffers; packets are read where they came */
	.waker = CADGE_WAKER_LIBRARY,
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_UCX_THREADS,
};

const struct cadge_layer fm_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "fm-ucx",
	.style = "fm",
	.substrate = cadge_wire_substrate,
	.caps = FM_CAPS | CADGE_CAP_OWN_THREADS,
	FM_SLOTS,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &fm_layer;
}
