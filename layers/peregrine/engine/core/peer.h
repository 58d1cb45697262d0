/* SPDX-License-Identifier: BSD-3-Clause */
/* A binding, as its client has it. */
#ifndef PGR_PEER_H
#define PGR_PEER_H

#include "engine.h"

/*
 * A binding to a server. Owned by the endpoint, in its list. One that is used is in the list of busy ones too, which the
 * clock is for; when it has been idle for a while it leaves that list, and its slots are released.
 */
struct pgr_peer {
	struct pgr *pgr;
	/* of all; `back` leads here */
	struct pgr_peer *next, **back;
	/* of the busy ones; busy_back NULL: not among them */
	struct pgr_peer *busy_next, **busy_back;
	/* the server's address */
	struct pgr_to to;
	/* identifier of this binding */
	uint64_t client;
	/* of the server; 0: not known */
	uint32_t incarnation;
	/* sent along in slots that are not introduced; 0: none was given yet */
	uint64_t cookie;
	/* a bit a slot: the server holds a number for it */
	uint64_t introduced;
	/* a bit a slot: no call is there; it waits for credits or room; its result was taken and not acknowledged */
	uint64_t free, queued, unacked;
	/* a bit a slot: the arguments of its call are of several packets */
	uint64_t long_calls;
	/* so many more packets of such calls leave room to short ones, since one was made beside them */
	uint32_t yield_packets;
	/* a bit a slot: it has, or had, a call with a deadline of its own */
	uint64_t deadlines;
	/* packets that we may have, and have, under way */
	uint32_t credits, under_way;
	/* of data in a full packet, either way: the smaller of both ends' limits, or small_bytes if no more arrive */
	uint32_t packet_bytes;
	/* a packet of more than small_bytes has arrived: at the server, here */
	bool large_went, large_came;
	/* round trip, its variation, time-out: RFC 6298, with samples as Karn's rule allows them; 0: no sample yet */
	uint64_t srtt_ns, rttvar_ns, rto_ns;
	/* of calls: so far; the last one that is answered; which one that was when we last looked for lost ones */
	uint32_t sendings, newest, newest_searched;
	/* when the server last said anything */
	uint64_t last_packet_ns;
	/* which slot goes on first when credits come */
	unsigned int turn;
	/* unbound; the next tick ends it */
	bool closing;
	/* its process had ended when we last looked, which was then */
	bool ended;
	uint64_t life_checked_ns;
	/* of its calls: byte order, words */
	uint8_t flags;
	/* the highest number that a call had in a slot that was released: what comes there goes on from it */
	uint64_t sequence;
	/* owned; NULL: released, or never used */
	struct pgr_slot *slots[PGR_SLOTS];
};
/* with what malloc, and the table of bindings at its emptiest, add */
_Static_assert(sizeof(struct pgr_peer) + 16 + 4 * sizeof(void *) <= 1024,
	       "an idle binding costs at most 1 KiB");

/* ---- bind.c ---- */
/* The open binding with this identifier; NULL. */
struct pgr_peer *pgr_peer_of(struct pgr *pgr, uint64_t client);
/* Ends a binding that was unbound, when nobody works on it; its calls end with PGR_E_CLOSED. */
void pgr_peer_end(struct pgr_peer *peer);

/* ---- slot.c ---- */
/* Makes the slot, of a binding that is busy from now on; false: no memory. */
PGR_COLD bool pgr_slot_make(struct pgr_peer *peer, unsigned int number);
/* It has calls, or is about to end: the clock is for it. */
void pgr_peer_busy(struct pgr_peer *peer);
/* Nothing of it is outstanding or unacknowledged: it is busy no more, and its slots are released. */
PGR_COLD void pgr_peer_idle(struct pgr_peer *peer);

/* ---- call.c, path.c ---- */
/* Room or credits have come: the slots that wait go on, each time from another one. */
void pgr_peer_send_queued(struct pgr_peer *peer);
/* Repeats calls of which nothing was heard while later ones are answered. */
PGR_COLD void pgr_peer_find_lost(struct pgr_peer *peer);
/* The server takes so many bytes of data in a packet. */
void pgr_peer_limit_packets(struct pgr_peer *peer, uint32_t data_bytes);

/* ---- clock.c ---- */
/* Takes a sample of the round trip (RFC 6298). */
void pgr_round_trip(struct pgr_peer *peer, uint64_t sample_ns);
/*
 * A call took so long from its first sending to its result, and its server said that it was at it: no repetition was
 * of use, so the next calls wait longer before they are repeated. Not by Karn's rule, which knows only losses.
 */
void pgr_service_time(struct pgr_peer *peer, uint64_t took_ns);

#endif
