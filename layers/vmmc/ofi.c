/* SPDX-License-Identifier: BSD-3-Clause */
/* vmmc-ofi: VMMC-2 on libfabric's remote writes and messages. */
#include "vmmc/adapter.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 0, /* within a host the kernel copies, from process to process */
};

const struct cadge_layer cadge_style_layer = {
	.name = "vmmc-ofi",
	.style = "vmmc",
	.caps = VMMC_CAPS,
	CADGE_STYLE_SLOTS,
	VMMC_SLOTS,
};
