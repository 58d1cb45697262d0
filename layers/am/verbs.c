/* SPDX-License-Identifier: BSD-3-Clause */
/* am-verbs: Active Messages II on libibverbs' messages of a reliable connection and RDMA writes. */
#include "am/adapter.h"
#include "wire/verbs/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer cadge_style_layer = {
	.name = "am-verbs",
	.style = "am",
	.caps = CADGE_VERBS_CAPS(AM_CAPS),
	CADGE_STYLE_SLOTS,
	AM_SLOTS,
};
