/* SPDX-License-Identifier: BSD-3-Clause */
/* pm-ofi: PM 1.2 on libfabric's messages and remote writes. */
#include "pm/adapter.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,
	.copies_on_receive = 1, /* into the landing that was posted */
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer cadge_style_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "pm-ofi",
	.style = "pm",
	.substrate = cadge_wire_substrate,
	.caps = PM_CAPS,
	PM_SLOTS,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &cadge_style_layer;
}
