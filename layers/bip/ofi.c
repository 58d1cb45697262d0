/* SPDX-License-Identifier: BSD-3-Clause */
/* bip-ofi: BIP on libfabric's messages and remote writes. */
#include "wire/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,
	.copies_on_receive = 1, /* into the landing that was posted */
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer cadge_style_layer = {
	.name = "bip-ofi",
	.style = "bip",
	.caps = CADGE_STYLE_CAPS,
	.semantics = cadge_semantics_of_messages,
	CADGE_STYLE_SLOTS,
};
