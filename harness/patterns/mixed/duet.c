/* SPDX-License-Identifier: BSD-3-Clause */
/* Two exchanges on one engine: the loop that serves both. */
#include "mixed/duet.h"

#include <string.h>

#include "traffic/progress.h"

void drv_duet_start(struct drv_duet *duet, struct drv_engine *engine,
		    struct drv_requester *const requesters[], struct drv_responder *const servers[])
{
	struct drv_port *ports[DRV_VOICES] = {NULL};

	memset(duet, 0, sizeof(*duet));
	duet->engine = engine;
	for (int voice = 0; voice < DRV_VOICES; voice++) {
		duet->requesters[voice] = requesters ? requesters[voice] : NULL;
		duet->servers[voice] = servers ? servers[voice] : NULL;
		if (duet->requesters[voice])
			ports[voice] = &duet->requesters[voice]->progress.port;
		else if (duet->servers[voice])
			ports[voice] = &duet->servers[voice]->port;
	}
	engine->sink = &ports[DRV_VOICE_CALLS]->sink;
	if (ports[DRV_VOICE_BULK]) {
		if (ports[DRV_VOICE_CALLS]->claim == DRV_CLAIM_REPLIES)
			ports[DRV_VOICE_CALLS]->claim = DRV_CLAIM_ASK;
		drv_demux_start(&duet->demux, engine, ports[DRV_VOICE_CALLS], ports[DRV_VOICE_BULK],
				DRV_TOKEN_BESIDE);
		engine->sink = &duet->demux.port.sink;
	}
	duet->sink = engine->sink;
	for (int voice = 0; voice < DRV_VOICES; voice++)
		if (duet->requesters[voice])
			duet->requesters[voice]->progress.sink = duet->sink;
}

static bool servers_due(const struct drv_duet *duet)
{
	bool due = false;

	for (int voice = 0; voice < DRV_VOICES; voice++) {
		const struct drv_responder *server = duet->servers[voice];

		due |= server && server->port.due;
	}
	return due;
}

int drv_duet_drain(struct drv_duet *duet, struct drv_fail *fail)
{
	for (int voice = 0; voice < DRV_VOICES; voice++) {
		struct drv_responder *server = duet->servers[voice];

		if (server && server->port.due && drv_responder_drain(server, fail))
			return -1;
	}
	return 0;
}

/* ---- requesters ---- */

/* Polls until a client rests that starts nothing new. Both are served meanwhile. */
static int run_until_rests(struct drv_duet *duet, struct drv_requester *until, struct drv_fail *fail)
{
	struct drv_requester *calls = duet->requesters[DRV_VOICE_CALLS],
			     *bulk = duet->requesters[DRV_VOICE_BULK];
	struct drv_engine *engine = duet->engine;
	uint32_t idle = 0, turns = 0;

	for (;;) {
		/* the call first: between two of them goes one message of the stream */
		bool handed = drv_requester_push(calls);
		uint64_t before;
		int events, status;

		if (bulk)
			handed |= drv_requester_push(bulk);
		if (DRV_UNLIKELY(calls->progress.failed || (bulk && bulk->progress.failed))) {
			*fail = calls->progress.failed ? calls->progress.fail : bulk->progress.fail;
			return -1;
		}
		if (DRV_UNLIKELY(until->ending) && drv_requester_is_idle(until))
			return 0;
		before = calls->completed + (bulk ? bulk->completed : 0);
		events = engine->layer->poll(engine->ctx, duet->sink);
		handed |= calls->completed + (bulk ? bulk->completed : 0) != before;
		/* a stream that goes on must not hide a call that was lost; a busy layer ends the wait when it takes more */
		status = handed && events >= 0
				 ? !(++turns & 1023)
				 : drv_progress_rest(engine, events, DRV_PROGRESS_WAIT_NS, &idle, fail);
		if (DRV_LIKELY(status == 0))
			continue;
		if (status < 0)
			return -1;
		if (drv_requester_poll_oob(calls, fail) || (bulk && drv_requester_poll_oob(bulk, fail)))
			return -1;
	}
}

void drv_duet_begin(struct drv_duet *duet)
{
	if (duet->requesters[DRV_VOICE_BULK])
		drv_requester_open(duet->requesters[DRV_VOICE_BULK], UINT64_MAX, UINT64_MAX);
}

int drv_duet_calls(struct drv_duet *duet, uint64_t duration_ns, struct drv_fail *fail)
{
	struct drv_requester *calls = duet->requesters[DRV_VOICE_CALLS];
	const struct drv_engine *engine = duet->engine;

	drv_requester_open(calls, drv_engine_end(engine, drv_clock_now(&engine->clock), duration_ns),
			   drv_engine_operations(engine));
	return run_until_rests(duet, calls, fail);
}

int drv_duet_end(struct drv_duet *duet, struct drv_fail *fail)
{
	struct drv_requester *calls = duet->requesters[DRV_VOICE_CALLS],
			     *bulk = duet->requesters[DRV_VOICE_BULK];

	if (bulk) {
		bulk->ending = true;
		if (run_until_rests(duet, bulk, fail) || drv_requester_close(bulk, fail))
			return -1;
	}
	return drv_requester_close(calls, fail);
}

bool drv_duet_settle(struct drv_duet *duet)
{
	bool settled = true;

	for (int voice = 0; voice < DRV_VOICES; voice++)
		if (duet->requesters[voice])
			settled &= drv_requester_settle(duet->requesters[voice]);
	return settled;
}

/* ---- servers ---- */

DRV_INLINE bool due(void *arg)
{
	return servers_due(arg);
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	return drv_duet_drain(arg, fail);
}

int drv_duet_serve(struct drv_duet *duet, json_t **message_out, struct drv_fail *fail)
{
	return drv_poll_until_message(duet->engine, duet->sink, duet, due, drain, message_out, fail);
}

void drv_duet_phase(struct drv_duet *duet, const struct drv_phase *phase, struct drv_counts *counts)
{
	for (int voice = 0; voice < DRV_VOICES; voice++) {
		if (duet->requesters[voice])
			drv_requester_counts(duet->requesters[voice], counts);
		if (duet->servers[voice])
			drv_responder_phase(duet->servers[voice], phase, counts);
	}
}
