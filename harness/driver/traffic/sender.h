/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that push messages one way: the sending side of channel 0. Messages leave as fast as the
 * layer takes them, with at most `depth` of them lent to it at a time; or in windows, of which none begins before the
 * receiver has acknowledged the one before. A run ends with an end message that carries the count; it is over when the
 * receiver has confirmed, through the layer, how many messages it has: over a reliable layer that is all of them.
 */
#ifndef DRV_SENDER_H
#define DRV_SENDER_H

#include "engine/engine.h"
#include "traffic/receiver.h"
#include "measure/record.h"
#include "measure/warmup.h"

struct drv_sender {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	struct drv_push push;
	bool reliable;
	/* of the engine's pool: first slot's payload, and the words to the receiver */
	uint8_t *messages, *control;
	size_t stride;
	uint32_t slots;
	/* by slot; the last entry is that of the words */
	bool *lent;
	/* next to use */
	uint32_t slot;
	uint32_t lents, idle;
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
	uint64_t mismatches;
	struct drv_warmup warmup;
	/* where the time of each window goes; NULL: nowhere */
	struct drv_samples *windows;
	/* a receiver on the same context, whose words are sent in between; NULL: none */
	struct drv_receiver *receiver;
	/* its own, or that of both */
	struct cadge_sink *sink;
	bool failed;
	struct drv_fail fail;
	char mismatch[160];
};

/* Makes buffers for one attempt. */
int drv_sender_start(struct drv_sender *sender, struct drv_engine *engine, struct drv_push push,
		     struct drv_samples *windows, struct drv_receiver *receiver, struct drv_fail *fail);
void drv_sender_stop(struct drv_sender *sender);

/* Each is one run. */
int drv_sender_verify(struct drv_sender *sender, uint64_t phase, struct drv_fail *fail);
int drv_sender_warmup(struct drv_sender *sender, uint64_t cap_ns, struct drv_fail *fail);
/* Fills the totals of the record, and the histogram of windows where there is one. */
int drv_sender_measure(struct drv_sender *sender, uint64_t duration_ns, struct drv_record *record,
		       struct drv_fail *fail);

/* After a failure: polls for up to half a second until the layer has given everything back. False: it has not. */
bool drv_sender_settle(struct drv_sender *sender);

struct drv_counts;

/* Sets what was counted here in the counts of a phase. */
void drv_sender_counts(const struct drv_sender *sender, struct drv_counts *counts);

#endif
