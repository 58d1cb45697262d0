/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma-ucx: put, get, atomic operations and flush of UCP. */
#include "rdma/adapter.h"
#include "wire/ucx/rma.c"
#include "wire/ucx/memory.c"
#include "wire/ucx/wire.c"

static void note(const struct cadge_chan *chan, char *text, size_t bytes)
{
	const struct cadge_wire *wire = chan->ctx->wire;
	const struct cadge_remote *area = chan->box->outbox;
	const bool atomics = chan->ctx->atomic == CADGE_PROGRESS_DIRECT;

	snprintf(text, bytes, "%s%s",
		 area->mapped       ? "put, get and atomics: loads and stores to mapped memory of the target"
		 : !wire->ucx.verbs ? "put, get and atomics: carried out by the target's library"
		 : atomics          ? "put, get and atomics: carried out by the device"
			   : "put and get: carried out by the device; atomics: by the target's library",
		 wire->ucx.wake_fd < 0     ? ""
		 : chan->link->writes_wake ? "; that wakes it, so no notifications (block)"
					   : "; notification after each write (block)");
}

static enum cadge_progress expected(const struct cadge_wire *wire, uint32_t right)
{
	const struct cadge_ucx *ucx = &wire->ucx;
	const bool mapped = ucx->place == CADGE_PLACE_HOST && !ucx->transports_given;

	return mapped || (ucx->verbs && right != CADGE_MAY_ATOMIC) ? CADGE_PROGRESS_DIRECT
								   : CADGE_PROGRESS_LIBRARY;
}

static const struct cadge_option options[] = {CADGE_UCX_OPTION_TRANSPORTS, {NULL, NULL, NULL}};

static const struct rdma_substrate substrate = {
	.options = options,
	.depth_max = 4096,
	.operations_each = 1,
	.operations_more = CADGE_MAIL_OPERATIONS,
	.mapped_poll = progress_once,
	.short_path = "mailbox, one write",
	.long_path = "mailbox, writes of pieces, quiet, a write that describes each",
	.maps = true,
	.expected = expected,
	.note = note,
};

#include "rdma/adapter.c"

const struct cadge_traits cadge_style_library_traits = {
	.protection = CADGE_PROTECT_SENDER_LIBRARY,
	.control_transfer = CADGE_CONTROL_POLL,
	.copies_on_send = 2,
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_UCX_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "rdma-ucx",
	.caps = RDMA_CAPS | CADGE_CAP_MEM_ALLOC | CADGE_CAP_OWN_THREADS,
	.options = options,
	CADGE_STYLE_SLOTS_BARE,
	CADGE_STYLE_SLOTS_SLEEP,
	RDMA_SLOTS,
	RDMA_ALLOC_SLOTS,
};
