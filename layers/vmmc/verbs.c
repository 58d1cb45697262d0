/* SPDX-License-Identifier: BSD-3-Clause */
/* vmmc-verbs: VMMC-2 on libibverbs' RDMA writes. */
#include "vmmc/adapter.h"
#include "wire/verbs/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.thread_role = CADGE_THREADS_NONE,
};

const struct cadge_layer cadge_style_layer = {
	.name = "vmmc-verbs",
	.style = "vmmc",
	.caps = CADGE_VERBS_CAPS(VMMC_CAPS),
	CADGE_STYLE_SLOTS,
	VMMC_SLOTS,
};
