/* SPDX-License-Identifier: BSD-3-Clause */
/* Answering requests: at once from inside the callback where the layer allows it, else after poll. */
#include "traffic/server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/in_place.h"
#include "traffic/ask.h"

/* Replies of up to this size get twice the depth of buffers, so that a late completion of a send holds up nothing. */
#define SMALL_BYTES 65536u

void drv_server_fail(struct drv_server *server, int code)
{
	if (server->failed)
		return;
	server->failed = server->port.due = true;
	drv_engine_fail(server->exchange.form == DRV_FORM_NATIVE ? "reply" : "post", code, &server->fail);
}

void drv_server_drop(struct drv_line *line)
{
	if (line->check.reliable)
		drv_check_wrong(&line->check, "more requests at a time than its clients have outstanding");
}

/* Hands over an answer whose body is written. */
static int __attribute__((noinline)) answer_written(struct drv_server *server, struct drv_line *line,
						    const struct drv_work *work, uint32_t index, uint8_t *at)
{
	struct drv_message *message = &server->message;
	int code;

	message->at = at;
	message->key = work->key;
	message->id = work->id;
	message->written = line->written == index + 1 && line->written_key == work->key;
	if (server->exchange.form == DRV_FORM_NATIVE) {
		drv_message_write(message);
		code = drv_server_hand_over(server, work, at, index);
	} else {
		code = drv_message_post(server->port.engine, server->chans[work->peer], message,
					server->mark | index);
	}
	line->written = code == CADGE_BUSY && message->written ? index + 1 : 0;
	line->written_key = work->key;
	return code;
}

/* It is the next one. */
DRV_INLINE void put_back(const struct drv_server *server, struct drv_line *line, uint32_t index)
{
	line->free_ring[--line->free_head & server->free_mask] = index;
}

/* It is ours again: the last in turn, or the next. */
DRV_INLINE void give_back(const struct drv_server *server, struct drv_line *line, uint32_t index)
{
	if (DRV_UNLIKELY(server->hot))
		put_back(server, line, index);
	else
		line->free_ring[line->free_tail++ & server->free_mask] = index;
}

/* Hands over the answer that is due. A busy layer is asked again with the same buffer. */
DRV_INLINE int answer_latest(struct drv_server *server, uint32_t index, uint8_t *at)
{
	struct drv_message *message = &server->message;

	message->at = at;
	if (server->sized) {
		message->bytes = drv_ask_bytes(message->key);
	} else if (server->fill) {
		server->fill(server, at);
		message->written = true;
	}
	return drv_message_post(server->port.engine, server->chans[0], message, server->mark | index);
}

/* Tries to answer. False: not now. */
DRV_INLINE bool answer_as(struct drv_server *server, struct drv_line *line, const struct drv_work *work,
			  const bool latest)
{
	const size_t bytes = (size_t)server->exchange.reply_bytes;
	uint8_t *payload;
	uint32_t index;
	int code;

	if (DRV_UNLIKELY(line->free_head == line->free_tail))
		return false;
	index = line->free_ring[line->free_head++ & server->free_mask];
	payload = line->replies + (size_t)index * server->stride;
	if (latest) {
		code = answer_latest(server, index, payload);
	} else if (DRV_UNLIKELY(line->check.reads)) {
		code = answer_written(server, line, work, index, payload);
	} else {
		drv_head_write(payload, bytes, ~line->check.seed, work->key);
		if (server->exchange.form == DRV_FORM_EMULATED)
			drv_trailer_write(payload, bytes, work->id, DRV_RPC_REPLY);
		code = drv_server_hand_over(server, work, payload, index);
	}
	if (code == CADGE_QUEUED)
		return true;
	if (DRV_UNLIKELY(code == CADGE_BUSY)) {
		put_back(server, line, index);
		return false;
	}
	give_back(server, line, index);
	if (DRV_UNLIKELY(code != CADGE_DONE))
		drv_server_fail(server, code);
	return true;
}

DRV_INLINE bool answer(struct drv_server *server, struct drv_line *line, const struct drv_work *work)
{
	return answer_as(server, line, work, false);
}

/* Other threads do the work. */
static void __attribute__((noinline)) give_away(struct drv_server *server, struct drv_line *line,
						const struct drv_work *work)
{
	uint32_t job;

	if (!drv_jobs_take(server->jobs, &job)) {
		drv_server_drop(line);
		return;
	}
	line->work[job] = *work;
	drv_jobs_submit(server->jobs, job);
}

DRV_INLINE void put_off(struct drv_server *server, struct drv_line *line, const struct drv_work *work)
{
	if (DRV_UNLIKELY(server->jobs != NULL)) {
		give_away(server, line, work);
	} else if (DRV_LIKELY(line->work_tail - line->work_head <= server->work_mask)) {
		line->work[line->work_tail++ & server->work_mask] = *work;
		server->port.due = true;
	} else {
		drv_server_drop(line);
	}
}

DRV_INLINE void accept_work(struct drv_server *server, struct drv_line *line, const struct drv_work *work)
{
	if (server->in_sink && DRV_LIKELY(line->work_head == line->work_tail)) {
		if (DRV_UNLIKELY(server->service != NULL))
			drv_service_do(server->service, work->key);
		if (DRV_LIKELY(answer(server, line, work)))
			return;
		line->served = line->work_tail + 1;
	}
	put_off(server, line, work);
}

/* What other threads have done; then no request waits for its turn here. */
static void __attribute__((noinline)) answer_done(struct drv_server *server)
{
	struct drv_line *line = server->lines;
	uint32_t job;

	drv_jobs_collect(server->jobs);
	while (drv_jobs_first(server->jobs, &job) && answer(server, line, &line->work[job])) {
		drv_jobs_pop(server->jobs);
		drv_jobs_release(server->jobs, job);
	}
}

/* One at a time: what waits for its answer was worked for already. */
DRV_INLINE void drain_line(struct drv_server *server, struct drv_line *line)
{
	while (line->work_head != line->work_tail) {
		const struct drv_work *work = &line->work[line->work_head & server->work_mask];

		if (DRV_UNLIKELY(server->service != NULL) && line->served != line->work_head + 1) {
			drv_service_do(server->service, work->key);
			line->served = line->work_head + 1;
		}
		if (!answer(server, line, work)) {
			server->port.due = true;
			return;
		}
		line->work_head++;
	}
}

static void __attribute__((noinline)) drain_others(struct drv_server *server)
{
	for (uint32_t i = 1; i < server->lines_count; i++)
		drain_line(server, &server->lines[i]);
}

int drv_server_drain(struct drv_server *server, struct drv_fail *fail)
{
	server->port.due = server->failed || server->jobs;
	if (DRV_UNLIKELY(server->jobs != NULL))
		answer_done(server);
	drain_line(server, server->lines);
	if (DRV_UNLIKELY(server->lines_count > 1))
		drain_others(server);
	if (DRV_LIKELY(!server->failed))
		return 0;
	*fail = server->fail;
	return -1;
}

int drv_server_drain_latest(struct drv_server *server, struct drv_fail *fail)
{
	if (DRV_LIKELY(!server->failed) && server->port.due)
		server->port.due = !answer_as(server, server->lines, NULL, true);
	if (DRV_LIKELY(!server->failed))
		return 0;
	server->port.due = true;
	*fail = server->fail;
	return -1;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_server *server = (struct drv_server *)sink;
	struct drv_line *line = drv_server_line(server, peer);
	const enum drv_form form = server->exchange.form;
	struct drv_work work;

	(void)lend;
	work.peer = peer;
	if (DRV_LIKELY(bytes == server->request_bytes) &&
	    (form == DRV_FORM_BARE ||
	     (form == DRV_FORM_EMULATED && drv_trailer_read(data, bytes, DRV_RPC_REQUEST, &work.id)))) {
		work.key = drv_check_take(&line->check, data, (size_t)server->exchange.request_bytes);
		accept_work(server, line, &work);
	} else {
		drv_check_wrong(&line->check, "an unexpected message of %zu bytes", bytes);
	}
	return CADGE_TAKEN;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct drv_server *server = (struct drv_server *)sink;
	struct drv_line *line = drv_server_line(server, peer);
	struct drv_work work = {.peer = peer, .reply_to = *reply_to};

	if (DRV_UNLIKELY(bytes != server->exchange.request_bytes || op != 1 ||
			 server->exchange.form != DRV_FORM_NATIVE))
		drv_check_wrong(&line->check, "a call of %zu bytes to procedure %u", bytes, op);
	work.key = drv_check_take(&line->check, args, bytes);
	accept_work(server, line, &work);
}

void drv_server_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_server *server = (struct drv_server *)sink;
	struct drv_line *line = drv_server_line(server, peer);
	const uint64_t index = token ^ server->mark;

	if (DRV_UNLIKELY(index >= server->buffers || line->free_tail - line->free_head >= server->buffers)) {
		drv_check_wrong(&line->check, "a completion for token %016" PRIx64 " that is not outstanding",
				token);
		return;
	}
	give_back(server, line, (uint32_t)index);
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		drv_server_fail(server, code);
}

/* Of two servers on one engine the requests have different sizes. */
static bool claims(const struct drv_port *port, const void *data, size_t bytes)
{
	(void)data;
	return bytes == ((const struct drv_server *)port)->request_bytes;
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

uint32_t drv_server_outstanding(const struct drv_exchange *exchange)
{
	return exchange->depth * clients_of(exchange);
}

static int start_line(struct drv_server *server, uint8_t *replies, struct drv_fail *fail)
{
	const struct drv_exchange *exchange = &server->exchange;
	const uint64_t caps = server->port.engine->offer.both.caps;
	struct drv_line *line = &server->lines[server->lines_count++];

	line->check.seed = exchange->seed;
	line->check.next_number = exchange->beside ? DRV_BESIDE_NUMBER : 0;
	line->check.touch = server->message.touch;
	line->check.reliable = (caps & CADGE_CAP_RELIABLE) != 0;
	/* each client numbers its own requests, over all servers that it asks */
	line->check.by_number =
		clients_of(exchange) == 1 && exchange->servers < 2 &&
		(exchange->depth == 1 || ((caps & CADGE_CAP_ORDERED) && exchange->form != DRV_FORM_NATIVE));
	line->replies = replies;
	line->free_ring = calloc(server->free_mask + 1u, sizeof(*line->free_ring));
	line->work = calloc(server->work_mask + 1u, sizeof(*line->work));
	if (!line->free_ring || !line->work)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the server's rings");
	while (line->free_tail < server->buffers) {
		line->free_ring[line->free_tail] = line->free_tail;
		line->free_tail++;
	}
	return 0;
}

static int start_lines(struct drv_server *server, struct drv_fail *fail)
{
	struct drv_engine *engine = server->port.engine;
	const struct drv_exchange *exchange = &server->exchange;
	const uint32_t count = exchange->by_channel ? engine->channels_count : 1;
	const uint32_t depth = drv_server_outstanding(exchange);
	size_t bytes;
	uint8_t *replies;

	server->buffers = exchange->reply_bytes <= SMALL_BYTES ? 2 * depth : depth + 1;
	server->stride = drv_memory_stride(server->answer_bytes);
	server->free_mask = power_of_two(server->buffers) - 1;
	server->work_mask = power_of_two(2 * depth) - 1;
	server->lines = calloc(count, sizeof(*server->lines));
	if (!server->lines)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a server of %u channels", count);
	bytes = server->buffers * server->stride;
	replies = drv_pool_take(engine, exchange->beside ? DRV_POOL_SERVER_BESIDE : DRV_POOL_SERVER,
				count * bytes, fail);
	if (!replies)
		return -1;
	while (server->lines_count < count)
		if (start_line(server, replies + server->lines_count * bytes, fail))
			return -1;
	return 0;
}

/* Enters a phase: full comparisons or not, and which. */
static void enter_phase(struct drv_server *server, bool full, uint64_t serial)
{
	for (uint32_t i = 0; i < server->lines_count; i++)
		drv_check_phase(&server->lines[i].check, full, serial);
	server->message.full = full;
	server->message.phase = serial;
}

int drv_server_start(struct drv_server *server, struct drv_engine *engine, struct drv_exchange exchange,
		     struct drv_fail *fail)
{
	const uint64_t caps = engine->offer.both.caps;

	memset(server, 0, sizeof(*server));
	drv_port_start(&server->port, engine);
	server->port.sink.recv = on_recv;
	server->port.sink.call = on_call;
	server->port.sink.sent = drv_server_on_sent;
	server->port.claim = DRV_CLAIM_ASK;
	server->port.claims = claims;
	server->port.due = false;
	for (uint32_t i = 0; i < engine->channels_count; i++)
		server->chans[i] = engine->channels[i].chan;
	server->exchange = exchange;
	server->request_bytes = (size_t)drv_form_bytes(exchange.form, exchange.request_bytes);
	server->answer_bytes = (size_t)drv_form_bytes(exchange.form, exchange.reply_bytes);
	server->message =
		(struct drv_message){.bytes = (size_t)exchange.reply_bytes,
				     .seed = ~exchange.seed,
				     .touch = exchange.touch != DRV_TOUCH_NONE,
				     .trailer = exchange.form == DRV_FORM_EMULATED ? DRV_RPC_REPLY : 0};
	server->in_sink = (caps & (exchange.form == DRV_FORM_NATIVE ? CADGE_CAP_REPLY_IN_SINK
								    : CADGE_CAP_POST_IN_SINK)) != 0;
	server->mark = DRV_TOKEN_SERVER | (exchange.beside ? DRV_TOKEN_BESIDE : 0);
	server->hot = !server->message.touch && exchange.reply_bytes > SMALL_BYTES;
	if (start_lines(server, fail))
		return -1;
	enter_phase(server, true, 1);
	engine->sink = &server->port.sink;
	return 0;
}

void drv_server_stop(struct drv_server *server)
{
	for (uint32_t i = 0; i < server->lines_count; i++) {
		free(server->lines[i].free_ring);
		free(server->lines[i].work);
	}
	free(server->lines);
	server->lines = NULL;
	server->lines_count = 0;
}

void drv_server_work(struct drv_server *server, struct drv_service *service, struct drv_jobs *jobs)
{
	server->service = service;
	server->jobs = jobs;
	server->in_sink &= !jobs;
	server->port.due = jobs != NULL;
}

void drv_server_answer_on(struct drv_server *server, struct cadge_chan *chan)
{
	for (uint32_t i = 0; i < DRV_PEERS_MAX; i++)
		server->chans[i] = chan;
}

void drv_server_phase(struct drv_server *server, const struct drv_phase *phase, struct drv_counts *counts)
{
	for (uint32_t i = 0; i < server->lines_count; i++)
		drv_check_executed(&server->lines[i].check, counts);
	enter_phase(server, phase->full, phase->serial);
}
