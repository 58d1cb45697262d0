/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that exchange requests and replies: the calling side, a closed loop that keeps `depth` operations outstanding. Each is
 * timed from the moment it may be handed over (the end of the operation before it in its slot: one time stamp
 * serves both, and waiting for a busy layer counts) to the moment its reply is there. The same loop runs the
 * verification phases, the warm-up and the measurement.
 *
 * It can call several servers: one slot has one channel, and calls go out in rounds, of which none begins before all
 * replies of the one before are here.
 *
 * The loop can be opened as well: operations are handed over when they are due, however many are outstanding, up to
 * `depth`; see pace.h.
 *
 * Replies are taken in the delivery context, or in another thread; see taker.h.
 *
 * Over an unreliable layer each operation has a deadline. One that passes it is lost: counted, not timed. A
 * reply that comes after is late: counted, dropped.
 */
#ifndef DRV_CLIENT_H
#define DRV_CLIENT_H

#include "engine/engine.h"
#include "traffic/pace.h"
#include "launch/pattern.h"
#include "measure/record.h"
#include "traffic/server.h"
#include "traffic/taker.h"
#include "measure/warmup.h"

/* more than a token has room for cannot be outstanding */
#define DRV_CLIENT_DEPTH_MAX 4096u

/* What names an operation to the layer: its number, and its slot in the lowest bits. */
#define DRV_CLIENT_SLOT_BITS 12
static inline uint64_t drv_client_token(uint64_t number, uint32_t slot)
{
	return number << DRV_CLIENT_SLOT_BITS | slot;
}

enum drv_mode {
	DRV_MODE_VERIFY,
	DRV_MODE_WARMUP,
	DRV_MODE_MEASURE,
	DRV_MODE_PACED,
	DRV_MODE_TALLIED,
	DRV_MODE_STAMPED,
	DRV_MODE_ROUNDS
};

struct drv_slot {
	struct cadge_chan *chan;
	uint8_t *payload; /* the trailer of an emulated call follows it */
	uint8_t *result;  /* where the reply is placed, or copied to; NULL: neither */
	uint64_t start;   /* ticks; paced: when it was handed over, and once it is free again, since when */
	uint64_t due;     /* ticks; paced */
	uint64_t number, key;
	bool waiting; /* for a reply */
	bool lent;    /* the layer has the payload */
	bool filled;  /* body written, and not handed over yet */
	/* where another thread takes the reply: it has the slot; what is lent to it until then; the reply */
	bool taken;
	struct cadge_lend *kept;
	const void *data;
	size_t bytes;
};

struct drv_client {
	struct drv_port port;
	struct drv_exchange exchange;
	enum drv_mode mode;
	uint32_t places; /* native calls: entries of out_iov, 0 or 1 */
	bool writes; /* bodies of messages are written: in full comparisons, or since the exchange touches them */
	struct drv_message
		message; /* where they are: what all requests have in common, and the one in progress */
	uint64_t phase;
	bool reliable;
	bool ending; /* nothing new is started */
	bool failed;

	struct drv_slot *slots;
	uint8_t *memory; /* of the engine's pool */
	uint32_t *ready; /* ring of slots that may start: power of two */
	uint32_t ready_head, ready_tail, ready_mask;
	uint32_t idle;

	uint64_t next_number;
	uint64_t posted, completed, lents; /* posted - completed - lost: outstanding */
	uint64_t key_sum;
	uint64_t lost, late;
	/* the phase ends when so many were posted: verification, and launches that count operations */
	uint64_t limit;

	/* measure: where they go */
	struct drv_samples *samples;
	struct drv_warmup warmup;
	struct drv_pace *pace; /* paced */
	uint64_t end;          /* measure: ticks */
	uint64_t last;         /* time stamp of the latest completion */
	uint64_t op_deadline;  /* unreliable: span in ticks */

	struct cadge_sink *sink; /* its own, or that of two clients */
	struct drv_fail fail;
	struct drv_tally *tally;   /* tallied */
	struct drv_stamps *stamps; /* stamped */
	struct drv_check check;    /* of replies that are taken in the delivery context */
	struct drv_taker taker;    /* unless replies are taken in the delivery context */
	struct drv_rounds *rounds; /* calls go out in rounds; NULL: each slot knows nothing of the others */
};

/* Calls to several servers, of which a round is complete when the last has answered. */
struct drv_rounds {
	/* of a record: from a round's begin to its first and its last reply, and from each call's turn to its own reply */
	struct drv_samples *first, *last, *each;
	/* of this round: when it began, in ticks; calls that have not been handed over; replies that are here */
	uint64_t began;
	uint32_t left, replies;
};

/* Makes buffers for one attempt. */
int drv_client_start(struct drv_client *client, struct drv_engine *engine, struct drv_exchange exchange,
		     struct drv_samples *samples, struct drv_fail *fail);
/* From now on it calls on this channel, not on channel 0. To be called right after drv_client_start. */
void drv_client_call_on(struct drv_client *client, struct cadge_chan *chan);
/*
 * From now on each slot calls on the channel of its number, and it warms up in rounds. `rounds` stays the caller's, and
 * has where samples go. To be called right after drv_client_start.
 */
void drv_client_go_round(struct drv_client *client, struct drv_rounds *rounds);
void drv_client_stop(struct drv_client *client);

/*
 * Each runs the loop until its end and until nothing is outstanding. -1: *fail says why; what was outstanding
 * is then waited for by drv_client_settle.
 */
int drv_client_verify(struct drv_client *client, uint64_t phase, struct drv_fail *fail);
int drv_client_warmup(struct drv_client *client, uint64_t cap_ns, struct drv_fail *fail);
/* Fills the totals of the record as well. */
int drv_client_measure(struct drv_client *client, uint64_t duration_ns, struct drv_record *record,
		       struct drv_fail *fail);

/*
 * The open loop, of calls alone: hands over what is due within the duration, and waits for all of it, so that it takes
 * longer where more is due than the layer does. The pace's arrivals were started, with nothing taken from them, and it
 * has where samples go. Fills the totals of the record; their time is the duration at least.
 */
int drv_client_pace(struct drv_client *client, struct drv_pace *pace, uint64_t duration_ns,
		    struct drv_record *record, struct drv_fail *fail);

/*
 * As drv_client_measure, of calls whose time at the server is known beforehand: samples go where the tally says. The
 * server's work may add up to `service_most_ns` to an operation before it is given up as lost.
 */
int drv_client_tally(struct drv_client *client, struct drv_tally *tally, uint64_t service_most_ns,
		     uint64_t duration_ns, struct drv_record *record, struct drv_fail *fail);

/* As drv_client_measure; the instants of begins (sort 0) and ends (1) are added up. */
int drv_client_stamp(struct drv_client *client, struct drv_stamps *stamps, uint64_t duration_ns,
		     struct drv_record *record, struct drv_fail *fail);

/*
 * For a loop of the caller's own, which polls the layer itself (see duet.h); calls alone, no bare messages. Open: all
 * slots may start, and none does any more after an operation that ends at `end` (ticks) or later, or after so many
 * `operations` (UINT64_MAX: no bound). Push: hands over one
 * operation; false: none may start, or the layer is busy. Rests: nothing of it is outstanding. Look: the slow path, to
 * be taken now and then while nothing happens. Close: what was given up as lost must not turn up in a later phase.
 */
void drv_client_open(struct drv_client *client, uint64_t end, uint64_t operations);
bool drv_client_push(struct drv_client *client);
bool drv_client_rests(const struct drv_client *client);
int drv_client_look(struct drv_client *client, struct drv_fail *fail);
int drv_client_close(struct drv_client *client, struct drv_fail *fail);

/* As drv_client_measure, in rounds; operations are calls. Ends with a whole round. */
int drv_client_rounds(struct drv_client *client, uint64_t duration_ns, struct drv_record *record,
		      struct drv_fail *fail);

/* After a failure: polls for up to half a second until the layer has given everything back. False: it has
 * not. */
bool drv_client_settle(struct drv_client *client);

/* How many messages a full comparison goes through: `depth` of them, or as many as fit into 16 MiB. */
uint64_t drv_full_messages(uint64_t larger_bytes, uint32_t depth);

/* Adds what was counted here to the counts of a phase. */
void drv_client_counts(const struct drv_client *client, struct drv_counts *counts);

#endif
