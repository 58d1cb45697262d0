/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ends learn that both directions of a channel work, where each message carries 32 bits beside its payload, a
 * stamp: the kind of message, and the slot and the generation that its receiver wrote into its address. The generation
 * distinguishes the lives of a slot: what comes late, or from a stranger, does not fit.
 *
 * HELLO says "I know you, and this is what reaching you takes"; WELCOME answers it. Over a reliable layer each leaves
 * once, and both ends are up at the same knowledge (cadge_greet). Over a lossy one HELLO leaves until WELCOME answers
 * it, or data, which only a peer sends that has had ours (cadge_greet_again).
 */
#ifndef CADGE_KIT_GREETING_H
#define CADGE_KIT_GREETING_H

#include <time.h>

#include "kit/adapter.h"

enum cadge_stamp_kind { CADGE_STAMP_DATA, CADGE_STAMP_HELLO, CADGE_STAMP_WELCOME };
enum {
	CADGE_STAMP_KIND_SHIFT = 30,
	CADGE_STAMP_GENERATION_SHIFT = 16,
	CADGE_STAMP_GENERATION_MASK = 0x3fff,
	CADGE_STAMP_SLOT_MASK = 0xffff,
	CADGE_STAMP_SLOTS = 0xffff, /* most peers */
};
#define CADGE_HELLO_PERIOD_NS UINT64_C(20000000)

/* Zero: the first life of a slot, and the peer's stamp is not known. */
struct cadge_greeting {
	uint32_t generation; /* of our slot for this peer */
	uint32_t peer_stamp; /* slot and generation that the peer wants to see */
	bool hello_sent, hello_received, welcome_sent, welcome_received;
	uint64_t hello_due_ns; /* where hellos are repeated */
};

/* What our address for the peer in this slot says. */
static inline uint32_t cadge_stamp_given(const struct cadge_greeting *greeting, uint32_t slot)
{
	return greeting->generation << CADGE_STAMP_GENERATION_SHIFT | slot;
}

/* What the peer's address says. DONE, or E_ARGUMENT: no peer gave that. */
static inline int cadge_stamp_take(struct cadge_greeting *greeting, uint32_t stamp)
{
	if (stamp >> CADGE_STAMP_KIND_SHIFT)
		return CADGE_E_ARGUMENT;
	greeting->peer_stamp = stamp;
	return CADGE_DONE;
}

/* What a message of ours carries. */
static inline uint32_t cadge_stamp(const struct cadge_greeting *greeting, enum cadge_stamp_kind kind)
{
	return (uint32_t)kind << CADGE_STAMP_KIND_SHIFT | greeting->peer_stamp;
}

/* Of a message that came: the slot, to be held against the number of peers; the kind; is it of this life? */
static inline uint32_t cadge_stamp_slot(uint32_t stamp)
{
	return stamp & CADGE_STAMP_SLOT_MASK;
}

static inline enum cadge_stamp_kind cadge_stamp_kind(uint32_t stamp)
{
	return (enum cadge_stamp_kind)(stamp >> CADGE_STAMP_KIND_SHIFT);
}

static inline bool cadge_stamp_fits(const struct cadge_greeting *greeting, uint32_t stamp)
{
	return (stamp >> CADGE_STAMP_GENERATION_SHIFT & CADGE_STAMP_GENERATION_MASK) == greeting->generation;
}

/* The next life of a slot, at disconnect. */
static inline struct cadge_greeting cadge_greeting_next(const struct cadge_greeting *greeting)
{
	return (struct cadge_greeting){.generation =
					       (greeting->generation + 1) & CADGE_STAMP_GENERATION_MASK};
}

/* Sends an empty message of that kind to the peer. False: not now. */
typedef bool (*cadge_greet_fn)(void *chan, enum cadge_stamp_kind kind);

/* Sends what the greeting still lacks; true once both ends know that both directions work. For poll, until then. */
static inline bool cadge_greet(struct cadge_greeting *greeting, cadge_greet_fn send, void *chan)
{
	if (!greeting->hello_sent)
		greeting->hello_sent = send(chan, CADGE_STAMP_HELLO);
	if (greeting->hello_received && !greeting->welcome_sent)
		greeting->welcome_sent = send(chan, CADGE_STAMP_WELCOME);
	return greeting->welcome_sent && greeting->welcome_received;
}

/* The clock of repeated hellos: no other use, and none once all peers are up. */
static inline uint64_t cadge_greeting_now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time); /* cadge: protocol timer */
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/* Sends HELLO where it is due. For poll, until the channel is up. */
static inline void cadge_greet_again(struct cadge_greeting *greeting, uint64_t now_ns, cadge_greet_fn send,
				     void *chan)
{
	if (now_ns >= greeting->hello_due_ns && send(chan, CADGE_STAMP_HELLO))
		greeting->hello_due_ns = now_ns + CADGE_HELLO_PERIOD_NS;
}

#endif
