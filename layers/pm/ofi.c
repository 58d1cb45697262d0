/* SPDX-License-Identifier: BSD-3-Clause */
/* pm-ofi: PM 1.2 on libfabric's messages and remote writes. */
#include "pm/adapter.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,
	.copies_on_receive = 1, /* into the landing that was posted */
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer cadge_style_layer = {
	.name = "pm-ofi",
	.style = "pm",
	.caps = PM_CAPS,
	CADGE_STYLE_SLOTS,
	PM_SLOTS,
};
