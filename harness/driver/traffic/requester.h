/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that exchange requests and replies: the requester. Up to `depth` operations are outstanding, each
 * in a slot of its own. Three things are chosen before its loop:
 *
 *	start		when an operation may start: as soon as a slot is free (a closed loop), or as a loop of the pattern's own
 *			has it (requester_parts.h): at fixed instants, in rounds, in batches
 *	complete	where the time of an operation goes: to a histogram, or as a function of the pattern's own has it
 *	taken by	the delivery context, or another thread (enum drv_reply)
 *
 * An operation is timed from the moment it may be handed over (the end of the operation before it in its slot: one time stamp
 * serves both, and waiting for a busy layer counts) to the moment its reply is there. The same loop runs the verification
 * phases, the warm-up and the measurement.
 *
 * A pattern that asks one thing at a time, in an order of its own, needs no loop of this kind: see ask.h.
 *
 * Over an unreliable layer each operation has a deadline. One that passes it is lost: counted, not timed. A reply that comes
 * after is late: counted, dropped.
 */
#ifndef DRV_REQUESTER_H
#define DRV_REQUESTER_H

#include "engine/engine.h"
#include "launch/negotiate.h"
#include "launch/pattern.h"
#include "measure/record.h"
#include "measure/warmup.h"
#include "traffic/progress.h"
#include "traffic/responder.h"

/* more than a token has room for cannot be outstanding */
#define DRV_REQUESTER_DEPTH_MAX 4096u

/* What names an operation to the layer: its number, and its slot in the lowest bits. */
#define DRV_REQUESTER_SLOT_BITS 12

/* One operation, and the slot that it is in. */
struct drv_op {
	struct cadge_chan *chan;
	uint8_t *payload; /* the trailer of an emulated call follows it */
	uint8_t *result;  /* where the reply is placed, or copied to; NULL: neither */
	uint64_t
		start; /* ticks; where instants are fixed: when it was handed over, and once it is free again, since when */
	uint64_t due; /* ticks; where instants are fixed */
	uint64_t number, key;
	bool waiting; /* for a reply */
	bool filled;  /* body written, and not handed over yet */
	/* where another thread takes the reply: it has the slot; what is lent to it until then; the reply */
	bool taken;
	struct cadge_lend *held;
	const void *data;
	size_t bytes;
};

/*
 * The thread that takes replies where the delivery context does not, a worker (see workers.h). It is one of two:
 *
 *	wait	a caller: makes a call, gives it to the thread that owns the context, and is blocked until its reply
 *		comes. It writes the request and reads the reply.
 *	defer	a worker: continuations are queued to it. It reads the reply; the owner of the context makes the calls.
 *
 * A slot is owned by one of both threads; ownership passes with its index through the queues. Between two runs of the loop the
 * owner of the context has all of them. What the layer lent of a reply stays lent until its slot is back.
 */
struct drv_reply_thread {
	/* replies are taken here, and calls are made here as well */
	bool on, calls;
	/* the owner's: slots that the other thread has */
	uint32_t has;
	/* the other thread's while it has a slot: nothing new is to begin, and what was wrong */
	bool ending;
	struct drv_check check;
};

struct drv_requester;

/* The loop: runs until nothing new starts and nothing is outstanding. */
typedef int (*drv_requester_fn)(struct drv_requester *requester, struct drv_fail *fail);
/* A reply is here: records its time. False: nothing new is to start. Where another thread takes replies, it is called there. */
typedef bool (*drv_complete_fn)(struct drv_requester *requester, const struct drv_op *op, uint64_t now);

struct drv_requester {
	/* first: callbacks get a pointer to it; it checks replies that are taken in the delivery context */
	struct drv_progress progress;
	struct drv_exchange exchange;
	/* NULL: the closed loop. Not for verification. */
	drv_requester_fn loop;
	/* calls that a loop of a pattern's own starts at a time */
	uint32_t batch;
	/* of the measurement; NULL: its time is one of `samples` */
	drv_complete_fn measured;
	/* of this phase; NULL: the same */
	drv_complete_fn complete;
	enum drv_step step;
	/* native calls: entries of out_iov, 0 or 1 */
	uint32_t places;
	/* replies are copied, and taken by another thread */
	bool copies, away;
	/* nothing new is started */
	bool ending;
	/* where bodies are written: what all requests have in common, and the one in progress */
	struct drv_message message;

	struct drv_op *ops;
	uint32_t *ready; /* ring of slots that may start: power of two */
	uint32_t ready_head, ready_tail, ready_mask;

	uint64_t next_number;
	uint64_t posted, completed; /* posted - completed - lost: outstanding */
	uint64_t key_sum;
	uint64_t lost, late;
	/* the phase ends when so many were posted: verification, and launches that count operations */
	uint64_t limit;

	/* measure: where they go */
	struct drv_samples *samples;
	struct drv_warmup warmup;
	uint64_t began, end; /* measure: ticks; else no end */
	uint64_t last;       /* time stamp of the latest completion */
	uint64_t patience;   /* unreliable: an operation that takes longer, in ticks, is lost */
	struct drv_reply_thread thread;
	/* ask.h: the key of the latest request; when its answer came, in ticks; 0: not yet */
	bool asks;
	uint64_t awaited, answered_at;
};

/* Makes buffers for one attempt. */
int drv_requester_start(struct drv_requester *requester, struct drv_engine *engine,
			struct drv_exchange exchange, struct drv_samples *samples, struct drv_fail *fail);
/* From now on it calls on this channel, not on channel 0. To be called right after drv_requester_start. */
void drv_requester_call_on(struct drv_requester *requester, struct cadge_chan *chan);
/* Legal on zeroes. */
void drv_requester_stop(struct drv_requester *requester);

/*
 * Each runs the loop until its end and until nothing is outstanding. -1: *fail says why; what was outstanding is then
 * waited for by drv_requester_settle.
 */
int drv_requester_verify(struct drv_requester *requester, uint64_t phase, struct drv_fail *fail);
int drv_requester_warmup(struct drv_requester *requester, uint64_t cap_ns, struct drv_fail *fail);
/* Fills the totals of the record as well. */
int drv_requester_measure(struct drv_requester *requester, uint64_t duration_ns, struct drv_record *record,
			  struct drv_fail *fail);

/*
 * For a loop of the caller's own, which polls the layer itself (see two_flows.h); calls alone, no bare messages. Open: all
 * slots may start, and none does any more after an operation that ends at `end` (ticks) or later, or after so many
 * `operations` (UINT64_MAX: no bound). Push: hands over one operation; false: none may start, or the layer is busy.
 */
void drv_requester_open(struct drv_requester *requester, uint64_t end, uint64_t operations);
bool drv_requester_push(struct drv_requester *requester);
/* The slow path of a loop, to be taken now and then while nothing happens. */
int drv_requester_poll_oob(struct drv_requester *requester, struct drv_fail *fail);
/* Nothing is on its way, or with another thread. */
bool drv_requester_is_idle(const struct drv_requester *requester);
/* After a loop: what was given up as lost must not turn up in a later phase. */
int drv_requester_close(struct drv_requester *requester, struct drv_fail *fail);

/* After a failure: polls for up to half a second until the layer has given everything back. False: it has not. */
bool drv_requester_settle(struct drv_requester *requester);

/* Adds what was counted here to the counts of a phase. */
void drv_requester_counts(const struct drv_requester *requester, struct drv_counts *counts);

/* A reply that nobody waits for, with a number: late after a loss, else something is wrong. */
void drv_requester_stale(struct drv_requester *requester, const char *what, uint64_t number)
	__attribute__((cold, noinline));

/* Whether replies can be taken as the exchange says: 0, or -1 with what is lacking. */
int drv_reply_thread_negotiate(const struct drv_exchange *exchange, const struct drv_ability *both,
			       struct drv_fail *fail);

/* ---- the role: the state of a pattern's begins with a struct drv_requester ---- */

/* The samples go to the pattern's first quantity. */
int drv_requester_role_prepare(struct drv_role_run *run, struct drv_exchange exchange, struct drv_fail *fail);

/* As in struct drv_role. */
void drv_requester_role_stop(struct drv_role_run *run);
int drv_requester_role_verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail);
int drv_requester_role_warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail);
int drv_requester_role_measure(struct drv_role_run *run, struct drv_fail *fail);
bool drv_requester_role_settle(struct drv_role_run *run);
void drv_requester_role_phase(struct drv_role_run *run, const struct drv_phase *phase,
			      struct drv_counts *counts_out);

/* All members of a role table but name, prepare and the bounds of its channels. */
#define DRV_REQUESTER_ROLE DRV_REQUESTER_ROLE_OF(struct drv_requester, drv_requester_role_measure)
/* The same, with a state that begins with the requester, or a measurement that records more. */
#define DRV_REQUESTER_ROLE_OF(state, measure_fn)                                                             \
	.measures = true, .state_bytes = sizeof(state), .stop = drv_requester_role_stop,                     \
	.verify = drv_requester_role_verify, .warmup = drv_requester_role_warmup, .measure = measure_fn,     \
	.settle = drv_requester_role_settle, .phase = drv_requester_role_phase

#endif
