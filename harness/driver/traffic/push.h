/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that push messages one way, or both ways at once, on channel 0: the functions of their role
 * tables. A pattern writes `prepare` and `measure` itself, which say what is pushed, who sends, and what is recorded.
 *
 * Sending: messages leave as fast as the layer takes them, with at most `depth` of them lent to it at a time; or in
 * windows, of which none begins before the receiver has acknowledged the one before. A run ends with a control message
 * that carries the count. It is over when the receiver has confirmed, through the layer, how many messages it has: over a
 * reliable layer that is all of them. Receiving (pushed.c): it counts what comes, and says so when it is asked, at the end of
 * a run, and where a window is complete.
 */
#ifndef DRV_PUSH_H
#define DRV_PUSH_H

#include "launch/pattern.h"
#include "measure/record.h"
#include "measure/warmup.h"
#include "traffic/progress.h"

/*
 * Control messages: what the two ends tell each other through the layer, between the messages of a push. They have 24
 * bytes, or 32 where the push's own have 24, so that their length distinguishes them.
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

#define DRV_PUSHER_ANSWERS 2u

/* The state of every role: it sends, or receives, or both on one context. */
struct drv_pusher {
	/* first: callbacks get a pointer to it; slots are those of messages, and the last one is that of control messages */
	struct drv_progress progress;
	struct cadge_chan *chan;
	struct drv_push push;
	bool sends, receives;

	/* ---- sending ---- */
	/* of the engine's pool: first slot's message, and the control message to the receiver */
	uint8_t *messages, *control;
	size_t stride;
	/* how many messages there is room for; next to use */
	uint32_t slots, slot;
	uint64_t next_number;
	/* where bodies are written: what all messages have in common, and the one in progress */
	struct drv_message message;
	/* of all messages of a run that leave from one buffer */
	uint64_t same_key;
	/* since the attempt began */
	uint64_t posted, key_sum;
	uint64_t run_posted;
	uint32_t run;
	/* the window, or the run, is known to be there: since when, in ticks */
	bool acknowledged, confirmed;
	uint64_t acknowledged_at, confirmed_at;
	/* when the last window of the run was over */
	uint64_t windows_ended_at;
	/* messages that the receiver had when it confirmed */
	uint64_t confirmed_count;
	/* unreliable: in ticks, how long a window may take before the receiver is asked */
	uint64_t ask_after;
	struct drv_warmup warmup;
	/* where the time of each window goes; NULL: nowhere */
	struct drv_samples *windows;

	/* ---- receiving ---- */
	/* of the engine's pool, one after the other: control messages to the sender */
	uint8_t *answers;
	bool answer_in_flight[DRV_PUSHER_ANSWERS];
	/* what the sender is to be told next */
	bool answer_due;
	struct drv_control answer;
	/* number of the run in progress */
	uint32_t received_run;
	/* messages of this run, and how many of them complete a window */
	uint64_t run_executions, window_at;
	/* told by the end message; UINT64_MAX before */
	uint64_t run_expected;
};

/* What arrives at either side. */
enum cadge_keep drv_pusher_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend);
/* The receiving side: makes buffers for one attempt, and enters its first run. */
int drv_pusher_receive(struct drv_pusher *pusher, struct drv_engine *engine, struct drv_fail *fail);
/* Enters the next run: full comparison or not, and which. */
void drv_pusher_receive_run(struct drv_pusher *pusher, bool full, uint64_t phase);

/* As in struct drv_role. */
int drv_pusher_serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail);
int drv_pusher_drain(void *pusher, struct drv_fail *fail);

/* ---- the sending side ---- */

/* What a push asks of a layer. */
void drv_push_need(uint64_t bytes, uint64_t depth, struct drv_needs *needs_out);
/* Whether its messages, and the control messages between them, can be sent. */
int drv_push_negotiate(uint64_t bytes, const struct drv_offer *offer, struct drv_fail *fail);

/* Who does what in this attempt. `windows`: where the time of each window goes; NULL: nowhere. */
int drv_pusher_prepare(struct drv_role_run *run, struct drv_push push, bool sends, bool receives,
		       struct drv_samples *windows, struct drv_fail *fail);
/* One run. Fills the totals of the record, and the histogram of windows where there is one. */
int drv_pusher_measure(struct drv_role_run *run, struct drv_fail *fail);

/* As in struct drv_role. */
void drv_pusher_stop(struct drv_role_run *run);
int drv_pusher_verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail);
int drv_pusher_warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail);
bool drv_pusher_settle(struct drv_role_run *run);
void drv_pusher_phase(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out);

/* All members of a role table but name, prepare, measure and the bounds of its channels. */
#define DRV_PUSHER_ROLE                                                                                      \
	.measures = true, .state_bytes = sizeof(struct drv_pusher), .stop = drv_pusher_stop,                 \
	.verify = drv_pusher_verify, .warmup = drv_pusher_warmup, .settle = drv_pusher_settle,               \
	.serve = drv_pusher_serve, .drain = drv_pusher_drain, .phase = drv_pusher_phase
/* The same of one that only receives. */
#define DRV_PUSHED_ROLE                                                                                      \
	.state_bytes = sizeof(struct drv_pusher), .stop = drv_pusher_stop, .serve = drv_pusher_serve,        \
	.drain = drv_pusher_drain, .phase = drv_pusher_phase

#endif
