/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Demultiplexer of a context that has two flows: the two ends of one exchange in one process (place self), or two
 * exchanges over one engine. It is the context's sink then, and hands each event to the flow that it belongs to. The
 * token of a completion or a result has a bit of the second flow; whether a message is the first flow's, that flow says
 * by what the message holds (enum drv_match). A context with one flow has no demultiplexer.
 */
#ifndef DRV_DEMUX_H
#define DRV_DEMUX_H

#include "engine/engine.h"

/* Bit of a token: of the end that answers. */
#define DRV_TOKEN_RESPONDER (UINT64_C(1) << 63)

struct drv_demux {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct drv_port *flows[2];
	/* DRV_MATCH_ALTERNATE: whose the next messages are */
	struct drv_port *next[2];
	/* bit of a token: of flow 1 */
	uint64_t mark;
	/* place self: what flow 1 does after each poll; the layer's own table, and ours, whose poll does so */
	int (*drain)(void *state, struct drv_fail *fail);
	void *state;
	const struct cadge_layer *below;
	int (*below_poll)(struct cadge_ctx *ctx, struct cadge_sink *sink);
	struct cadge_layer *table;
	bool failed;
	struct drv_fail fail;
};

/* Both flows were started; they stay the caller's. The port can be a flow of another demultiplexer. */
void drv_demux_start(struct drv_demux *demux, struct drv_engine *engine, struct drv_port *first,
		     struct drv_port *second, uint64_t mark);

/*
 * Place self: becomes the sink of the engine, whichever sink a loop polls with, for the flows of a requester and a
 * responder. After each poll of the layer `drain` (NULL: nothing) does the work of the responder, on its `state`. If that
 * fails, so does the poll; demux->failed and demux->fail say why. 0, or -1 with the reason. To be ended by drv_demux_end.
 */
int drv_demux_self(struct drv_demux *demux, struct drv_engine *engine, struct cadge_sink *requester,
		   struct cadge_sink *responder, int (*drain)(void *state, struct drv_fail *fail),
		   void *state, struct drv_fail *fail);
/* Legal on zeroes. The engine calls its layer again; its sink is the caller's to set. */
void drv_demux_end(struct drv_demux *demux);

#endif
