/* SPDX-License-Identifier: BSD-3-Clause */
/* pm-verbs: PM 1.2 on libibverbs' messages of a reliable connection and RDMA writes. */
#include "pm/adapter.h"
#include "wire/verbs/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer cadge_style_layer = {
	.name = "pm-verbs",
	.style = "pm",
	.caps = CADGE_VERBS_CAPS(PM_CAPS),
	CADGE_STYLE_SLOTS,
	PM_SLOTS,
};
