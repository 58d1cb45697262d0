/* SPDX-License-Identifier: BSD-3-Clause */
/* A call, as its client has it. */
#ifndef PGR_SLOT_H
#define PGR_SLOT_H

#include "engine.h"

enum pgr_slot_state {
	PGR_SLOT_FREE,
	/* waits for credits; nothing was sent */
	PGR_SLOT_QUEUED,
	/* sent, no result yet */
	PGR_SLOT_CALLING,
	/* some packets of the result are here */
	PGR_SLOT_TAKING,
};

/* One call at a time of a binding. */
struct pgr_slot {
	/* template, in the machine's own order: flags and procedure are patched per call */
	struct pgr_header head;
	struct pgr_peer *peer;
	/* of the call that is, or was last, in the slot */
	uint64_t sequence;
	/* of the slot; enum pgr_slot_state */
	uint8_t number, state;
	/* time-outs in a row: backoff and Karn's rule */
	uint8_t repeats;
	/* of them, repetitions before their time */
	uint8_t early_repeats;
	/* the server has said that it executes the call */
	bool alive;
	/* time-outs in a row of a packet of more than small_bytes, of the call or of its result */
	uint8_t large_timeouts;
	/* since the first of them the server has spoken of the call */
	bool answered_since;
	/* the server has said that it sends the result, in packets of so many bytes of data, more than small_bytes; 0 */
	uint32_t result_part_bytes;
	/* of our own engine: the call passes on another one */
	bool delegating;
	/* the call went out under `claimed` */
	bool first_sent;
	/* the server has this call, by its own word: it may have executed it */
	bool arrived;
	/* incarnation in the packets of this call */
	uint32_t claimed;
	/* of its sending, among the binding's */
	uint32_t order;
	/* what giving up means: GIVE_UP; SERVER_BUSY or REFUSED where it said so */
	int code;
	/* the cookie that this call went out with */
	uint64_t carried;
	/* when the call went out (0: it gives no sample of the round trip), is repeated, ends in vain */
	uint64_t sent_ns, due_ns, give_up_ns;
	/* when it first went out under a claim: from then on it may have been executed */
	uint64_t claimed_ns;
	/* which call has a deadline of its own, when, and the code with which it then ends; 0: none. Good while `deadlines` has it */
	uint64_t deadline_sequence, deadline_ns;
	int deadline_code;
	pgr_done *done;
	void *arg;
	const struct pgr_signature *signature;
	struct pgr_outgoing out;
	/* where the result goes: the caller's buffers, lent until `done`; none: the result is lent to `done` */
	struct pgr_iov to[PGR_IOV_MAX];
	uint32_t to_count;
	uint64_t to_bytes;
	struct pgr_incoming in;
	/* owned: the result, where the caller gave no buffers, or before it is copied */
	uint8_t *staging;
	/* in packets of how many bytes the result may come; of a call that is passed on: to who waits for it */
	uint32_t result_packet_bytes;
	/* of a result of several packets: who sends it, under which incarnation, delegated or not */
	struct pgr_to result_from;
	uint32_t result_incarnation;
	uint8_t result_flags;
	/* owned: the arguments in one piece, where they cannot be sent from where they lie */
	uint8_t *marshal;
	/* what is sent in place of arguments that stay where they are */
	uint8_t reference[PGR_REFERENCE_BYTES];
	/* `done` reads the result in the server's memory: no other call is in the slot before the server hears that it has */
	bool read_in_place;
	/* when the last call ended: an idle slot acknowledges some time later */
	uint64_t ended_ns;
};

/* ---- slot.c ---- */
/* A slot for the next call. PGR_OK; BUSY: none is free, or the binding ends; E_MEMORY. */
int pgr_slot_take(struct pgr_peer *peer, struct pgr_slot **slot_out);
/* Of a slot that was taken and not started. */
void pgr_slot_put_back(struct pgr_slot *slot);
/* Ends a call: the slot is free again when `done` runs, so that it may call. */
void pgr_slot_end(struct pgr_slot *slot, int code, const void *result, size_t result_bytes);

/* ---- call.c ---- */
/* Sends the call whose out.iov, out.count, out.bytes are set. An error: it was not started, and is to be put back. */
int pgr_slot_start(struct pgr_slot *slot, uint32_t procedure, pgr_done *done, void *arg, bool more);
/* Sends what credits allow, of a call. */
void pgr_slot_send(struct pgr_slot *slot, bool more);
/* Sends a packet without data of the caller's that speaks of the slot's call; the bitmap is that of a nack. */
void pgr_slot_send_control(struct pgr_slot *slot, const struct pgr_to *to, uint8_t type, uint8_t flags,
			   uint32_t incarnation, const uint8_t *bitmap, size_t bitmap_bytes, uint32_t number);
/* Asks the server what has become of the call. */
void pgr_slot_probe(struct pgr_slot *slot);
/* The result has arrived whole. */
void pgr_slot_ack(struct pgr_slot *slot, const struct pgr_to *to, bool delegated, uint32_t incarnation);
/* Tells the server which packets of a longer result have come. */
void pgr_slot_report(struct pgr_slot *slot);
/* The packet of several of which nothing was heard. */
void pgr_slot_resend_packet(struct pgr_slot *slot, uint32_t number);

/* ---- result.c ---- */
/* A result is complete, in one piece at `data`: brings it to the caller, and ends the call. */
void pgr_slot_deliver(struct pgr_slot *slot, const struct pgr_packet *packet, const struct pgr_to *from,
		      const uint8_t *data, uint64_t bytes);
/* Takes a packet of a longer result; with the last one the call ends. */
PGR_COLD void pgr_slot_take_part(struct pgr_slot *slot, const struct pgr_packet *packet,
				 const struct pgr_to *from);

/* ---- path.c ---- */
/* Nothing came in time: says it again. */
void pgr_slot_timed_out(struct pgr_slot *slot);
/* As if nothing of the call had been sent, in packets of the size that there is now. False: it has failed, and ended. */
bool pgr_slot_restart(struct pgr_slot *slot);
/* Whether what is repeated after a time-out is a packet of more than small_bytes. */
bool pgr_slot_large_open(const struct pgr_slot *slot);
/* At a time-out. Whether large packets do not arrive, and small ones go from now on: they are sent, or asked for. */
PGR_COLD bool pgr_slot_shrink(struct pgr_slot *slot);

/* ---- clock.c ---- */
/* How long to wait for the slot's answer: doubled by each repetition, up to a limit. */
uint64_t pgr_slot_timeout(const struct pgr_slot *slot);
/*
 * The slot's call leaves, or its server has spoken of it: from this moment, not from when the clock was last looked
 * at, it waits for an answer, and for the give-up time.
 */
void pgr_slot_arm(struct pgr_slot *slot);
/* As pgr_slot_arm, for a call of which nothing has left before this moment. */
void pgr_slot_arm_first(struct pgr_slot *slot);
/* From this moment it waits for an answer; when it is given up stays as it is. */
void pgr_slot_arm_repeat(struct pgr_slot *slot);

#endif
