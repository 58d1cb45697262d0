/* SPDX-License-Identifier: BSD-3-Clause */
/* bip-verbs: BIP on libibverbs' messages of a reliable connection and RDMA writes. */
#include "wire/verbs/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer cadge_style_layer = {
	.name = "bip-verbs",
	.style = "bip",
	.caps = CADGE_VERBS_CAPS(CADGE_STYLE_CAPS),
	CADGE_STYLE_SLOTS,
	.semantics = cadge_semantics_of_messages,
};
