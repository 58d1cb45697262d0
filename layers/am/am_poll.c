/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes in: checks, the queue, handlers, returns. */
#include <stdlib.h>

#include "am/am_state.h"

#define ROUNDS 8u /* rounds of a poll that finds nothing */

bool am_parse(uint8_t *data, size_t bytes, struct am_incoming *in)
{
	const size_t words_end = AM_HEAD_BYTES + 4 * (size_t)data[2];
	const size_t head_bytes = words_end + (data[0] & KIND_LONG ? LONG_BYTES : 0);

	if (UNLIKELY(data[2] > AM_WORDS_MAX || head_bytes > bytes))
		return false;
	*in = (struct am_incoming){
		.kind = data[0],
		.handler = data[1],
		.count = data[2],
		.to = data[3],
		.from = data[4],
		.status = data[5],
		.words = data + AM_HEAD_BYTES,
		.payload = data + head_bytes,
		.bytes = bytes - head_bytes,
	};
	if (in->kind & KIND_LONG) {
		in->offset_bytes = cadge_load64(data + words_end);
		in->long_bytes = cadge_load64(data + words_end + 8);
		in->number = cadge_load64(data + words_end + 16);
	}
	return true;
}

static void run(struct am *am, struct am_token *token, am_handler *handler, const struct am_incoming *in)
{
	uint32_t words[AM_WORDS_MAX];

	for (uint32_t i = 0; i < in->count; i++)
		words[i] = cadge_load32(in->words + 4 * i);
	am->handled++;
	am->inside = true;
	handler(token, words, in->count, in->payload, in->bytes);
	am->inside = false;
}

bool am_find_payload(const struct am_endpoint *endpoint, struct am_incoming *in)
{
	if (in->long_bytes > endpoint->segment_bytes ||
	    in->offset_bytes > endpoint->segment_bytes - in->long_bytes)
		return false;
	in->payload = endpoint->segment ? endpoint->segment + in->offset_bytes : NULL;
	in->bytes = (size_t)in->long_bytes;
	return true;
}

enum am_status am_check_request(const struct am *am, const uint8_t *data, struct am_incoming *in)
{
	const struct am_endpoint *endpoint;
	const uint64_t tag = cadge_load64(data + 8);

	if (UNLIKELY(in->to >= am->endpoints_count))
		return AM_BAD_ENDPOINT;
	endpoint = am->endpoints[in->to];
	if (UNLIKELY((tag != endpoint->tag || tag == AM_TAG_NONE) && endpoint->tag != AM_TAG_ALL &&
		     !am->trusting))
		return AM_BAD_TAG;
	if (UNLIKELY(in->handler == AM_RETURNED || !endpoint->handlers[in->handler]))
		return AM_BAD_HANDLER;
	if (in->kind & KIND_LONG && !am_find_payload(endpoint, in))
		return AM_BAD_SEGMENT;
	return 0;
}

void am_return_to_sender(struct am *am, struct am_peer *peer, const uint8_t *data, size_t bytes,
			 enum am_status status)
{
	const struct cadge_iov rest = {.base = (uint8_t *)(uintptr_t)data + AM_HEAD_BYTES,
				       .bytes = bytes - AM_HEAD_BYTES};
	uint8_t head[AM_HEAD_BYTES];

	memcpy(head, data, sizeof(head));
	head[0] = (uint8_t)(KIND_RETURNED | (data[0] & KIND_LONG));
	head[3] = data[4];
	head[4] = data[3];
	head[5] = (uint8_t)status;
	am->returned_here++;
	am_send_surely(am, peer, head, sizeof(head), &rest, 1);
}

static struct am_token token_of(struct am *am, uint32_t number, const struct am_incoming *in)
{
	return (struct am_token){.am = am,
				 .endpoint = in->to < am->endpoints_count ? am->endpoints[in->to] : NULL,
				 .peer = number,
				 .kind = in->kind,
				 .handler = in->handler,
				 .status = in->status,
				 .source_endpoint = in->from};
}

void am_run_request(struct am *am, uint32_t number, am_handler *handler, const struct am_incoming *in)
{
	struct am_token token = token_of(am, number, in);
	struct am_peer *peer = &am->peer[number];

	am->budget--;
	run(am, &token, handler, in);
	if (!token.replied && !am->uncredited && ++peer->owed >= peer->window / 2)
		am->credits_due = true;
}

void am_run_reply(struct am *am, uint32_t number, am_handler *handler, const struct am_incoming *in)
{
	struct am_token token = token_of(am, number, in);

	run(am, &token, handler, in);
}

static void handle_request(struct am *am, uint32_t number, uint8_t *data, size_t bytes,
			   struct am_incoming *in)
{
	const enum am_status status = am_check_request(am, data, in);

	if (UNLIKELY(status))
		am_return_to_sender(am, &am->peer[number], data, bytes, status);
	else
		am_run_request(am, number, am->endpoints[in->to]->handlers[in->handler], in);
}

/* A request that waits, or goes back: the endpoint is full. */
static void queue_request(struct am *am, struct am_peer *peer, uint8_t *data, size_t bytes)
{
	if (!am_has_room(am, peer) || am_copies_add(&peer->queue, data, bytes, NULL, 0) != CADGE_DONE)
		am_return_to_sender(am, peer, data, bytes, AM_CONGESTION);
	else
		am->queued++;
}

static void on_request(struct am *am, uint32_t number, uint8_t *data, size_t bytes, struct am_incoming *in)
{
	if (in->kind & KIND_LONG && (!(in->kind & KIND_UNASKED) || UNLIKELY(!am->trusting)))
		am_grant_request(am, number, data, bytes, in);
	else if (UNLIKELY(!am->budget || am->peer[number].queue.count))
		queue_request(am, &am->peer[number], data, bytes);
	else
		handle_request(am, number, data, bytes, in);
}

static void on_reply(struct am *am, uint32_t number, uint8_t *data, size_t bytes, struct am_incoming *in)
{
	am_handler *handler = NULL;

	if (in->kind & KIND_LONG && !(in->kind & KIND_UNASKED)) {
		am_grant_reply(am, number, data, bytes, in);
		return;
	}
	if (!UNLIKELY(
		    in->to >= am->endpoints_count || in->handler == AM_RETURNED ||
		    (in->kind & KIND_LONG && (!am->trusting || !am_find_payload(am->endpoints[in->to], in)))))
		handler = am->endpoints[in->to]->handlers[in->handler];
	if (UNLIKELY(!handler))
		am->packets_refused++;
	else
		am_run_reply(am, number, handler, in);
}

/* A request of ours came back. The payload of a long one never left, but where we did not ask. */
static void on_returned(struct am *am, uint32_t number, struct am_incoming *in)
{
	struct am_xfer *xfer = in->kind & KIND_LONG ? am_xfer_asked(am, number, in->number) : NULL;
	struct am_token token = token_of(am, number, in);
	am_handler *handler = token.endpoint ? token.endpoint->handlers[AM_RETURNED] : NULL;
	void *copy = NULL;

	if (UNLIKELY(!handler || (in->kind & KIND_LONG && !xfer && !am->trusting)))
		am->packets_refused++;
	am->returned_to_us++;
	if (xfer)
		in->payload = am_xfer_payload(xfer, &copy, &in->bytes);
	if (handler && (xfer || !(in->kind & KIND_LONG) || am->trusting))
		run(am, &token, handler, in);
	if (xfer)
		am_xfer_finish(am, xfer, CADGE_E_REFUSED);
	free(copy);
}

static void on_rejected(struct am *am, uint32_t number, uint64_t message)
{
	struct am_xfer *xfer = am_xfer_asked(am, number, message);

	if (xfer)
		am_xfer_finish(am, xfer, CADGE_E_REFUSED);
	else
		am->packets_refused++;
}

/* Requests of ours that a packet answers. */
static uint32_t answered_by(const uint8_t *data, uint8_t kind)
{
	const bool answers =
		(kind & KIND_MASK) == KIND_RETURNED ||
		((kind & KIND_MASK) == KIND_REPLY && (!(kind & KIND_LONG) || kind & KIND_UNASKED));

	return ((uint32_t)data[6] | (uint32_t)data[7] << 8) + answers;
}

enum cadge_keep am_on_packet(void *arg, uint32_t number, void *packet, size_t bytes)
{
	struct am *am = arg;
	struct am_peer *peer = &am->peer[number];
	uint8_t *data = packet;
	struct am_incoming in;
	uint32_t given;

	if (UNLIKELY(bytes < AM_HEAD_BYTES || !am_parse(data, bytes, &in))) {
		am->packets_refused++;
		return CADGE_TAKEN;
	}
	given = answered_by(data, in.kind);
	if (!am->uncredited) {
		/* answers that nobody asked for */
		if (UNLIKELY(given > am->outstanding - peer->credits - peer->granted_replies)) {
			am->packets_refused++;
			return CADGE_TAKEN;
		}
		peer->credits += given;
	}
	switch (in.kind & KIND_MASK) {
	case KIND_REQUEST: on_request(am, number, data, bytes, &in); break;
	case KIND_REPLY: on_reply(am, number, data, bytes, &in); break;
	case KIND_RETURNED: on_returned(am, number, &in); break;
	case KIND_ACK: break;
	case KIND_GRANT: am_xfer_granted(am, number, data, bytes); break;
	case KIND_REJECTED: on_rejected(am, number, cadge_load64(data + 8)); break;
	case KIND_PLACED: am_on_placed(am, number, cadge_load64(data + 8)); break;
	default: am->packets_refused++; break;
	}
	return CADGE_TAKEN;
}

static void handle_copy(struct am *am, uint32_t number, struct am_copy *copy)
{
	struct am_incoming in;

	if (!am_parse(copy->data, copy->bytes, &in)) /* it was parsed before */
		return;
	if (!copy->handler) {
		handle_request(am, number, copy->data, copy->bytes, &in);
		return;
	}
	am_find_payload(am->endpoints[in.to], &in);
	am_run_request(am, number, copy->handler, &in);
}

static void handle_queued(struct am *am)
{
	for (uint32_t i = 0; i < am->peers; i++) {
		struct am_peer *peer = &am->peer[i];

		while (peer->queue.count && am->budget) {
			struct am_copy *copy = am_copies_take(&peer->queue);

			am->queued--;
			handle_copy(am, i, copy);
			free(copy);
		}
	}
}

int am_poll(struct am *am, uint32_t budget)
{
	int code;

	am->handled = 0;
	am->stuck = false;
	am->budget = budget;
	if (UNLIKELY(am->unsent))
		am_send_unsent(am);
	if (UNLIKELY(am->waiting_xfers))
		am_xfers_go_on(am);
	if (UNLIKELY(am->queued))
		handle_queued(am);
	code = cadge_wire_progress(am->wire, am->handled ? 1 : ROUNDS);
	if (UNLIKELY(am->credits_due))
		am_return_credits(am);
	return code < 0 ? code : am->handled;
}

bool am_may_sleep(const struct am *am)
{
	return !am->queued && !am->credits_due && !am->stuck && !am->unsent && !am->waiting_xfers;
}
