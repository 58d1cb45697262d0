/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages that we send: a packet asks, the target grants, then puts, and a packet that runs the handler there. */
#include <stdlib.h>

#include "am/am_state.h"

static struct am_xfer *add_xfer(struct am *am)
{
	struct am_xfer **xfers = realloc(am->xfers, (am->xfers_count + 1) * sizeof(am->xfers[0]));
	struct am_xfer *xfer = calloc(1, sizeof(*xfer));

	if (xfers)
		am->xfers = xfers;
	if (!xfers || !xfer) {
		free(xfer);
		return NULL;
	}
	xfer->number = am->xfers_count;
	am->xfers[am->xfers_count++] = xfer;
	return xfer;
}

struct am_xfer *am_xfer_take(struct am *am, uint32_t peer)
{
	struct am_xfer *xfer = CADGE_POOL_TAKE(am->idle_xfers);

	if (!xfer)
		xfer = add_xfer(am);
	if (xfer)
		*xfer = (struct am_xfer){
			.number = xfer->number + (UINT64_C(1) << 32), .step = XFER_ASKED, .peer = peer};
	return xfer;
}

void am_xfer_give(struct am *am, struct am_xfer *xfer)
{
	xfer->step = XFER_IDLE;
	CADGE_POOL_GIVE(am->idle_xfers, xfer);
}

void am_xfer_finish(struct am *am, struct am_xfer *xfer, int code)
{
	const uint32_t peer = xfer->peer, handler = xfer->head[1];
	const uint64_t token = xfer->token;

	am_xfer_give(am, xfer);
	am->handled++;
	am->calls.ended(am->calls.arg, peer, handler, token, code);
}

/* ---- placing ---- */

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
		const struct cadge_iov *piece = &xfer->piece[xfer->piece_at];
		const uint8_t *from = (const uint8_t *)piece->base + xfer->piece_done_bytes;
		const size_t part = (size_t)cadge_least(piece->bytes - xfer->piece_done_bytes, most);

		if (part && !accepted(xfer, cadge_wire_put(link, from, part, xfer->remote, xfer->at_bytes,
							   (uintptr_t)xfer)))
			return false;
		xfer->at_bytes += part;
		xfer->piece_done_bytes += part;
		if (xfer->piece_done_bytes == piece->bytes) {
			xfer->piece_done_bytes = 0;
			xfer->piece_at++;
		}
	}
	return true;
}

/* The packet that runs the handler: of one that was not asked for, the message itself. */
static int report_placed(struct am *am, const struct am_xfer *xfer)
{
	uint8_t head[AM_HEAD_BYTES] = {KIND_PLACED};

	cadge_store64(head + 8, xfer->number);
	if (xfer->head[0] & KIND_UNASKED)
		return am_send_packet(am, &am->peer[xfer->peer], xfer->head, xfer->head_bytes, NULL, 0);
	return am_send_packet(am, &am->peer[xfer->peer], head, sizeof(head), NULL, 0);
}

/* DONE: over; QUEUED: the wire will tell; BUSY: it has no room; negative: over. */
static int go_on(struct am *am, struct am_xfer *xfer)
{
	int code;

	if (!put_pieces(am, xfer))
		return CADGE_BUSY;
	if (!xfer->quiet && !am->in_order && xfer->code == CADGE_DONE) {
		if (!accepted(xfer, cadge_wire_quiet(am->peer[xfer->peer].link, (uintptr_t)xfer)))
			return CADGE_BUSY;
		xfer->quiet = true;
	}
	if (!xfer->reported && xfer->code == CADGE_DONE && (am->in_order || !xfer->pending)) {
		code = report_placed(am, xfer);
		if (code == CADGE_BUSY)
			return code;
		xfer->reported = true;
		xfer->code = code;
	}
	return xfer->pending ? CADGE_QUEUED : xfer->code;
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

int am_xfer_place(struct am *am, struct am_xfer *xfer)
{
	int code;

	xfer->step = XFER_PLACING;
	code = go_on(am, xfer);
	if (code == CADGE_BUSY)
		wait_for_room(am, xfer);
	else if (code != CADGE_QUEUED)
		am_xfer_give(am, xfer);
	return code == CADGE_BUSY ? CADGE_QUEUED : code;
}

static void take_further(struct am *am, struct am_xfer *xfer)
{
	int code = go_on(am, xfer);

	if (code == CADGE_BUSY)
		wait_for_room(am, xfer);
	else if (code != CADGE_QUEUED)
		am_xfer_finish(am, xfer, code);
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

/* ---- what the target says ---- */

struct am_xfer *am_xfer_asked(struct am *am, uint32_t peer, uint64_t number)
{
	const uint32_t place = (uint32_t)number;
	struct am_xfer *xfer = place < am->xfers_count ? am->xfers[place] : NULL;

	return xfer && xfer->number == number && xfer->peer == peer && xfer->step == XFER_ASKED ? xfer : NULL;
}

/* The segment that a grant is for; its key comes with the first one. NULL: there is none, or the key is no key. */
static struct cadge_remote *segment_of(struct am_peer *peer, uint32_t number, struct cadge_blob_in *key)
{
	struct cadge_remote **segment = &peer->segment[number];

	if (key->left_bytes && (*segment || cadge_wire_attach(peer->link, key, segment) != CADGE_DONE))
		return NULL;
	return *segment;
}

void am_xfer_granted(struct am *am, uint32_t peer, const uint8_t *data, size_t bytes)
{
	struct cadge_blob_in key = {
		.at = data + AM_HEAD_BYTES, .left_bytes = bytes - AM_HEAD_BYTES, .ok = true};
	struct am_xfer *xfer = am_xfer_asked(am, peer, cadge_load64(data + 8));

	if (UNLIKELY(!xfer)) {
		am->packets_refused++;
		return;
	}
	xfer->remote = segment_of(&am->peer[peer], xfer->head[3], &key);
	if (UNLIKELY(!xfer->remote && cadge_iov_bytes(xfer->piece, xfer->pieces_count))) {
		am->packets_refused++;
		am_xfer_finish(am, xfer, CADGE_E_REFUSED);
		return;
	}
	xfer->step = XFER_PLACING;
	take_further(am, xfer);
}

void *am_xfer_payload(const struct am_xfer *xfer, void **copy_out, size_t *bytes_out)
{
	*bytes_out = cadge_iov_bytes(xfer->piece, xfer->pieces_count);
	*copy_out = NULL;
	if (xfer->pieces_count == 1)
		return xfer->piece[0].base;
	if (!*bytes_out || !(*copy_out = malloc(*bytes_out))) {
		*bytes_out = 0;
		return NULL;
	}
	cadge_iov_gather(xfer->piece, xfer->pieces_count, *copy_out);
	return *copy_out;
}

/* ---- ends ---- */

void am_xfers_down(struct am *am, uint32_t peer)
{
	for (uint32_t i = 0; i < am->xfers_count; i++)
		if (am->xfers[i]->step == XFER_ASKED && am->xfers[i]->peer == peer)
			am_xfer_finish(am, am->xfers[i], CADGE_E_DOWN);
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
	for (uint32_t i = 0; i < am->xfers_count; i++)
		if (am->xfers[i]->step != XFER_IDLE && am->xfers[i]->peer == peer)
			am_xfer_give(am, am->xfers[i]);
}

void am_xfers_destroy(struct am *am)
{
	for (uint32_t i = 0; i < am->xfers_count; i++)
		free(am->xfers[i]);
	free(am->xfers);
}
