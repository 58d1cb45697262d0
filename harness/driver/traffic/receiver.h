/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that push messages one way: the receiving side of channel 0. It counts what comes, and
 * tells the sender through the layer: at the end of a run how many there were, and before that, where messages come in
 * windows, that one is complete.
 */
#ifndef DRV_RECEIVER_H
#define DRV_RECEIVER_H

#include "traffic/control.h"
#include "engine/engine.h"
#include "traffic/check.h"

#define DRV_RECEIVER_BUFFERS 2u
/* tokens of the receiving side, where one process has both */
#define DRV_TOKEN_RECEIVER (UINT64_C(1) << 63)

/* What both ends of a push agree on. */
struct drv_push {
	uint64_t bytes, seed;
	/* messages that the layer may have at a time, sent and not given back */
	uint32_t depth;
	/* messages leave from so many bytes in turn, or from as many as depth takes if that is more */
	uint64_t spread;
	/* the receiver acknowledges so many messages, and none of the next so many leaves before; 0: no windows */
	uint32_t window;
	/* messages are written anew before each is sent, and read whole where they arrive */
	bool touch;
	/* all messages of a run leave from one buffer, and so they all hold the same */
	bool same;
};

struct drv_receiver {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	struct drv_push push;
	struct drv_check check;
	/* of the engine's pool: DRV_RECEIVER_BUFFERS of `stride` bytes */
	uint8_t *controls;
	size_t stride;
	bool lent[DRV_RECEIVER_BUFFERS];
	/* number of the run in progress */
	uint32_t run;
	/* messages of this run, and how many of them complete a window */
	uint64_t run_executions, window_at;
	/* told by the end message; UINT64_MAX before */
	uint64_t run_expected;
	/* what the sender is to be told next */
	bool word_due;
	struct drv_control word;
	bool failed;
	struct drv_fail fail;
};

/* Makes buffers for one attempt, and enters its first run. */
int drv_receiver_start(struct drv_receiver *receiver, struct drv_engine *engine, struct drv_push push,
		       struct drv_fail *fail);
/* Enters the next run: full comparison or not, and which. */
void drv_receiver_phase(struct drv_receiver *receiver, bool full, uint64_t phase);

/* Something is left to do after poll. */
static inline bool drv_receiver_due(const struct drv_receiver *receiver)
{
	return receiver->word_due || receiver->failed;
}

/* Does it, if the layer has room. 0, or -1 with receiver->fail. */
int drv_receiver_drain(struct drv_receiver *receiver);

/* Callbacks that the sink of both sides hands on. */
enum cadge_keep drv_receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				     struct cadge_lend *lend);
void drv_receiver_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);

#endif
