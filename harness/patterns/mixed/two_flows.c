/* SPDX-License-Identifier: BSD-3-Clause */
/* Two exchanges on one engine: the loop that serves both. */
#include "mixed/two_flows.h"

#include <string.h>

#include "traffic/progress.h"

void drv_two_flows_start(struct drv_two_flows *flows, struct drv_engine *engine,
			 struct drv_requester *const requesters[], struct drv_responder *const responders[])
{
	struct drv_port *ports[DRV_FLOWS] = {NULL};

	memset(flows, 0, sizeof(*flows));
	flows->engine = engine;
	for (int flow = 0; flow < DRV_FLOWS; flow++) {
		flows->requesters[flow] = requesters ? requesters[flow] : NULL;
		flows->responders[flow] = responders ? responders[flow] : NULL;
		if (flows->requesters[flow])
			ports[flow] = &flows->requesters[flow]->progress.port;
		else if (flows->responders[flow])
			ports[flow] = &flows->responders[flow]->port;
	}
	engine->sink = &ports[DRV_FLOW_CALLS]->sink;
	if (ports[DRV_FLOW_BULK]) {
		if (ports[DRV_FLOW_CALLS]->match == DRV_MATCH_TRAILER)
			ports[DRV_FLOW_CALLS]->match = DRV_MATCH_FUNCTION;
		drv_demux_start(&flows->demux, engine, ports[DRV_FLOW_CALLS], ports[DRV_FLOW_BULK],
				DRV_TOKEN_FLOW_1);
		engine->sink = &flows->demux.port.sink;
	}
	flows->sink = engine->sink;
	for (int flow = 0; flow < DRV_FLOWS; flow++)
		if (flows->requesters[flow])
			flows->requesters[flow]->progress.sink = flows->sink;
}

static bool servers_due(const struct drv_two_flows *flows)
{
	bool due = false;

	for (int flow = 0; flow < DRV_FLOWS; flow++) {
		const struct drv_responder *responder = flows->responders[flow];

		due |= responder && responder->port.due;
	}
	return due;
}

int drv_two_flows_drain(struct drv_two_flows *flows, struct drv_fail *fail)
{
	for (int flow = 0; flow < DRV_FLOWS; flow++) {
		struct drv_responder *responder = flows->responders[flow];

		if (responder && responder->port.due && drv_responder_drain(responder, fail))
			return -1;
	}
	return 0;
}

/* ---- requesters ---- */

/* Polls until a client rests that starts nothing new. Both are served meanwhile. */
static int run_until_idle(struct drv_two_flows *flows, struct drv_requester *until, struct drv_fail *fail)
{
	struct drv_requester *calls = flows->requesters[DRV_FLOW_CALLS],
			     *bulk = flows->requesters[DRV_FLOW_BULK];
	struct drv_engine *engine = flows->engine;
	uint32_t idle = 0, turns = 0;

	for (;;) {
		/* the call first: between two of them goes one message of the stream */
		bool progressed = drv_requester_push(calls);
		uint64_t before;
		int events, status;

		if (bulk)
			progressed |= drv_requester_push(bulk);
		if (DRV_UNLIKELY(calls->progress.failed || (bulk && bulk->progress.failed))) {
			*fail = calls->progress.failed ? calls->progress.fail : bulk->progress.fail;
			return -1;
		}
		if (DRV_UNLIKELY(until->ending) && drv_requester_is_idle(until))
			return 0;
		before = calls->completed + (bulk ? bulk->completed : 0);
		events = engine->layer->poll(engine->ctx, flows->sink);
		progressed |= calls->completed + (bulk ? bulk->completed : 0) != before;
		/* a stream that goes on must not hide a call that was lost; a busy layer ends the wait when it takes more */
		status = progressed && events >= 0
				 ? !(++turns & 1023)
				 : drv_progress_idle(engine, events, DRV_PROGRESS_WAIT_NS, &idle, fail);
		if (DRV_LIKELY(status == 0))
			continue;
		if (status < 0)
			return -1;
		if (drv_requester_poll_oob(calls, fail) || (bulk && drv_requester_poll_oob(bulk, fail)))
			return -1;
	}
}

void drv_two_flows_begin(struct drv_two_flows *flows)
{
	if (flows->requesters[DRV_FLOW_BULK])
		drv_requester_open(flows->requesters[DRV_FLOW_BULK], UINT64_MAX, UINT64_MAX);
}

int drv_two_flows_calls(struct drv_two_flows *flows, uint64_t duration_ns, struct drv_fail *fail)
{
	struct drv_requester *calls = flows->requesters[DRV_FLOW_CALLS];
	const struct drv_engine *engine = flows->engine;

	drv_requester_open(calls, drv_engine_end(engine, drv_clock_now(&engine->clock), duration_ns),
			   drv_engine_operations(engine));
	return run_until_idle(flows, calls, fail);
}

int drv_two_flows_end(struct drv_two_flows *flows, struct drv_fail *fail)
{
	struct drv_requester *calls = flows->requesters[DRV_FLOW_CALLS],
			     *bulk = flows->requesters[DRV_FLOW_BULK];

	if (bulk) {
		bulk->ending = true;
		if (run_until_idle(flows, bulk, fail) || drv_requester_close(bulk, fail))
			return -1;
	}
	return drv_requester_close(calls, fail);
}

bool drv_two_flows_settle(struct drv_two_flows *flows)
{
	bool settled = true;

	for (int flow = 0; flow < DRV_FLOWS; flow++)
		if (flows->requesters[flow])
			settled &= drv_requester_settle(flows->requesters[flow]);
	return settled;
}

/* ---- servers ---- */

DRV_INLINE bool due(void *arg)
{
	return servers_due(arg);
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	return drv_two_flows_drain(arg, fail);
}

int drv_two_flows_serve(struct drv_two_flows *flows, json_t **message_out, struct drv_fail *fail)
{
	return drv_poll_until_message(flows->engine, flows->sink, flows, due, drain, message_out, fail);
}

void drv_two_flows_phase(struct drv_two_flows *flows, const struct drv_phase *phase,
			 struct drv_counts *counts)
{
	for (int flow = 0; flow < DRV_FLOWS; flow++) {
		if (flows->requesters[flow])
			drv_requester_counts(flows->requesters[flow], counts);
		if (flows->responders[flow])
			drv_responder_phase(flows->responders[flow], phase, counts);
	}
}
