/* SPDX-License-Identifier: BSD-3-Clause */
#include "delegated/forward.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launch/pattern.h"
#include "traffic/progress.h"

/* Sends may be reported late: requests for each operation that can be
 * outstanding. */
enum { REQUESTS_PER_OPERATION = 4 };

/* NULL: none is free. */
DRV_INLINE struct drv_forward_request *take_request(struct drv_forward *forward, uint32_t *index_out)
{
	if (DRV_UNLIKELY(forward->free_head == forward->free_tail)) {
		/* over an unreliable layer this message is one that got lost */
		if (forward->progress.check.reliable)
			drv_check_wrong(&forward->progress.check,
					"more messages at a time than operations are outstanding");
		return NULL;
	}
	*index_out = forward->free_ring[forward->free_head++ & forward->mask];
	return &forward->requests[*index_out];
}

DRV_INLINE void free_request(struct drv_forward *forward, uint32_t index)
{
	const struct drv_engine *engine = forward->progress.port.engine;
	struct drv_forward_request *request = &forward->requests[index];

	if (request->lend)
		engine->layer->release(engine->ctx, request->lend);
	request->lend = NULL;
	forward->free_ring[forward->free_tail++ & forward->mask] = index;
}

/* Hands one request to the layer. False: it is busy. */
DRV_INLINE bool hand_over(struct drv_forward *forward, uint32_t index)
{
	const struct drv_engine *engine = forward->progress.port.engine;
	const struct cadge_layer *layer = engine->layer;
	struct drv_forward_request *request = &forward->requests[index];
	struct cadge_chan *chan = engine->channels[request->to].chan;
	const struct cadge_iov iov = {(void *)(uintptr_t)request->data, request->bytes};
	const bool native = forward->exchange.form == DRV_FORM_NATIVE;
	const char *what = "post";
	int code;

	if (!native) {
		code = layer->post(chan, &iov, 1, 0, index);
	} else if (request->to == DRV_FORWARD_CLIENT) {
		what = "reply";
		code = layer->reply(engine->ctx, &request->reply_to, &iov, 1, 0, index);
	} else if (forward->route == DRV_ROUTE_DELEGATED) {
		what = "delegate";
		code = layer->delegate(chan, &request->reply_to, 1, &iov, 1, 0, index);
	} else {
		const struct cadge_iov result = {request->result, (size_t)forward->exchange.reply_bytes};

		what = "call";
		code = layer->call(chan, 1, &iov, 1, &result, result.bytes ? 1 : 0, 0, index);
	}
	if (DRV_UNLIKELY(code == CADGE_BUSY))
		return false;
	if (code == CADGE_QUEUED)
		return true;
	free_request(forward, index);
	if (DRV_UNLIKELY(code != CADGE_DONE))
		drv_progress_fail(&forward->progress, what, code);
	return true;
}

DRV_INLINE void pass_on(struct drv_forward *forward, uint32_t index)
{
	if (forward->in_sink && DRV_LIKELY(forward->waiting_head == forward->waiting_tail) &&
	    DRV_LIKELY(hand_over(forward, index)))
		return;
	forward->waiting_ring[forward->waiting_tail++ & forward->mask] = index;
}

static int drain_waiting(struct drv_forward *forward)
{
	while (forward->waiting_head != forward->waiting_tail &&
	       hand_over(forward, forward->waiting_ring[forward->waiting_head & forward->mask]))
		forward->waiting_head++;
	return DRV_UNLIKELY(forward->progress.failed) ? -1 : 0;
}

/* Whether the request keeps what is lent: where it does not, it has a copy. */
DRV_INLINE bool fill_request(struct drv_forward_request *request, const void *data, size_t bytes,
			     struct cadge_lend *lend)
{
	request->bytes = bytes;
	request->lend = lend;
	request->data = data;
	if (lend)
		return true;
	request->data = request->memory;
	if (bytes)
		memcpy(request->memory, data, bytes);
	return false;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_forward *forward = (struct drv_forward *)sink;
	const bool from_client = peer == DRV_FORWARD_CLIENT;
	const uint64_t wanted = from_client ? forward->exchange.request_bytes : forward->exchange.reply_bytes;
	struct drv_forward_request *request;
	uint32_t index;
	bool keeps;

	if (DRV_UNLIKELY(bytes != wanted + DRV_RPC_TRAILER_BYTES || forward->route == DRV_ROUTE_DIRECT ||
			 (!from_client && forward->route == DRV_ROUTE_DELEGATED))) {
		drv_check_wrong(&forward->progress.check,
				"an unexpected message of %zu bytes from channel %" PRIu32, bytes, peer);
		return CADGE_TAKEN;
	}
	request = take_request(forward, &index);
	if (DRV_UNLIKELY(!request))
		return CADGE_TAKEN;
	keeps = fill_request(request, data, bytes, lend);
	request->to = from_client ? DRV_FORWARD_SERVER : DRV_FORWARD_CLIENT;
	pass_on(forward, index);
	return keeps ? CADGE_KEEP : CADGE_TAKEN;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct drv_forward *forward = (struct drv_forward *)sink;
	struct drv_forward_request *request;
	uint32_t index;

	if (DRV_UNLIKELY(bytes != forward->exchange.request_bytes || op != 1 || peer != DRV_FORWARD_CLIENT ||
			 forward->route == DRV_ROUTE_DIRECT)) {
		drv_check_wrong(&forward->progress.check,
				"a call of %zu bytes to procedure %u from channel %" PRIu32, bytes, op, peer);
		return;
	}
	request = take_request(forward, &index);
	if (DRV_UNLIKELY(!request))
		return;
	fill_request(request, args, bytes, NULL); /* arguments are lent until return */
	request->reply_to = *reply_to;
	request->to = DRV_FORWARD_SERVER;
	pass_on(forward, index);
}

/* Relay over the layer's calls: the result of a call of ours, which is the
 * answer to the client's. */
static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct drv_forward *forward = (struct drv_forward *)sink;
	struct drv_forward_request *request;
	bool keeps = false;

	(void)peer;
	if (DRV_UNLIKELY(token > forward->mask || bytes != forward->exchange.reply_bytes)) {
		drv_check_wrong(&forward->progress.check, "an unexpected result of %zu bytes", bytes);
		return CADGE_TAKEN;
	}
	if (DRV_UNLIKELY(code < 0)) {
		drv_progress_fail(&forward->progress, "call", code);
		return CADGE_TAKEN;
	}
	request = &forward->requests[token];
	if (placement == CADGE_LENT) {
		keeps = fill_request(request, data, bytes, lend);
	} else {
		request->data = request->result;
		request->bytes = bytes;
	}
	request->to = DRV_FORWARD_CLIENT;
	pass_on(forward, (uint32_t)token);
	return keeps ? CADGE_KEEP : CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_forward *forward = (struct drv_forward *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token > forward->mask)) {
		drv_check_wrong(&forward->progress.check,
				"a completion for token %" PRIu64 " that is not outstanding", token);
		return;
	}
	free_request(forward, (uint32_t)token);
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		drv_progress_fail(&forward->progress, "post", code);
}

int drv_forward_start(struct drv_forward *forward, struct drv_engine *engine, struct drv_exchange exchange,
		      enum drv_route route, struct drv_fail *fail)
{
	const uint64_t caps = engine->offer.both.caps;
	const bool relays = route == DRV_ROUTE_RELAY, native = exchange.form == DRV_FORM_NATIVE;
	const uint64_t longest = relays && !native && exchange.reply_bytes > exchange.request_bytes
					 ? exchange.reply_bytes
					 : exchange.request_bytes;
	const size_t memory_stride = drv_memory_stride(drv_form_bytes(exchange.form, longest));
	const size_t result_stride = relays && native ? drv_memory_stride(exchange.reply_bytes) : 0;
	uint32_t count = 1;
	uint8_t *memory;

	memset(forward, 0, sizeof(*forward));
	drv_progress_start(&forward->progress, engine, on_recv, NULL, 0);
	forward->progress.port.sink.call = on_call;
	forward->progress.port.sink.replied = on_replied;
	forward->progress.port.sink.sent = on_sent;
	forward->exchange = exchange;
	forward->route = route;
	forward->in_sink =
		(caps & CADGE_CAP_POST_IN_SINK) != 0 && (!native || caps & CADGE_CAP_REPLY_IN_SINK);
	while (count < REQUESTS_PER_OPERATION * exchange.depth)
		count *= 2;
	forward->mask = count - 1;
	forward->requests = calloc(count, sizeof(*forward->requests));
	forward->free_ring = calloc(count, sizeof(*forward->free_ring));
	forward->waiting_ring = calloc(count, sizeof(*forward->waiting_ring));
	if (!forward->requests || !forward->free_ring || !forward->waiting_ring) {
		drv_forward_stop(forward);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the rings of who passes on");
	}
	memory = drv_pool_take(engine, DRV_POOL_RESPONDER, count * (memory_stride + result_stride), fail);
	if (!memory) {
		drv_forward_stop(forward);
		return -1;
	}
	for (uint32_t i = 0; i < count; i++) {
		forward->requests[i].memory = memory + i * (memory_stride + result_stride);
		forward->requests[i].result = forward->requests[i].memory + memory_stride;
		forward->free_ring[forward->free_tail++] = i;
	}
	return 0;
}

void drv_forward_stop(struct drv_forward *forward)
{
	free(forward->requests);
	free(forward->free_ring);
	free(forward->waiting_ring);
	forward->requests = NULL;
	forward->free_ring = forward->waiting_ring = NULL;
}

void drv_forward_counts(const struct drv_forward *forward, struct drv_counts *counts)
{
	drv_check_counts(&forward->progress.check, counts);
}

DRV_INLINE bool due(void *arg)
{
	const struct drv_forward *forward = arg;

	return forward->waiting_head != forward->waiting_tail || forward->progress.failed;
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	struct drv_forward *forward = arg;

	if (!drain_waiting(forward))
		return 0;
	*fail = forward->progress.fail;
	return -1;
}

static bool waits(void *arg)
{
	const struct drv_forward *forward = arg;

	return forward->free_tail - forward->free_head <= forward->mask && !forward->progress.failed;
}

void drv_forward_settle(struct drv_forward *forward)
{
	forward->progress.other = forward;
	forward->progress.drain = drain;
	drv_progress_settle(&forward->progress, waits, forward);
}

int drv_forward_run(struct drv_forward *forward, json_t **message_out, struct drv_fail *fail)
{
	return drv_poll_until_message(forward->progress.port.engine, &forward->progress.port.sink, forward,
				      due, drain, message_out, fail);
}
