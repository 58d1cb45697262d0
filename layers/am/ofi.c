/* SPDX-License-Identifier: BSD-3-Clause */
/* am-ofi: Active Messages II on libfabric's messages. */
#include "am/adapter.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,
	.copies_on_receive = 1, /* into the landing that was posted */
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer cadge_style_layer = {
	.name = "am-ofi",
	.style = "am",
	.caps = AM_CAPS,
	CADGE_STYLE_SLOTS,
	AM_SLOTS,
};
