/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma-ofi: libfabric's one-sided operations on one FI_EP_RDM endpoint. */
#include "rdma/adapter.h"
#include "wire/ofi/rma.c"
#include "wire/ofi/memory.c"
#include "wire/ofi/flow.c"

#include <stdio.h>

static int fence(void *at)
{
	const struct cadge_box *box = at;
	const struct cadge_link *link = box->link;

	return cadge_ofi_fence(&link->rma);
}

static enum cadge_progress expected(const struct cadge_wire *wire, uint32_t right)
{
	return right != CADGE_MAY_ATOMIC && (wire->rma.direct || wire->ofi.verbs) ? CADGE_PROGRESS_DIRECT
										  : CADGE_PROGRESS_LIBRARY;
}

static void note(const struct cadge_chan *chan, char *text, size_t bytes)
{
	const struct cadge_wire *wire = chan->ctx->wire;

	if (wire->ofi.wait_fd >= 0)
		snprintf(text, bytes, "notification after each write of a message (block)");
	else if (wire->rma.direct)
		snprintf(text, bytes,
			 "process_vm_writev; each write also takes one of 1024 slots that the target's "
			 "library "
			 "has to clear");
	else if (!wire->ofi.network)
		snprintf(text, bytes, "process_vm_writev is not usable: the target's library copies");
}

static const struct rdma_substrate substrate = {
	.options = cadge_ofi_options,
	.depth_max = 1024,
	.operations_each = 2,
	.operations_more = 64,
	.short_path = "one write",
	.long_path = "mailbox chunks",
	.fence = fence,
	.expected = expected,
	.note = note,
};

#include "rdma/adapter.c"

const struct cadge_traits cadge_style_library_traits = {
	.protection = CADGE_PROTECT_RECEIVER_LIBRARY,
	.control_transfer = CADGE_CONTROL_NONE,
	.copies_on_send = 1,
};

const struct cadge_layer cadge_style_layer = {
	.name = "rdma-ofi",
	.caps = RDMA_CAPS,
	.options = cadge_ofi_options,
	CADGE_STYLE_SLOTS_BARE,
	CADGE_STYLE_SLOTS_SLEEP,
	RDMA_SLOTS,
};
