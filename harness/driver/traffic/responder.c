/* SPDX-License-Identifier: BSD-3-Clause */
/* Answering requests: at once from inside the callback where the layer allows it, else after poll. */
#include "traffic/responder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/in_place.h"

/* Replies of up to this size get twice the depth of buffers, so that a late completion of a send holds up nothing. */
#define SMALL_BYTES 65536u

void drv_responder_fail(struct drv_responder *responder, int code)
{
	if (responder->failed)
		return;
	responder->failed = responder->port.due = true;
	drv_engine_fail(responder->exchange.form == DRV_FORM_NATIVE ? "reply" : "post", code,
			&responder->fail);
}

void drv_responder_drop(struct drv_line *line)
{
	if (line->check.reliable)
		drv_check_wrong(&line->check, "more requests at a time than its clients have outstanding");
}

/* Hands over an answer whose body is written. */
static int __attribute__((noinline)) answer_written(struct drv_responder *responder, struct drv_line *line,
						    const struct drv_request *request, uint32_t index,
						    uint8_t *at)
{
	struct drv_message *message = &responder->message;
	int code;

	message->at = at;
	message->key = request->key;
	message->id = request->id;
	message->written = DRV_UNLIKELY(line->written == index + 1) && line->written_key == request->key;
	line->written = 0;
	if (responder->exchange.form == DRV_FORM_NATIVE) {
		drv_message_write(message);
		code = drv_responder_hand_over(responder, request, at, index);
	} else {
		code = drv_message_post(responder->port.engine, responder->chans[request->peer], message,
					responder->mark | index);
	}
	if (DRV_UNLIKELY(code == CADGE_BUSY) && message->written) {
		line->written = index + 1;
		line->written_key = request->key;
	}
	return code;
}

/* It is ours again: the last in turn, or the next. */
DRV_INLINE void give_back(const struct drv_responder *responder, struct drv_line *line, uint32_t index)
{
	if (DRV_UNLIKELY(responder->reuse_last))
		drv_responder_put_back(responder, line, index);
	else
		line->free_ring[line->free_tail++ & responder->free_mask] = index;
}

/* Tries to answer. False: not now. */
DRV_INLINE bool answer(struct drv_responder *responder, struct drv_line *line,
		       const struct drv_request *request)
{
	const size_t bytes = (size_t)responder->exchange.reply_bytes;
	uint8_t *payload;
	uint32_t index;
	int code;

	if (DRV_UNLIKELY(line->free_head == line->free_tail))
		return false;
	index = drv_responder_take_buffer(responder, line, &payload);
	if (DRV_UNLIKELY(line->check.reads)) {
		code = answer_written(responder, line, request, index, payload);
	} else {
		drv_head_write(payload, bytes, ~line->check.seed, request->key);
		if (responder->exchange.form == DRV_FORM_EMULATED)
			drv_trailer_write(payload, bytes, request->id, DRV_RPC_REPLY);
		code = drv_responder_hand_over(responder, request, payload, index);
	}
	if (code == CADGE_QUEUED)
		return true;
	if (DRV_UNLIKELY(code == CADGE_BUSY)) {
		drv_responder_put_back(responder, line, index);
		return false;
	}
	give_back(responder, line, index);
	if (DRV_UNLIKELY(code != CADGE_DONE))
		drv_responder_fail(responder, code);
	return true;
}

bool drv_responder_answer(struct drv_responder *responder, const struct drv_request *request)
{
	return answer(responder, drv_responder_line(responder, request->peer), request);
}

DRV_INLINE void put_off(struct drv_responder *responder, struct drv_line *line,
			const struct drv_request *request)
{
	if (DRV_LIKELY(line->requests_tail - line->requests_head <= responder->requests_mask)) {
		line->requests[line->requests_tail++ & responder->requests_mask] = *request;
		responder->port.due = true;
	} else {
		drv_responder_drop(line);
	}
}

DRV_INLINE void accept_request(struct drv_responder *responder, struct drv_line *line,
			       const struct drv_request *request)
{
	if (responder->in_sink && DRV_LIKELY(line->requests_head == line->requests_tail)) {
		if (DRV_UNLIKELY(responder->service != NULL))
			drv_service_do(responder->service, request->key);
		if (DRV_LIKELY(answer(responder, line, request)))
			return;
		line->served = line->requests_tail + 1;
	}
	put_off(responder, line, request);
}

/* One at a time: what waits for its answer was worked for already. */
DRV_INLINE void drain_line(struct drv_responder *responder, struct drv_line *line)
{
	while (line->requests_head != line->requests_tail) {
		const struct drv_request *request =
			&line->requests[line->requests_head & responder->requests_mask];

		if (DRV_UNLIKELY(responder->service != NULL) && line->served != line->requests_head + 1) {
			drv_service_do(responder->service, request->key);
			line->served = line->requests_head + 1;
		}
		if (!answer(responder, line, request)) {
			responder->port.due = true;
			return;
		}
		line->requests_head++;
	}
}

static void __attribute__((noinline)) drain_others(struct drv_responder *responder)
{
	for (uint32_t i = 1; i < responder->lines_count; i++)
		drain_line(responder, &responder->lines[i]);
}

int drv_responder_drain(void *arg, struct drv_fail *fail)
{
	struct drv_responder *responder = arg;

	responder->port.due = responder->failed;
	if (DRV_LIKELY(!responder->pool) || responder->waits) {
		drain_line(responder, responder->lines);
		if (DRV_UNLIKELY(responder->lines_count > 1))
			drain_others(responder);
	}
	if (DRV_UNLIKELY(responder->pool != NULL))
		responder->collect(responder->pool);
	if (DRV_LIKELY(!responder->failed))
		return 0;
	*fail = responder->fail;
	return -1;
}

int drv_responder_drain_latest(void *arg, struct drv_fail *fail)
{
	struct drv_responder *responder = arg;

	return responder->port.due ? drv_responder_drain_with(responder, NULL, fail) : 0;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_responder *responder = (struct drv_responder *)sink;
	struct drv_line *line = drv_responder_line(responder, peer);
	const enum drv_form form = responder->exchange.form;
	struct drv_request request;

	(void)lend;
	request.peer = peer;
	if (DRV_LIKELY(bytes == responder->request_bytes) &&
	    (form == DRV_FORM_BARE ||
	     (form == DRV_FORM_EMULATED && drv_trailer_read(data, bytes, DRV_RPC_REQUEST, &request.id)))) {
		request.key = drv_check_take(&line->check, data, (size_t)responder->exchange.request_bytes);
		accept_request(responder, line, &request);
	} else {
		drv_check_wrong(&line->check, "an unexpected message of %zu bytes", bytes);
	}
	return CADGE_TAKEN;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct drv_responder *responder = (struct drv_responder *)sink;
	struct drv_line *line = drv_responder_line(responder, peer);
	struct drv_request request = {.peer = peer, .reply_to = *reply_to};

	if (DRV_UNLIKELY(bytes != responder->exchange.request_bytes || op != 1 ||
			 responder->exchange.form != DRV_FORM_NATIVE))
		drv_check_wrong(&line->check, "a call of %zu bytes to procedure %u", bytes, op);
	request.key = drv_check_take(&line->check, args, bytes);
	accept_request(responder, line, &request);
}

void drv_responder_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_responder *responder = (struct drv_responder *)sink;
	struct drv_line *line = drv_responder_line(responder, peer);
	const uint64_t index = token ^ responder->mark;

	if (DRV_UNLIKELY(index >= responder->buffers ||
			 line->free_tail - line->free_head >= responder->buffers)) {
		drv_check_wrong(&line->check, "a completion for token %016" PRIx64 " that is not outstanding",
				token);
		return;
	}
	give_back(responder, line, (uint32_t)index);
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		drv_responder_fail(responder, code);
}

static uint32_t power_of_two(uint32_t at_least)
{
	uint32_t power = 1;

	while (power < at_least)
		power *= 2;
	return power;
}

static uint32_t clients_of(const struct drv_exchange *exchange)
{
	return exchange->clients ? exchange->clients : 1;
}

uint32_t drv_responder_outstanding(const struct drv_exchange *exchange)
{
	return exchange->depth * clients_of(exchange);
}

static int start_line(struct drv_responder *responder, uint8_t *replies, struct drv_fail *fail)
{
	const struct drv_exchange *exchange = &responder->exchange;
	const uint64_t caps = responder->port.engine->offer.both.caps;
	struct drv_line *line = &responder->lines[responder->lines_count++];

	line->check.seed = exchange->seed;
	line->check.next_number = exchange->flow_1 ? DRV_FLOW_1_NUMBER : 0;
	line->check.touch = responder->message.touch;
	line->check.reliable = (caps & CADGE_CAP_RELIABLE) != 0;
	/* each client numbers its own requests, over all servers that it asks */
	line->check.by_number =
		clients_of(exchange) == 1 && exchange->servers < 2 &&
		(exchange->depth == 1 || ((caps & CADGE_CAP_ORDERED) && exchange->form != DRV_FORM_NATIVE));
	line->replies = replies;
	line->free_ring = calloc(responder->free_mask + 1u, sizeof(*line->free_ring));
	line->requests = calloc(responder->requests_mask + 1u, sizeof(*line->requests));
	if (!line->free_ring || !line->requests)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the server's rings");
	while (line->free_tail < responder->buffers) {
		line->free_ring[line->free_tail] = line->free_tail;
		line->free_tail++;
	}
	return 0;
}

static int start_lines(struct drv_responder *responder, struct drv_fail *fail)
{
	struct drv_engine *engine = responder->port.engine;
	const struct drv_exchange *exchange = &responder->exchange;
	const uint32_t count = exchange->by_channel ? engine->channels_count : 1;
	const uint32_t depth = drv_responder_outstanding(exchange);
	size_t bytes;
	uint8_t *replies;

	responder->buffers = exchange->reply_bytes <= SMALL_BYTES ? 2 * depth : depth + 1;
	responder->stride = drv_memory_stride(responder->answer_bytes);
	responder->free_mask = power_of_two(responder->buffers) - 1;
	responder->requests_mask = power_of_two(2 * depth) - 1;
	responder->lines = calloc(count, sizeof(*responder->lines));
	if (!responder->lines)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a server of %u channels", count);
	bytes = responder->buffers * responder->stride;
	replies = drv_pool_take(engine, exchange->flow_1 ? DRV_POOL_RESPONDER_FLOW_1 : DRV_POOL_RESPONDER,
				count * bytes, fail);
	if (!replies)
		return -1;
	while (responder->lines_count < count)
		if (start_line(responder, replies + responder->lines_count * bytes, fail))
			return -1;
	return 0;
}

/* Enters a phase: full comparisons or not, and which. */
static void enter_phase(struct drv_responder *responder, bool full, uint64_t serial)
{
	for (uint32_t i = 0; i < responder->lines_count; i++)
		drv_check_phase(&responder->lines[i].check, full, serial);
	responder->message.full = full;
	responder->message.phase = serial;
}

int drv_responder_start(struct drv_responder *responder, struct drv_engine *engine,
			struct drv_exchange exchange, struct drv_fail *fail)
{
	const uint64_t caps = engine->offer.both.caps;

	memset(responder, 0, sizeof(*responder));
	drv_port_start(&responder->port, engine);
	responder->port.sink.recv = on_recv;
	responder->port.sink.call = on_call;
	responder->port.sink.sent = drv_responder_on_sent;
	responder->port.due = false;
	for (uint32_t i = 0; i < engine->channels_count; i++)
		responder->chans[i] = engine->channels[i].chan;
	responder->exchange = exchange;
	responder->request_bytes = (size_t)drv_form_bytes(exchange.form, exchange.request_bytes);
	responder->answer_bytes = (size_t)drv_form_bytes(exchange.form, exchange.reply_bytes);
	/* of two servers on one engine the requests have different sizes */
	responder->port.match = DRV_MATCH_SIZE;
	responder->port.match_bytes = responder->request_bytes;
	responder->message = drv_message_of(engine, exchange.reply_bytes, ~exchange.seed,
					    exchange.touch != DRV_TOUCH_NONE);
	responder->message.trailer = exchange.form == DRV_FORM_EMULATED ? DRV_RPC_REPLY : 0;
	responder->in_sink = (caps & (exchange.form == DRV_FORM_NATIVE ? CADGE_CAP_REPLY_IN_SINK
								       : CADGE_CAP_POST_IN_SINK)) != 0;
	responder->mark = DRV_TOKEN_RESPONDER | (exchange.flow_1 ? DRV_TOKEN_FLOW_1 : 0);
	responder->reuse_last = !responder->message.touch && exchange.reply_bytes > SMALL_BYTES;
	if (start_lines(responder, fail))
		return -1;
	enter_phase(responder, true, 1);
	engine->sink = &responder->port.sink;
	return 0;
}

void drv_responder_stop(struct drv_responder *responder)
{
	for (uint32_t i = 0; i < responder->lines_count; i++) {
		free(responder->lines[i].free_ring);
		free(responder->lines[i].requests);
	}
	free(responder->lines);
	responder->lines = NULL;
	responder->lines_count = 0;
}

void drv_responder_answer_on(struct drv_responder *responder, struct cadge_chan *chan)
{
	for (uint32_t i = 0; i < DRV_PEERS_MAX; i++)
		responder->chans[i] = chan;
}

void drv_responder_phase(struct drv_responder *responder, const struct drv_phase *phase,
			 struct drv_counts *counts)
{
	for (uint32_t i = 0; i < responder->lines_count; i++)
		drv_check_executed(&responder->lines[i].check, counts);
	enter_phase(responder, phase->full, phase->serial);
}
