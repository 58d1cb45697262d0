/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns in which two exchanges share an engine: small calls, one at a time, and beside them a
 * stream of large ones. A sink tells the events of one from those of the other: requests by their size, which therefore
 * differs, and everything else by its token. One loop serves both requesters, and polls for both: it is not that of requester.h.
 *
 * All exchanges are of the same form; the second is `beside` (see responder.h).
 */
#ifndef DRV_DUET_H
#define DRV_DUET_H

#include "traffic/requester.h"
#include "launch/pattern.h"
#include "traffic/responder.h"

enum drv_voice {
	/* the small calls */
	DRV_VOICE_CALLS,
	/* the stream */
	DRV_VOICE_BULK,
	DRV_VOICES,
};

struct drv_duet {
	struct drv_engine *engine;
	/* where this end has both exchanges; the sink of what it has */
	struct drv_demux demux;
	struct cadge_sink *sink;
	/* those of this end: requesters or servers, of which the second may be missing; else NULL */
	struct drv_requester *requesters[DRV_VOICES];
	struct drv_responder *servers[DRV_VOICES];
};

/*
 * Of requesters or servers that were started, and of which each has the duet's sink from now on, as the engine has. Either is
 * NULL.
 */
void drv_duet_start(struct drv_duet *duet, struct drv_engine *engine,
		    struct drv_requester *const requesters[], struct drv_responder *const servers[]);

/* Clients: the stream begins, and goes on in drv_duet_calls. */
void drv_duet_begin(struct drv_duet *duet);
/*
 * Clients: makes calls for so long, and keeps the stream going, where there is one: of its messages at most one is
 * handed over between two looks at the layer. Ends when no call is outstanding.
 */
int drv_duet_calls(struct drv_duet *duet, uint64_t duration_ns, struct drv_fail *fail);
/* Clients: the stream ends, and what is outstanding of it is waited for. */
int drv_duet_end(struct drv_duet *duet, struct drv_fail *fail);
/* Clients: after a failure, as drv_requester_settle. */
bool drv_duet_settle(struct drv_duet *duet);

/* Servers: until a message comes from out of band, as of a role. */
int drv_duet_serve(struct drv_duet *duet, json_t **message_out, struct drv_fail *fail);

/* Servers: what is due after a poll. */
int drv_duet_drain(struct drv_duet *duet, struct drv_fail *fail);

/* Counts of a phase, of all requesters and servers; and the servers enter the next one. */
void drv_duet_phase(struct drv_duet *duet, const struct drv_phase *phase, struct drv_counts *counts);

#endif
