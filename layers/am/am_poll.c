/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes in: checks, the queue, handlers, returns. */
#include <stdlib.h>

#include "am/am_state.h"

#define ROUNDS 8u /* looks of a poll that finds nothing */

/* What a packet says; `payload` and `words` lie in it. */
struct incoming {
	uint8_t kind, handler, count, to, from, status;
	const uint8_t *words;
	uint8_t *payload;
	size_t bytes;
	uint64_t offset_bytes, long_bytes;
};

static bool parse(uint8_t *data, size_t bytes, struct incoming *in)
{
	const size_t words_end = AM_HEAD_BYTES + 4 * (size_t)data[2];
	const size_t head_bytes = words_end + (data[0] & KIND_LONG ? LONG_BYTES : 0);

	if (UNLIKELY(data[2] > AM_WORDS_MAX || head_bytes > bytes))
		return false;
	*in = (struct incoming){
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
	}
	return true;
}

static void run(struct am *am, struct am_token *token, am_handler *handler, const struct incoming *in)
{
	uint32_t words[AM_WORDS_MAX];

	for (uint32_t i = 0; i < in->count; i++)
		words[i] = cadge_load32(in->words + 4 * i);
	am->handled++;
	am->inside = true;
	handler(token, words, in->count, in->payload, in->bytes);
	am->inside = false;
}

/* Of a long message: its payload lies in the segment. */
static bool find_payload(const struct am_endpoint *endpoint, struct incoming *in)
{
	if (in->long_bytes > endpoint->segment_bytes ||
	    in->offset_bytes > endpoint->segment_bytes - in->long_bytes)
		return false;
	in->payload = endpoint->segment + in->offset_bytes;
	in->bytes = (size_t)in->long_bytes;
	return true;
}

static enum am_status check_request(const struct am *am, const uint8_t *data, struct incoming *in)
{
	const struct am_endpoint *endpoint;

	if (UNLIKELY(in->to >= am->endpoints_count))
		return AM_BAD_ENDPOINT;
	endpoint = am->endpoints[in->to];
	if (UNLIKELY(cadge_load64(data + 8) != endpoint->tag && !am->untagged))
		return AM_BAD_TAG;
	if (UNLIKELY(in->handler == AM_RETURNED || !endpoint->handlers[in->handler]))
		return AM_BAD_HANDLER;
	if (in->kind & KIND_LONG && !find_payload(endpoint, in))
		return AM_BAD_SEGMENT;
	return 0;
}

static void return_to_sender(struct am *am, struct am_peer *peer, const uint8_t *data, size_t bytes,
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

static void handle_request(struct am *am, uint32_t number, uint8_t *data, size_t bytes, struct incoming *in)
{
	struct am_peer *peer = &am->peer[number];
	const enum am_status status = check_request(am, data, in);
	struct am_token token = {.am = am,
				 .peer = number,
				 .kind = in->kind,
				 .handler = in->handler,
				 .source_endpoint = in->from};

	am->budget--;
	if (UNLIKELY(status)) {
		return_to_sender(am, peer, data, bytes, status);
		return;
	}
	token.endpoint = am->endpoints[in->to];
	run(am, &token, token.endpoint->handlers[in->handler], in);
	if (!token.replied && !am->uncredited && ++peer->owed >= peer->window / 2)
		am->debts = true;
}

/* A request that waits, or goes back: the endpoint is full. */
static void queue_request(struct am *am, struct am_peer *peer, uint8_t *data, size_t bytes)
{
	if (peer->queue.count >= am->queue || am_copies_add(&peer->queue, data, bytes, NULL, 0) != CADGE_DONE)
		return_to_sender(am, peer, data, bytes, AM_CONGESTION);
	else
		am->queued++;
}

static void handle_answer(struct am *am, uint32_t number, struct incoming *in)
{
	const bool returned = (in->kind & KIND_MASK) == KIND_RETURNED;
	struct am_token token = {.am = am,
				 .peer = number,
				 .kind = in->kind,
				 .handler = in->handler,
				 .status = in->status,
				 .source_endpoint = in->from};
	am_handler *handler = NULL;

	if (!UNLIKELY(in->to >= am->endpoints_count)) {
		token.endpoint = am->endpoints[in->to];
		handler = token.endpoint->handlers[returned ? AM_RETURNED : in->handler];
		if (!returned && in->kind & KIND_LONG && !find_payload(token.endpoint, in))
			handler = NULL;
	}
	am->returned_to_us += returned;
	if (UNLIKELY(!handler))
		am->packets_refused++;
	else
		run(am, &token, handler, in);
}

enum cadge_keep am_on_packet(void *arg, uint32_t number, void *packet, size_t bytes)
{
	struct am *am = arg;
	struct am_peer *peer = &am->peer[number];
	uint8_t *data = packet;
	struct incoming in;
	uint32_t given;

	if (UNLIKELY(bytes < AM_HEAD_BYTES || !parse(data, bytes, &in))) {
		am->packets_refused++;
		return CADGE_TAKEN;
	}
	given = ((uint32_t)data[6] | (uint32_t)data[7] << 8) +
		((in.kind & KIND_MASK) == KIND_REPLY || (in.kind & KIND_MASK) == KIND_RETURNED);
	if (!am->uncredited) {
		if (UNLIKELY(given > am->outstanding - peer->credits)) { /* answers that nobody asked for */
			am->packets_refused++;
			return CADGE_TAKEN;
		}
		peer->credits += given;
	}
	switch (in.kind & KIND_MASK) {
	case KIND_REQUEST:
		if (UNLIKELY(!am->budget || peer->queue.count))
			queue_request(am, peer, data, bytes);
		else
			handle_request(am, number, data, bytes, &in);
		break;
	case KIND_REPLY:
	case KIND_RETURNED: handle_answer(am, number, &in); break;
	case KIND_ACK: break;
	default: am->packets_refused++; break;
	}
	return CADGE_TAKEN;
}

static void handle_queued(struct am *am)
{
	for (uint32_t i = 0; i < am->peers; i++) {
		struct am_peer *peer = &am->peer[i];

		while (peer->queue.count && am->budget) {
			struct am_copy *copy = am_copies_take(&peer->queue);
			struct incoming in;

			am->queued--;
			if (parse(copy->data, copy->bytes, &in)) /* it did before */
				handle_request(am, i, copy->data, copy->bytes, &in);
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
	if (UNLIKELY(am->debts))
		am_pay_debts(am);
	return code < 0 ? code : am->handled;
}

bool am_may_sleep(const struct am *am)
{
	return !am->queued && !am->debts && !am->stuck && !am->unsent && !am->waiting_xfers;
}
