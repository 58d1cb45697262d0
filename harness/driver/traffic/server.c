/* SPDX-License-Identifier: BSD-3-Clause */
/* Answering requests: at once from inside the callback where the layer allows it, else after poll. */
#include "traffic/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/in_place.h"
#include "traffic/progress.h"

/* Replies of up to this size get twice the depth of buffers, so that a late completion of a send holds up nothing. */
#define SMALL_BYTES 65536u

static void __attribute__((cold, noinline)) note_failure(struct drv_server *server, const char *what,
							 int code)
{
	if (server->failed)
		return;
	server->failed = server->port.due = true;
	drv_engine_fail(what, code, &server->fail);
}

/* Hands over an answer whose body is written. */
static int __attribute__((noinline)) answer_written(struct drv_server *server, const struct drv_work *work,
						    uint32_t index, uint8_t *at)
{
	const struct drv_engine *engine = server->port.engine;
	struct drv_message *message = &server->message;
	const uint64_t token = server->mark | index;
	int code;

	message->at = at;
	message->key = work->key;
	message->id = work->id;
	message->written = server->written == index + 1 && server->written_key == work->key;
	if (server->exchange.form == DRV_FORM_NATIVE) {
		const struct cadge_iov iov = {at, message->bytes};

		drv_message_write(message);
		code = engine->layer->reply(engine->ctx, &work->reply_to, &iov, 1, 0, token);
	} else {
		code = drv_message_post(engine, server->chans[work->peer], message, token);
	}
	server->written = code == CADGE_BUSY && message->written ? index + 1 : 0;
	server->written_key = work->key;
	return code;
}

/* It is the next one. */
DRV_INLINE void put_back(struct drv_server *server, uint32_t index)
{
	server->free_ring[--server->free_head & server->free_mask] = index;
}

/* It is ours again: the last in turn, or the next. */
DRV_INLINE void give_back(struct drv_server *server, uint32_t index)
{
	if (DRV_UNLIKELY(server->hot))
		put_back(server, index);
	else
		server->free_ring[server->free_tail++ & server->free_mask] = index;
}

/* Tries to answer. 1: done; 0: not now. */
DRV_INLINE int answer(struct drv_server *server, const struct drv_work *work)
{
	struct drv_engine *engine = server->port.engine;
	const size_t bytes = (size_t)server->exchange.reply_bytes;
	uint8_t *payload;
	uint32_t index;
	int code;

	if (DRV_UNLIKELY(server->free_head == server->free_tail))
		return 0;
	index = server->free_ring[server->free_head++ & server->free_mask];
	payload = server->replies + (size_t)index * server->stride;
	if (DRV_UNLIKELY(server->check.reads)) {
		code = answer_written(server, work, index, payload);
	} else {
		const struct cadge_iov iov = {payload, (size_t)drv_form_bytes(server->exchange.form, bytes)};
		const uint64_t token = server->mark | index;

		drv_head_write(payload, bytes, ~server->check.seed, work->key);
		if (server->exchange.form == DRV_FORM_EMULATED)
			drv_trailer_write(payload, bytes, work->id, DRV_RPC_REPLY);
		code = server->exchange.form == DRV_FORM_NATIVE
			       ? engine->layer->reply(engine->ctx, &work->reply_to, &iov, 1, 0, token)
			       : engine->layer->post(server->chans[work->peer], &iov, 1, 0, token);
	}
	if (code == CADGE_QUEUED)
		return 1;
	if (DRV_UNLIKELY(code == CADGE_BUSY)) {
		put_back(server, index);
		return 0;
	}
	give_back(server, index);
	if (DRV_UNLIKELY(code != CADGE_DONE))
		note_failure(server, server->exchange.form == DRV_FORM_NATIVE ? "reply" : "post", code);
	return 1;
}

/* More requests than the client may have outstanding: where losses are known this one counts as lost. */
static void __attribute__((cold, noinline)) drop(struct drv_server *server)
{
	if (server->check.reliable)
		drv_check_wrong(&server->check, "more requests at a time than its clients have outstanding");
}

static void __attribute__((noinline)) put_off(struct drv_server *server, const struct drv_work *work)
{
	if (DRV_LIKELY(server->work_tail - server->work_head <= server->work_mask)) {
		server->work[server->work_tail++ & server->work_mask] = *work;
		server->port.due = true;
		return;
	}
	drop(server);
}

/* Other threads do the work. */
static void __attribute__((noinline)) give_away(struct drv_server *server, const struct drv_work *work)
{
	uint32_t job;

	if (!drv_jobs_take(server->jobs, &job)) {
		drop(server);
		return;
	}
	server->work[job] = *work;
	drv_jobs_submit(server->jobs, job);
}

/* `serves`, here and below: it works before it answers. Compiled with and without, so that it is asked nowhere. */
DRV_INLINE void accept_work(struct drv_server *server, const struct drv_work *work, const bool serves)
{
	if (serves && server->jobs) {
		give_away(server, work);
		return;
	}
	if (server->in_sink && DRV_LIKELY(server->work_head == server->work_tail)) {
		if (serves)
			drv_service_do(server->service, work->key);
		if (DRV_LIKELY(answer(server, work)))
			return;
		if (serves)
			server->served = server->work_tail + 1;
	}
	put_off(server, work);
}

/* What other threads have done; then no request waits for its turn here. */
static void __attribute__((noinline)) answer_done(struct drv_server *server)
{
	uint32_t job;

	drv_jobs_collect(server->jobs);
	while (drv_jobs_first(server->jobs, &job) && answer(server, &server->work[job])) {
		drv_jobs_pop(server->jobs);
		drv_jobs_release(server->jobs, job);
	}
}

/* One at a time: what waits for its answer was worked for already. */
int drv_server_drain(struct drv_server *server, struct drv_fail *fail)
{
	if (server->jobs)
		answer_done(server);
	while (server->work_head != server->work_tail) {
		const struct drv_work *work = &server->work[server->work_head & server->work_mask];

		if (server->service && server->served != server->work_head + 1) {
			drv_service_do(server->service, work->key);
			server->served = server->work_head + 1;
		}
		if (!answer(server, work))
			break;
		server->work_head++;
	}
	server->port.due = server->jobs || server->failed || server->work_head != server->work_tail;
	if (DRV_LIKELY(!server->failed))
		return 0;
	*fail = server->fail;
	return -1;
}

DRV_INLINE enum cadge_keep take_message(struct drv_server *server, uint32_t peer, const void *data,
					size_t bytes, const bool serves)
{
	struct drv_work work;

	work.peer = peer;
	if (server->exchange.form == DRV_FORM_BARE) {
		if (DRV_LIKELY(bytes == server->exchange.request_bytes)) {
			work.key = drv_check_take(&server->check, data, bytes);
			accept_work(server, &work, serves);
			return CADGE_TAKEN;
		}
	} else if (server->exchange.form == DRV_FORM_EMULATED) {
		if (DRV_LIKELY(bytes == server->exchange.request_bytes + DRV_RPC_TRAILER_BYTES) &&
		    drv_trailer_read(data, bytes, DRV_RPC_REQUEST, &work.id)) {
			work.key = drv_check_take(&server->check, data, bytes - DRV_RPC_TRAILER_BYTES);
			accept_work(server, &work, serves);
			return CADGE_TAKEN;
		}
	}
	drv_check_wrong(&server->check, "an unexpected message of %zu bytes", bytes);
	return CADGE_TAKEN;
}

DRV_INLINE void take_call(struct drv_server *server, uint32_t peer, uint32_t op, const void *args,
			  size_t bytes, const struct cadge_reply_to *reply_to, const bool serves)
{
	struct drv_work work = {.peer = peer, .reply_to = *reply_to};

	if (DRV_UNLIKELY(bytes != server->exchange.request_bytes || op != 1 ||
			 server->exchange.form != DRV_FORM_NATIVE))
		drv_check_wrong(&server->check, "a call of %zu bytes to procedure %u", bytes, op);
	work.key = drv_check_take(&server->check, args, bytes);
	accept_work(server, &work, serves);
}

enum cadge_keep drv_server_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend)
{
	(void)lend;
	return take_message((struct drv_server *)sink, peer, data, bytes, false);
}

enum cadge_keep drv_server_on_recv_serving(struct cadge_sink *sink, uint32_t peer, const void *data,
					   size_t bytes, struct cadge_lend *lend)
{
	(void)lend;
	return take_message((struct drv_server *)sink, peer, data, bytes, true);
}

void drv_server_on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			const struct cadge_reply_to *reply_to)
{
	take_call((struct drv_server *)sink, peer, op, args, bytes, reply_to, false);
}

void drv_server_on_call_serving(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args,
				size_t bytes, const struct cadge_reply_to *reply_to)
{
	take_call((struct drv_server *)sink, peer, op, args, bytes, reply_to, true);
}

void drv_server_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_server *server = (struct drv_server *)sink;
	const uint64_t index = token ^ server->mark;

	(void)peer;
	if (DRV_UNLIKELY(index >= server->buffers ||
			 server->free_tail - server->free_head >= server->buffers)) {
		drv_check_wrong(&server->check,
				"a completion for token %016" PRIx64 " that is not outstanding", token);
		return;
	}
	give_back(server, (uint32_t)index);
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		note_failure(server, "post", code);
}

/* Of two servers on one engine the requests have different sizes. */
static bool claims(const struct drv_port *port, const void *data, size_t bytes)
{
	const struct drv_exchange *exchange = &((const struct drv_server *)port)->exchange;

	(void)data;
	return bytes == drv_form_bytes(exchange->form, exchange->request_bytes);
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

static uint32_t buffers_of(const struct drv_exchange *exchange)
{
	const uint32_t depth = drv_server_outstanding(exchange);

	return exchange->reply_bytes <= SMALL_BYTES ? 2 * depth : depth + 1;
}

static size_t stride_of(const struct drv_exchange *exchange)
{
	return drv_memory_stride(drv_form_bytes(exchange->form, exchange->reply_bytes));
}

size_t drv_server_bytes(const struct drv_exchange *exchange)
{
	return buffers_of(exchange) * stride_of(exchange);
}

int drv_server_start_on(struct drv_server *server, struct drv_engine *engine, uint32_t channel,
			uint8_t *replies, struct drv_exchange exchange, struct drv_fail *fail)
{
	const uint64_t caps = engine->offer.both.caps;
	const uint32_t depth = drv_server_outstanding(&exchange);

	memset(server, 0, sizeof(*server));
	drv_port_start(&server->port, engine);
	server->port.sink.recv = drv_server_on_recv;
	server->port.sink.call = drv_server_on_call;
	server->port.sink.sent = drv_server_on_sent;
	server->port.claim = DRV_CLAIM_ASK;
	server->port.claims = claims;
	server->port.due = false;
	drv_server_answer_on(server, engine->channels[channel].chan);
	server->exchange = exchange;
	server->message =
		(struct drv_message){.bytes = (size_t)exchange.reply_bytes,
				     .seed = ~exchange.seed,
				     .touch = exchange.touch != DRV_TOUCH_NONE,
				     .trailer = exchange.form == DRV_FORM_EMULATED ? DRV_RPC_REPLY : 0};
	server->in_sink = (caps & (server->exchange.form == DRV_FORM_NATIVE ? CADGE_CAP_REPLY_IN_SINK
									    : CADGE_CAP_POST_IN_SINK)) != 0;
	server->mark = DRV_TOKEN_SERVER | (exchange.beside ? DRV_TOKEN_BESIDE : 0);
	server->check.seed = exchange.seed;
	server->check.next_number = exchange.beside ? DRV_BESIDE_NUMBER : 0;
	server->check.touch = exchange.touch != DRV_TOUCH_NONE;
	server->check.reliable = (caps & CADGE_CAP_RELIABLE) != 0;
	/* each client numbers its own requests, over all servers that it asks */
	server->check.by_number =
		clients_of(&exchange) == 1 && exchange.servers < 2 &&
		(depth == 1 || ((caps & CADGE_CAP_ORDERED) && server->exchange.form != DRV_FORM_NATIVE));
	server->hot = !server->check.touch && exchange.reply_bytes > SMALL_BYTES;
	server->replies = replies;
	server->stride = stride_of(&exchange);
	server->buffers = buffers_of(&exchange);
	server->free_mask = power_of_two(server->buffers) - 1;
	server->work_mask = power_of_two(2 * depth) - 1;
	server->free_ring = calloc(server->free_mask + 1u, sizeof(*server->free_ring));
	server->work = calloc(server->work_mask + 1u, sizeof(*server->work));
	if (!server->free_ring || !server->work) {
		drv_server_stop(server);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the server's rings");
	}
	for (uint32_t i = 0; i < server->buffers; i++)
		server->free_ring[server->free_tail++] = i;
	return 0;
}

int drv_server_start(struct drv_server *server, struct drv_engine *engine, struct drv_exchange exchange,
		     struct drv_fail *fail)
{
	uint8_t *replies;

	memset(server, 0, sizeof(*server));
	replies = drv_pool_take(engine, exchange.beside ? DRV_POOL_SERVER_BESIDE : DRV_POOL_SERVER,
				drv_server_bytes(&exchange), fail);
	if (!replies || drv_server_start_on(server, engine, 0, replies, exchange, fail))
		return -1;
	for (uint32_t i = 0;
	     i < engine->channels_count && (clients_of(&exchange) > 1 || exchange.servers > 1); i++)
		server->chans[i] = engine->channels[i].chan;
	return 0;
}

void drv_server_serve(struct drv_server *server, struct drv_service *service)
{
	server->service = service;
	server->port.sink.recv = drv_server_on_recv_serving;
	server->port.sink.call = drv_server_on_call_serving;
}

void drv_server_answer_on(struct drv_server *server, struct cadge_chan *chan)
{
	for (uint32_t i = 0; i < DRV_PEERS_MAX; i++)
		server->chans[i] = chan;
}

void drv_server_serve_by(struct drv_server *server, struct drv_service *service, struct drv_jobs *jobs)
{
	drv_server_serve(server, service);
	server->jobs = jobs;
	server->port.due = true;
}

void drv_server_stop(struct drv_server *server)
{
	free(server->free_ring);
	free(server->work);
	server->free_ring = NULL;
	server->work = NULL;
}

void drv_server_phase(struct drv_server *server, bool full, uint64_t phase)
{
	drv_check_phase(&server->check, full, phase);
	server->message.full = full;
	server->message.phase = phase;
}

DRV_INLINE bool due(void *arg)
{
	return ((const struct drv_server *)arg)->port.due;
}

DRV_INLINE bool due_by_others(void *arg)
{
	const struct drv_server *server = arg;

	return drv_jobs_due(server->jobs) || server->failed;
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	return drv_server_drain(arg, fail);
}

static int __attribute__((noinline)) run_answering(struct drv_server *server, json_t **message_out,
						   struct drv_fail *fail)
{
	return drv_serve_loop(server->port.engine, &server->port.sink, server, due, drain, message_out, fail);
}

static int __attribute__((noinline)) run_by_others(struct drv_server *server, json_t **message_out,
						   struct drv_fail *fail)
{
	return drv_serve_loop(server->port.engine, &server->port.sink, server, due_by_others, drain,
			      message_out, fail);
}

int drv_server_run(struct drv_server *server, json_t **message_out, struct drv_fail *fail)
{
	return server->jobs ? run_by_others(server, message_out, fail)
			    : run_answering(server, message_out, fail);
}
