/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_AHEAD  64u
#define BLOCK_WAIT_NS UINT64_C(1000000)
#define TURNS_MASK    0xfffffu

enum drv_form drv_form_of(const struct drv_point *point, const struct drv_ability *both)
{
	if (point->pattern == DRV_PINGPONG)
		return DRV_FORM_BARE;
	if (point->pattern == DRV_STREAM)
		return DRV_FORM_STREAM;
	return drv_rpc_is_native(both) ? DRV_FORM_NATIVE : DRV_FORM_EMULATED;
}

static void __attribute__((cold, noinline, format(printf, 2, 3))) note_mismatch(struct drv_server *server,
										const char *format, ...)
{
	va_list arguments;

	if (server->mismatches++)
		return;
	va_start(arguments, format);
	if (vsnprintf(server->mismatch, sizeof(server->mismatch), format, arguments) < 0)
		server->mismatch[0] = '\0';
	va_end(arguments);
}

static void __attribute__((cold, noinline)) note_failure(struct drv_server *server, const char *what,
							 int code)
{
	if (server->failed)
		return;
	server->failed = true;
	drv_engine_fail(what, code, &server->fail);
}

/*
 * A request below 16 bytes that is not the next one. Over an unreliable layer some may be missing: a search
 * ahead. False when it is nothing that was sent.
 */
static bool __attribute__((cold, noinline)) search_ahead(struct drv_server *server, const void *data,
							 size_t bytes)
{
	for (uint64_t ahead = 1; !server->reliable && ahead < SEARCH_AHEAD; ahead++)
		if (drv_head_holds(data, bytes, server->seed, server->next_number + ahead)) {
			server->next_number += ahead;
			return true;
		}
	return false;
}

/* Checks the head of one arrival, counts it as executed, and returns its key. */
DRV_INLINE uint64_t take_in(struct drv_server *server, const void *data, size_t bytes)
{
	const uint64_t key = drv_head_key(data, bytes);
	bool good;

	if (DRV_LIKELY(bytes >= DRV_HEAD_BYTES)) {
		good = drv_load64((const uint8_t *)data + 8) == server->seed;
		if (server->by_number) {
			good &= server->reliable ? key == server->next_number : key >= server->next_number;
			server->next_number = key + 1;
		}
	} else {
		good = !server->by_number ||
		       DRV_LIKELY(drv_head_holds(data, bytes, server->seed, server->next_number)) ||
		       search_ahead(server, data, bytes);
		server->next_number++;
	}
	server->executions++;
	server->key_sum += key;
	if (DRV_UNLIKELY(server->full)) {
		good &= drv_body_holds(data, bytes, server->seed, server->phase, key);
		server->full_checked++;
	}
	if (DRV_LIKELY(good))
		server->checked++;
	else
		note_mismatch(server, "server: message %" PRIu64 " of %zu bytes begins with %016" PRIx64,
			      server->executions, bytes, key);
	return key;
}

/* Tries to answer. 1: done; 0: not now. */
DRV_INLINE int answer(struct drv_server *server, const struct drv_work *work)
{
	struct drv_engine *engine = server->port.engine;
	const size_t bytes = (size_t)server->point->reply_bytes;
	struct cadge_iov iov[2];
	uint8_t *payload;
	uint64_t token;
	uint32_t index;
	int code;

	if (DRV_UNLIKELY(server->free_head == server->free_tail))
		return 0;
	index = server->free_ring[server->free_head & server->free_mask];
	payload = server->replies + (size_t)index * server->stride;
	token = DRV_TOKEN_SERVER | index;
	drv_head_write(payload, bytes, ~server->seed, work->key);
	if (DRV_UNLIKELY(server->full))
		drv_body_fill(payload, bytes, ~server->seed, server->phase, work->key);
	iov[1].base = payload;
	iov[1].bytes = bytes;
	if (server->form == DRV_FORM_EMULATED) {
		uint8_t *header = payload - DRV_RPC_HEADER_BYTES;

		drv_store64(header, work->id);
		drv_store64(header + 8, (uint64_t)DRV_RPC_MAGIC << 32 | DRV_RPC_REPLY);
		iov[0].base = header;
		iov[0].bytes = DRV_RPC_HEADER_BYTES;
		code = engine->layer->post(engine->chan, iov, bytes ? 2 : 1, 0, token);
	} else if (server->form == DRV_FORM_NATIVE) {
		code = engine->layer->reply(engine->ctx, &work->reply_to, iov + 1, 1, 0, token);
	} else {
		code = engine->layer->post(engine->chan, iov + 1, 1, 0, token);
	}
	if (DRV_UNLIKELY(code == CADGE_BUSY))
		return 0;
	server->free_head++;
	if (code == CADGE_QUEUED)
		return 1;
	server->free_ring[server->free_tail++ & server->free_mask] = index;
	if (DRV_UNLIKELY(code != CADGE_DONE))
		note_failure(server, server->form == DRV_FORM_NATIVE ? "reply" : "post", code);
	return 1;
}

static void __attribute__((noinline)) put_off(struct drv_server *server, const struct drv_work *work)
{
	if (DRV_LIKELY(server->work_tail - server->work_head <= server->work_mask)) {
		server->work[server->work_tail++ & server->work_mask] = *work;
		return;
	}
	/*
	 * more requests than the client may have outstanding: where losses are known this one counts as
	 * lost
	 */
	if (server->reliable)
		note_mismatch(server, "server: more requests at a time than the client has outstanding");
}

DRV_INLINE void accept_work(struct drv_server *server, const struct drv_work *work)
{
	if (server->in_sink && DRV_LIKELY(server->work_head == server->work_tail) &&
	    DRV_LIKELY(answer(server, work)))
		return;
	put_off(server, work);
}

int drv_server_drain(struct drv_server *server)
{
	if (DRV_UNLIKELY(server->confirm_due)) {
		struct drv_engine *engine = server->port.engine;
		struct cadge_iov iov = {.bytes = drv_control_bytes(server->point->request_bytes)};
		uint32_t index;
		int code;

		if (server->free_head == server->free_tail)
			return 0;
		index = server->free_ring[server->free_head & server->free_mask];
		iov.base = server->replies + (size_t)index * server->stride;
		drv_store64(iov.base, DRV_STREAM_MAGIC);
		drv_store64((uint8_t *)iov.base + 8, (uint64_t)server->run << 8 | DRV_STREAM_CONFIRM);
		drv_store64((uint8_t *)iov.base + 16, server->confirm_count);
		code = engine->layer->post(engine->chan, &iov, 1, 0, DRV_TOKEN_SERVER | index);
		if (code == CADGE_BUSY)
			return 0;
		server->confirm_due = false;
		server->free_head++;
		if (code != CADGE_QUEUED)
			server->free_ring[server->free_tail++ & server->free_mask] = index;
		if (code < 0)
			note_failure(server, "post", code);
	}
	while (server->work_head != server->work_tail &&
	       answer(server, &server->work[server->work_head & server->work_mask]))
		server->work_head++;
	if (DRV_UNLIKELY(server->failed))
		return -1;
	return 0;
}

/* A message of a stream, or the word that it ends. */
DRV_INLINE void take_stream(struct drv_server *server, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	if (DRV_LIKELY(bytes == server->point->request_bytes)) {
		take_in(server, data, bytes);
		server->run_executions++;
	} else if (bytes == drv_control_bytes(server->point->request_bytes) &&
		   drv_load64(at) == DRV_STREAM_MAGIC && (drv_load64(at + 8) & 0xff) == DRV_STREAM_END) {
		if (drv_load64(at + 8) >> 8 != server->run)
			return; /* repeated over an unreliable layer, and late */
		server->run_expected = drv_load64(at + 16);
	} else {
		note_mismatch(server, "server: a message of %zu bytes in a stream of %" PRIu64, bytes,
			      server->point->request_bytes);
		return;
	}
	if (DRV_UNLIKELY(server->run_expected != UINT64_MAX) &&
	    (!server->reliable || server->run_executions == server->run_expected)) {
		server->confirm_count = server->run_executions;
		server->confirm_due = true;
		if (!server->reliable)
			server->run_expected = UINT64_MAX; /* once for each end message */
	}
}

enum cadge_keep drv_server_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend)
{
	struct drv_server *server = (struct drv_server *)sink;
	const uint8_t *at = data;
	struct drv_work work;

	(void)peer, (void)lend;
	if (server->form == DRV_FORM_BARE) {
		if (DRV_LIKELY(bytes == server->point->request_bytes)) {
			work.key = take_in(server, data, bytes);
			accept_work(server, &work);
			return CADGE_TAKEN;
		}
	} else if (server->form == DRV_FORM_EMULATED) {
		if (DRV_LIKELY(bytes == server->point->request_bytes + DRV_RPC_HEADER_BYTES) &&
		    drv_load64(at + 8) == ((uint64_t)DRV_RPC_MAGIC << 32 | DRV_RPC_REQUEST)) {
			work.id = drv_load64(at);
			work.key = take_in(server, at + DRV_RPC_HEADER_BYTES, bytes - DRV_RPC_HEADER_BYTES);
			accept_work(server, &work);
			return CADGE_TAKEN;
		}
	} else if (server->form == DRV_FORM_STREAM) {
		take_stream(server, data, bytes);
		return CADGE_TAKEN;
	}
	note_mismatch(server, "server: an unexpected message of %zu bytes", bytes);
	return CADGE_TAKEN;
}

void drv_server_on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			const struct cadge_reply_to *reply_to)
{
	struct drv_server *server = (struct drv_server *)sink;
	struct drv_work work = {.reply_to = *reply_to};

	(void)peer;
	if (DRV_UNLIKELY(bytes != server->point->request_bytes || op != 1 || server->form != DRV_FORM_NATIVE))
		note_mismatch(server, "server: a call of %zu bytes to procedure %u", bytes, op);
	work.key = take_in(server, args, bytes);
	accept_work(server, &work);
}

void drv_server_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_server *server = (struct drv_server *)sink;
	const uint64_t index = token & ~DRV_TOKEN_SERVER;

	(void)peer;
	if (DRV_UNLIKELY(!(token & DRV_TOKEN_SERVER) || index >= server->buffers ||
			 server->free_tail - server->free_head >= server->buffers)) {
		note_mismatch(server, "server: a completion for token %016" PRIx64 " that is not outstanding",
			      token);
		return;
	}
	server->free_ring[server->free_tail++ & server->free_mask] = (uint32_t)index;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		note_failure(server, "post", code);
}

static uint32_t power_of_two(uint32_t at_least)
{
	uint32_t power = 1;

	while (power < at_least)
		power *= 2;
	return power;
}

int drv_server_start(struct drv_server *server, struct drv_engine *engine, const struct drv_point *point,
		     uint64_t seed, struct drv_fail *fail)
{
	const uint64_t caps = engine->both.caps;
	const uint64_t room = point->reply_bytes < DRV_CONTROL_BYTES ? DRV_CONTROL_BYTES : point->reply_bytes;

	memset(server, 0, sizeof(*server));
	drv_port_start(&server->port, engine);
	server->port.sink.recv = drv_server_on_recv;
	server->port.sink.call = drv_server_on_call;
	server->port.sink.sent = drv_server_on_sent;
	server->point = point;
	server->form = drv_form_of(point, &engine->both);
	server->seed = seed;
	server->in_sink = (caps & CADGE_CAP_POST_IN_SINK) != 0 && server->form != DRV_FORM_STREAM;
	server->reliable = (caps & CADGE_CAP_RELIABLE) != 0;
	server->by_number = point->depth == 1 ? server->form != DRV_FORM_STREAM || (caps & CADGE_CAP_ORDERED)
					      : (caps & CADGE_CAP_ORDERED) && server->form != DRV_FORM_NATIVE;
	server->run_expected = UINT64_MAX;
	server->stride = drv_memory_stride(room);
	/* small replies get twice the depth, so that a late completion of a send holds up nothing */
	server->buffers = server->form == DRV_FORM_STREAM ? 2
			  : room <= 65536                 ? 2 * point->depth
							  : point->depth + 1;
	server->free_mask = power_of_two(server->buffers) - 1;
	server->work_mask = power_of_two(2 * point->depth) - 1;
	server->free_ring = calloc(server->free_mask + 1u, sizeof(*server->free_ring));
	server->work = calloc(server->work_mask + 1u, sizeof(*server->work));
	if (!server->free_ring || !server->work) {
		drv_server_stop(server);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the server's rings");
	}
	for (uint32_t i = 0; i < server->buffers; i++)
		server->free_ring[server->free_tail++] = i;
	server->memory = drv_pool_take(engine, DRV_POOL_SERVER, server->buffers * server->stride, fail);
	if (!server->memory) {
		drv_server_stop(server);
		return -1;
	}
	server->replies = server->memory + drv_memory_lead(room);
	return 0;
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
	server->full = full;
	server->phase = phase;
	server->run++;
	server->run_executions = 0;
	server->run_expected = UINT64_MAX;
	server->confirm_due = false;
}

int drv_server_run(struct drv_server *server, json_t **message_out, struct drv_fail *fail)
{
	struct drv_engine *engine = server->port.engine;
	const struct cadge_layer *layer = engine->layer;
	uint32_t idle = 0, turns = 0;

	for (;;) {
		const int events = layer->poll(engine->ctx, &server->port.sink);

		if (DRV_UNLIKELY(server->work_head != server->work_tail || server->confirm_due ||
				 server->failed) &&
		    drv_server_drain(server)) {
			*fail = server->fail;
			return -1;
		}
		if (events > 0) {
			idle = 0;
			if (DRV_LIKELY(++turns & TURNS_MASK))
				continue;
		} else if (DRV_UNLIKELY(events < 0)) {
			return drv_engine_fail("poll", events, fail);
		} else if (engine->block) {
			if (server->work_head == server->work_tail && !server->confirm_due &&
			    drv_engine_wait(engine, BLOCK_WAIT_NS, fail))
				return -1;
			if (++idle < 2)
				continue;
		} else if (++idle & 63) {
			continue;
		}
		{
			const uint64_t now = drv_clock_now(&engine->clock);
			int status;

			/* the first look of an idle while only starts its time */
			if (idle == 64 && !engine->block)
				engine->oob_next = now + engine->oob_period;
			status = drv_engine_look(engine, now, message_out, fail);
			if (status)
				return status < 0 ? -1 : 0;
		}
	}
}
