/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns in which two exchanges share an engine: small calls, one at a time, and beside them a
 * stream of large ones. A sink tells the events of one from those of the other: requests by their size, which therefore
 * differs, and everything else by its token. One loop serves both requesters, and polls for both: it is not that of requester.h.
 *
 * All exchanges are of the same form; the second is flow 1 (see responder.h).
 */
#ifndef DRV_TWO_FLOWS_H
#define DRV_TWO_FLOWS_H

#include "traffic/requester.h"
#include "launch/pattern.h"
#include "traffic/responder.h"

enum drv_flow {
	/* the small calls */
	DRV_FLOW_CALLS,
	/* the stream */
	DRV_FLOW_BULK,
	DRV_FLOWS,
};

struct drv_two_flows {
	struct drv_engine *engine;
	/* where this end has both exchanges; the sink of what it has */
	struct drv_demux demux;
	struct cadge_sink *sink;
	/* those of this end: requesters or servers, of which the second may be missing; else NULL */
	struct drv_requester *requesters[DRV_FLOWS];
	struct drv_responder *responders[DRV_FLOWS];
};

/*
 * Of requesters or servers that were started, and of which each has their sink from now on, as the engine has. Either is
 * NULL.
 */
void drv_two_flows_start(struct drv_two_flows *flows, struct drv_engine *engine,
			 struct drv_requester *const requesters[], struct drv_responder *const responders[]);

/* Clients: the stream begins, and goes on in drv_two_flows_calls. */
void drv_two_flows_begin(struct drv_two_flows *flows);
/*
 * Clients: makes calls for so long, and keeps the stream going, where there is one: of its messages at most one is
 * handed over between two polls of the layer. Ends when no call is outstanding.
 */
int drv_two_flows_calls(struct drv_two_flows *flows, uint64_t duration_ns, struct drv_fail *fail);
/* Clients: the stream ends, and what is outstanding of it is waited for. */
int drv_two_flows_end(struct drv_two_flows *flows, struct drv_fail *fail);
/* Clients: after a failure, as drv_requester_settle. */
bool drv_two_flows_settle(struct drv_two_flows *flows);

/* Servers: until a message comes from out of band, as of a role. */
int drv_two_flows_serve(struct drv_two_flows *flows, json_t **message_out, struct drv_fail *fail);

/* Servers: what is due after a poll. */
int drv_two_flows_drain(struct drv_two_flows *flows, struct drv_fail *fail);

/* Counts of a phase, of all requesters and servers; and the servers enter the next one. */
void drv_two_flows_phase(struct drv_two_flows *flows, const struct drv_phase *phase,
			 struct drv_counts *counts);

#endif
