/* SPDX-License-Identifier: BSD-3-Clause */
/* fm-ofi: Fast Messages on libfabric's messages. */
#include "fm/adapter.h"

const struct cadge_traits fm_traits_of_library = {
	.copies_on_send = 1,
	.copies_on_receive = 1, /* into the landing that was posted */
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer fm_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "fm-ofi",
	.style = "fm",
	.substrate = cadge_wire_substrate,
	.caps = FM_CAPS,
	FM_SLOTS,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &fm_layer;
}
