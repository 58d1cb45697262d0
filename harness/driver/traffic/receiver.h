/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that push messages one way: the receiving side of channel 0. It counts what comes, and
 * tells the sender through the layer: at the end of a run how many there were, and before that, where messages come in
 * windows, that one is complete.
 */
#ifndef DRV_RECEIVER_H
#define DRV_RECEIVER_H

#include "engine/engine.h"
#include "traffic/check.h"

/*
 * Control messages: what the two ends tell each other through the layer, between the messages of a push. They have 24
 * bytes, or 32 where the push's own have 24, so that their length tells them apart.
 */
#define DRV_CONTROL_BYTES 32u
#define DRV_CONTROL_MAGIC UINT64_C(0x6d61657274534443)

/* From the sender: below DRV_CONTROL_TO_SENDER. */
enum drv_control_kind {
	/* the run is over; how many messages it had */
	DRV_CONTROL_END = 1,
	/* unreliable: a window's acknowledgement did not come; how many messages were sent so far */
	DRV_CONTROL_ASK = 3,
	DRV_CONTROL_TO_SENDER = 16,
	/* how many messages of the run are here, of all or of those that ever will be */
	DRV_CONTROL_CONFIRM = DRV_CONTROL_TO_SENDER,
	/* a whole window came; how many messages of the run are here */
	DRV_CONTROL_ACKNOWLEDGE,
	/* repeats what the sender said when it asked */
	DRV_CONTROL_ANSWER,
};

struct drv_control {
	enum drv_control_kind kind;
	/* which run, counted at both ends */
	uint32_t run;
	uint64_t number;
};

static inline size_t drv_control_bytes(uint64_t message_bytes)
{
	return message_bytes == 24 ? 32 : 24;
}

static inline void drv_control_write(void *out, struct drv_control control)
{
	drv_store64(out, DRV_CONTROL_MAGIC);
	drv_store64((uint8_t *)out + 8, (uint64_t)control.run << 8 | control.kind);
	drv_store64((uint8_t *)out + 16, control.number);
}

/* Whether what arrived in an exchange of messages of `message_bytes` is such a word, and which. */
static inline bool drv_control_read(const void *data, size_t bytes, uint64_t message_bytes,
				    struct drv_control *control_out)
{
	const uint8_t *at = data;

	if (bytes != drv_control_bytes(message_bytes) || drv_load64(at) != DRV_CONTROL_MAGIC)
		return false;
	control_out->kind = (enum drv_control_kind)(drv_load64(at + 8) & 0xff);
	control_out->run = (uint32_t)(drv_load64(at + 8) >> 8);
	control_out->number = drv_load64(at + 16);
	return true;
}

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
