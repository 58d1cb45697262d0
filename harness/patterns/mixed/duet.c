/* SPDX-License-Identifier: BSD-3-Clause */
/* Two exchanges on one engine: whose event it is, and the loop that serves both. */
#include "mixed/duet.h"

#include <string.h>

#include "traffic/progress.h"

/* The second is there only with the stream; what nobody waits for is for the first to judge. */
static struct drv_client *client_of(const struct drv_duet *duet, uint64_t token)
{
	struct drv_client *bulk = duet->clients[DRV_VOICE_BULK];

	return (token & DRV_TOKEN_BESIDE) && bulk ? bulk : duet->clients[DRV_VOICE_CALLS];
}

static struct drv_server *server_of(const struct drv_duet *duet, bool of_stream)
{
	struct drv_server *bulk = duet->servers[DRV_VOICE_BULK];

	return of_stream && bulk ? bulk : duet->servers[DRV_VOICE_CALLS];
}

/* Whether a request of so many bytes, as a message or as arguments, is the stream's. */
static bool is_bulk(const struct drv_duet *duet, size_t bytes)
{
	const struct drv_server *bulk = duet->servers[DRV_VOICE_BULK];

	return bulk && bytes == drv_form_bytes(bulk->exchange.form, bulk->exchange.request_bytes);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_duet *duet = (struct drv_duet *)sink;
	const bool asks = duet->clients[DRV_VOICE_CALLS], answers = duet->servers[DRV_VOICE_CALLS];
	struct cadge_sink *to;
	uint64_t id = 0;

	if (asks && (drv_trailer_read(data, bytes, DRV_RPC_REPLY, &id) || !answers))
		to = &client_of(duet, id)->port.sink;
	else
		to = &server_of(duet, is_bulk(duet, bytes))->port.sink;
	return to->recv(to, peer, data, bytes, lend);
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct drv_duet *duet = (struct drv_duet *)sink;
	struct cadge_sink *to = &server_of(duet, is_bulk(duet, bytes))->port.sink;

	to->call(to, peer, op, args, bytes, reply_to);
}

static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct cadge_sink *to = &client_of((struct drv_duet *)sink, token)->port.sink;

	return to->replied(to, peer, token, code, placement, data, bytes, lend);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_duet *duet = (struct drv_duet *)sink;
	struct cadge_sink *to = (token & DRV_TOKEN_SERVER)
					? &server_of(duet, (token & DRV_TOKEN_BESIDE) != 0)->port.sink
					: &client_of(duet, token)->port.sink;

	to->sent(to, peer, token, code);
}

void drv_duet_start(struct drv_duet *duet, struct drv_engine *engine, struct drv_client *const clients[],
		    struct drv_server *const servers[])
{
	memset(duet, 0, sizeof(*duet));
	drv_port_start(&duet->port, engine);
	duet->port.sink.recv = on_recv;
	duet->port.sink.sent = on_sent;
	if (servers)
		duet->port.sink.call = on_call;
	if (clients)
		duet->port.sink.replied = on_replied;
	for (int voice = 0; voice < DRV_VOICES; voice++) {
		duet->clients[voice] = clients ? clients[voice] : NULL;
		duet->servers[voice] = servers ? servers[voice] : NULL;
		if (duet->clients[voice])
			duet->clients[voice]->sink = &duet->port.sink;
	}
}

static bool servers_due(const struct drv_duet *duet)
{
	bool due = false;

	for (int voice = 0; voice < DRV_VOICES; voice++) {
		const struct drv_server *server = duet->servers[voice];

		due |= server && (server->work_head != server->work_tail || server->failed);
	}
	return due;
}

static int drain_servers(struct drv_duet *duet, struct drv_fail *fail)
{
	for (int voice = 0; voice < DRV_VOICES; voice++) {
		struct drv_server *server = duet->servers[voice];

		if (server && drv_server_drain(server)) {
			*fail = server->fail;
			return -1;
		}
	}
	return 0;
}

/* ---- clients ---- */

/* Polls until a client rests that starts nothing new. Both are served meanwhile. */
static int run_until_rests(struct drv_duet *duet, struct drv_client *until, struct drv_fail *fail)
{
	struct drv_client *calls = duet->clients[DRV_VOICE_CALLS], *bulk = duet->clients[DRV_VOICE_BULK];
	struct drv_engine *engine = duet->port.engine;
	uint32_t idle = 0, turns = 0;

	for (;;) {
		/* the call first: between two of them goes one message of the stream */
		bool handed = drv_client_push(calls);
		uint64_t before;
		int events, status;

		if (bulk)
			handed |= drv_client_push(bulk);
		if (DRV_UNLIKELY(calls->failed || (bulk && bulk->failed))) {
			*fail = calls->failed ? calls->fail : bulk->fail;
			return -1;
		}
		if (DRV_UNLIKELY(until->ending) && drv_client_rests(until))
			return 0;
		before = calls->completed + (bulk ? bulk->completed : 0);
		events = engine->layer->poll(engine->ctx, &duet->port.sink);
		if (DRV_UNLIKELY(servers_due(duet)) && drain_servers(duet, fail))
			return -1;
		handed |= calls->completed + (bulk ? bulk->completed : 0) != before;
		/* a stream that goes on must not hide a call that was lost; a busy layer ends the wait when it takes more */
		status = handed && events >= 0
				 ? !(++turns & 1023)
				 : drv_progress_rest(engine, events, DRV_PROGRESS_WAIT_NS, &idle, fail);
		if (DRV_LIKELY(status == 0))
			continue;
		if (status < 0)
			return -1;
		if (drv_client_look(calls, fail) || (bulk && drv_client_look(bulk, fail)))
			return -1;
	}
}

void drv_duet_begin(struct drv_duet *duet)
{
	if (duet->clients[DRV_VOICE_BULK])
		drv_client_open(duet->clients[DRV_VOICE_BULK], UINT64_MAX, UINT64_MAX);
}

int drv_duet_calls(struct drv_duet *duet, uint64_t duration_ns, struct drv_fail *fail)
{
	struct drv_client *calls = duet->clients[DRV_VOICE_CALLS];
	const struct drv_engine *engine = duet->port.engine;

	drv_client_open(calls, drv_engine_end(engine, drv_clock_now(&engine->clock), duration_ns),
			drv_engine_operations(engine));
	return run_until_rests(duet, calls, fail);
}

int drv_duet_end(struct drv_duet *duet, struct drv_fail *fail)
{
	struct drv_client *calls = duet->clients[DRV_VOICE_CALLS], *bulk = duet->clients[DRV_VOICE_BULK];

	if (bulk) {
		bulk->ending = true;
		if (run_until_rests(duet, bulk, fail) || drv_client_close(bulk, fail))
			return -1;
	}
	return drv_client_close(calls, fail);
}

bool drv_duet_settle(struct drv_duet *duet)
{
	bool settled = true;

	for (int voice = 0; voice < DRV_VOICES; voice++)
		if (duet->clients[voice])
			settled &= drv_client_settle(duet->clients[voice]);
	return settled;
}

/* ---- servers ---- */

DRV_INLINE bool due(void *arg)
{
	return servers_due(arg);
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	return drain_servers(arg, fail);
}

int drv_duet_serve(struct drv_duet *duet, json_t **message_out, struct drv_fail *fail)
{
	return drv_serve_loop(duet->port.engine, &duet->port.sink, duet, due, drain, message_out, fail);
}

void drv_duet_phase(struct drv_duet *duet, const struct drv_phase *phase, struct drv_counts *counts)
{
	for (int voice = 0; voice < DRV_VOICES; voice++) {
		struct drv_server *server = duet->servers[voice];

		if (duet->clients[voice])
			drv_client_counts(duet->clients[voice], counts);
		if (!server)
			continue;
		drv_check_executed(&server->check, counts);
		drv_server_phase(server, phase->full, phase->serial);
	}
}
