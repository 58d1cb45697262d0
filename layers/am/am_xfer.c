/* SPDX-License-Identifier: BSD-3-Clause */
/* Long transfers: puts into the target's segment, quiet, and the packet that runs the handler there. */
#include <stdlib.h>

#include "am/am_state.h"

struct am_xfer *am_xfer_take(struct am *am, uint32_t peer)
{
	struct am_xfer *xfer = CADGE_POOL_TAKE(am->idle_xfers);
	struct am_xfer *next_all;

	if (!xfer) {
		xfer = malloc(sizeof(*xfer));
		if (!xfer)
			return NULL;
		xfer->next_all = am->all_xfers;
		am->all_xfers = xfer;
	}
	next_all = xfer->next_all;
	*xfer = (struct am_xfer){.next_all = next_all, .used = true, .peer = peer};
	return xfer;
}

static void give(struct am *am, struct am_xfer *xfer)
{
	xfer->used = false;
	CADGE_POOL_GIVE(am->idle_xfers, xfer);
}

/* Counts what `code` of an operation leaves to wait for; false: it has to be tried again. */
static bool accepted(struct am_xfer *xfer, int code)
{
	if (code == CADGE_BUSY)
		return false;
	xfer->pending += code == CADGE_QUEUED;
	if (code < 0)
		xfer->code = code;
	return true;
}

static bool put_pieces(struct am *am, struct am_xfer *xfer)
{
	struct cadge_link *link = am->peer[xfer->peer].link;
	const uint64_t most = cadge_wire_facts(am->wire)->put_bytes_max;

	while (xfer->piece_at < xfer->pieces_count && xfer->code == CADGE_DONE) {
		struct cadge_iov *piece = &xfer->piece[xfer->piece_at];
		const size_t part = (size_t)cadge_least(piece->bytes, most);

		if (part && !accepted(xfer, cadge_wire_put(link, piece->base, part, xfer->remote,
							   xfer->at_bytes, (uintptr_t)xfer)))
			return false;
		piece->base = (uint8_t *)piece->base + part;
		piece->bytes -= part;
		xfer->at_bytes += part;
		xfer->piece_at += piece->bytes == 0;
	}
	return true;
}

/* DONE: over; QUEUED: the wire will tell; BUSY: it has no room; negative: over. */
static int go_on(struct am *am, struct am_xfer *xfer)
{
	struct am_peer *peer = &am->peer[xfer->peer];

	if (!put_pieces(am, xfer))
		return CADGE_BUSY;
	if (!xfer->quiet && xfer->code == CADGE_DONE) {
		if (!accepted(xfer, cadge_wire_quiet(peer->link, (uintptr_t)xfer)))
			return CADGE_BUSY;
		xfer->quiet = true;
	}
	if (xfer->pending)
		return CADGE_QUEUED;
	if (xfer->code != CADGE_DONE)
		return xfer->code;
	return am_send_packet(am, peer, xfer->head, xfer->head_bytes, NULL, 0);
}

static void wait_for_room(struct am *am, struct am_xfer *xfer)
{
	struct am_xfer **at = &am->waiting_xfers;

	while (*at)
		at = &(*at)->next;
	xfer->next = NULL;
	xfer->waits = true;
	*at = xfer;
}

int am_xfer_begin(struct am *am, struct am_xfer *xfer)
{
	int code = go_on(am, xfer);

	if (code == CADGE_BUSY)
		wait_for_room(am, xfer);
	else if (code != CADGE_QUEUED)
		give(am, xfer);
	return code == CADGE_BUSY ? CADGE_QUEUED : code;
}

static void take_further(struct am *am, struct am_xfer *xfer)
{
	int code = go_on(am, xfer);

	if (code == CADGE_BUSY) {
		wait_for_room(am, xfer);
	} else if (code != CADGE_QUEUED) {
		const uint32_t peer = xfer->peer, handler = xfer->head[1];
		const uint64_t token = xfer->token;

		give(am, xfer);
		am->handled++;
		am->calls.ended(am->calls.arg, peer, handler, token, code);
	}
}

void am_xfers_go_on(struct am *am)
{
	struct am_xfer *xfer = am->waiting_xfers, *next;

	am->waiting_xfers = NULL;
	for (; xfer; xfer = next) {
		next = xfer->next;
		xfer->waits = false;
		take_further(am, xfer);
	}
}

void am_xfer_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	struct am_xfer *xfer = (struct am_xfer *)(uintptr_t)token;

	(void)peer;
	xfer->pending--;
	if (code < 0)
		xfer->code = code;
	if (!xfer->pending && !xfer->waits)
		take_further(arg, xfer);
}

/* Those of a link that has ended: nothing comes for them any more. */
void am_xfers_drop(struct am *am, uint32_t peer)
{
	struct am_xfer **at = &am->waiting_xfers;

	while (*at)
		if ((*at)->peer == peer)
			*at = (*at)->next;
		else
			at = &(*at)->next;
	for (struct am_xfer *xfer = am->all_xfers; xfer; xfer = xfer->next_all)
		if (xfer->used && xfer->peer == peer)
			give(am, xfer);
}

void am_xfers_destroy(struct am *am)
{
	struct am_xfer *xfer;

	while ((xfer = am->all_xfers)) {
		am->all_xfers = xfer->next_all;
		free(xfer);
	}
}
