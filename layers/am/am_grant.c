/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages that come: what is asked for is looked at before a byte is placed, and granted, or refused. */
#include <stdlib.h>

#include "am/am_state.h"

/* Lets the peer write, and keeps what it asked for until it has written. DONE or E_MEMORY. */
static int grant(struct am *am, struct am_peer *peer, const uint8_t *data, size_t bytes,
		 const struct am_incoming *in)
{
	struct am_endpoint *endpoint = am->endpoints[in->to];
	const bool needs_key = endpoint->segment && !peer->has_key[in->to];
	const struct cadge_iov key = {endpoint->key_room, needs_key ? endpoint->key.used_bytes : 0};
	uint8_t head[AM_HEAD_BYTES] = {KIND_GRANT};

	if (am_copies_add(&peer->granted, data, bytes, NULL, 0) != CADGE_DONE)
		return CADGE_E_MEMORY;
	peer->granted.last->handler = endpoint->handlers[in->handler];
	peer->granted.last->number = in->number;
	endpoint->coming++;
	cadge_store64(head + 8, in->number);
	am->grants_sent++;
	if (am_send_surely(am, peer, head, sizeof(head), &key, 1) == CADGE_DONE && needs_key)
		peer->has_key[in->to] = true;
	return CADGE_DONE;
}

void am_grant_request(struct am *am, uint32_t number, uint8_t *data, size_t bytes, struct am_incoming *in)
{
	struct am_peer *peer = &am->peer[number];
	enum am_status status = am_check_request(am, data, in);

	if (!status && (!am_has_room(am, peer) || grant(am, peer, data, bytes, in) != CADGE_DONE))
		status = AM_CONGESTION;
	if (UNLIKELY(status))
		am_return_to_sender(am, peer, data, bytes, status);
}

/* A reply that cannot be delivered: its request is answered all the same. */
static void reject(struct am *am, struct am_peer *peer, const struct am_incoming *in)
{
	uint8_t head[AM_HEAD_BYTES] = {KIND_REJECTED};

	am->packets_refused++;
	peer->credits += !am->uncredited;
	cadge_store64(head + 8, in->number);
	am_send_surely(am, peer, head, sizeof(head), NULL, 0);
}

void am_grant_reply(struct am *am, uint32_t number, uint8_t *data, size_t bytes, struct am_incoming *in)
{
	struct am_peer *peer = &am->peer[number];
	const uint32_t unanswered = am->uncredited ? am->outstanding : am->outstanding - peer->credits;

	if (UNLIKELY(peer->granted_replies >= unanswered)) { /* to nothing that we asked */
		am->packets_refused++;
		return;
	}
	if (UNLIKELY(in->to >= am->endpoints_count || in->handler == AM_RETURNED ||
		     !am->endpoints[in->to]->handlers[in->handler] ||
		     !am_find_payload(am->endpoints[in->to], in) ||
		     grant(am, peer, data, bytes, in) != CADGE_DONE))
		reject(am, peer, in);
	else
		peer->granted_replies++;
}

void am_on_placed(struct am *am, uint32_t number, uint64_t message)
{
	struct am_peer *peer = &am->peer[number];
	struct am_copy *copy = am_copies_pick(&peer->granted, message);
	struct am_incoming in;

	if (UNLIKELY(!copy || !am_parse(copy->data, copy->bytes, &in))) { /* it was parsed before */
		am->packets_refused++;
		free(copy);
		return;
	}
	am->endpoints[in.to]->coming--;
	am_find_payload(am->endpoints[in.to], &in);
	if ((in.kind & KIND_MASK) == KIND_REPLY) {
		peer->granted_replies--;
		peer->credits += !am->uncredited;
		am_run_reply(am, number, copy->handler, &in);
	} else if (UNLIKELY(!am->budget || peer->queue.count)) {
		am_copies_append(&peer->queue, copy); /* its place was kept */
		am->queued++;
		return;
	} else {
		am_run_request(am, number, copy->handler, &in);
	}
	free(copy);
}

void am_grants_forget(struct am *am, struct am_peer *peer)
{
	struct am_incoming in;

	while (peer->granted.count) {
		struct am_copy *copy = am_copies_take(&peer->granted);

		if (am_parse(copy->data, copy->bytes, &in))
			am->endpoints[in.to]->coming--;
		free(copy);
	}
	peer->granted_replies = 0;
}
