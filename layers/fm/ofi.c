/* SPDX-License-Identifier: BSD-3-Clause */
/* fm-ofi: Fast Messages on libfabric's messages. */
#include "wire/style.h"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,
	.copies_on_receive = 1, /* into the landing that was posted */
	.waker = CADGE_WAKER_KERNEL,
};

const struct cadge_layer cadge_style_layer = {
	.name = "fm-ofi",
	.style = "fm",
	.caps = CADGE_STYLE_CAPS | CADGE_CAP_FLOW_CONTROL,
	.semantics = cadge_semantics_of_messages,
	CADGE_STYLE_SLOTS,
};
