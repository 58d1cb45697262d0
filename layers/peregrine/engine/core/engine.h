/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of the engine: what its files share. One file a duty:
 *
 *	endpoint.c  open, close, poll, wait; which file a packet goes to
 *	client*.c   bindings; a call leaves its slot, its result comes in, what else a server may say
 *	server.c    clients, first contact, what a call meets in its slot
 *	share.c     how much one host may hold of a server
 *	reply.c     results on their way, and kept
 *	delegate.c  calls passed on
 *	blast.c     messages of several packets, both ends
 *	memory.c    messages that stay where they are
 *	theirs.c    what other processes have open
 *	path.c      the size of packets, and paths that let none of it through
 *	fast.h      the usual case, short
 *	clock.c     the clock, round trips, time-outs
 *	timer.c     what they bring about: repetition, giving up, forgetting
 *	send.c      a packet leaves
 *	credit.c    flow control
 *	buffer.c    memory for messages
 *	convert.c   unlike byte orders
 *	coroutine.c the stack of a procedure (only with PGR_OFF_NO_THREAD_STATE)
 */
#ifndef PGR_ENGINE_H
#define PGR_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../base/base.h"
#include "../base/packet.h"
#include "../wires/wire.h"

/* after so long a client on a wire that loses nothing asks for its call */
#define PGR_PROBE_NS UINT64_C(500000000)
/* between two looks whether who is waited for lives, where the wire can tell */
#define PGR_LIFE_NS UINT64_C(20000000)
/* between two looks for room on a wire that tells nobody of it */
#define PGR_ROOM_NS UINT64_C(100000)
/* a cookie is good for so long at most */
#define PGR_COOKIE_LIFE_NS (2 * PGR_COOKIE_EPOCH_S * UINT64_C(1000000000))
/* a client that speaks is put behind the others once in so long */
#define PGR_QUEUED_NS UINT64_C(1000000000)

enum {
	/* packets that may be under way before the other side has said more, as in eRPC (Kalia et al., NSDI 2019) */
	PGR_CREDITS_FIRST = 32,
	/* and however much it says */
	PGR_CREDITS_MAX = 1024,
	/* a packet is lost when one sent so many sendings later has arrived; as RACK (RFC 8985), which counts time */
	PGR_REORDER_PACKETS = 3,
	/* a call is taken for lost when one sent so many later is answered */
	PGR_REORDER_CALLS = 16,
	/* repetitions of a call before its time-out */
	PGR_HURRIES_MAX = 3,
	/* doublings of the time-out */
	PGR_BACKOFF_MAX = 6,
	/* of long calls, while short ones are made beside them: bytes under way; packets until it is over */
	PGR_MIXED_BYTES = 131072,
	PGR_MIXED_PACKETS = 256,
	/* and of data in a packet of such a call, where it could be larger */
	PGR_MIXED_PART = 8192,
	/* time-outs of a large packet, in a row, after which it is taken to be too large for the path; the same where one
	 * of its size has arrived before: a path changes seldom, and losses are common */
	PGR_SILENT_FIRST = 2,
	PGR_SILENT_LATER = 6,
	/* of data: a peer that takes less in a packet is not believed */
	PGR_DATA_BYTES_MIN = 64,
	/* and so no packet is limited to less than this */
	PGR_PACKET_BYTES_MIN = 192,
	/* repetitions that fit into the give-up time, however long the time-out */
	PGR_TRIES_MIN = 40,
	PGR_PROCEDURES_MAX = 1024,
	/* seconds in which the same cookie is given; it is good in the next epoch too */
	PGR_COOKIE_EPOCH_S = 5,
	/* sizes of buffers that are kept for the next message: powers of two */
	PGR_BUFFER_CLASSES = 32,
	/* on a wire with large packets: parts of a long message, and up to where a message is one packet */
	PGR_PARTS = 16,
	PGR_SINGLE_BYTES = 16384,
	/* of an endpoint, that a child which is forked does not get */
	PGR_WIPED_BYTES = 64,
};

/* A message on its way out: what was sent and what is known to have arrived. */
struct pgr_outgoing {
	/* where it lies; the bytes are the caller's, or the slot's, or the work's, until the message has ended */
	struct pgr_iov iov[PGR_IOV_MAX];
	uint32_t count;
	/* of the message; of data in each packet but the last; how many packets that makes */
	uint32_t bytes, packet_bytes, packets;
	/* the first packet that was never sent, or not since a restart */
	uint32_t next;
	/* and that was never sent at all */
	uint32_t ever;
	/* all below have arrived */
	uint32_t acked;
	/* sent, not known to have arrived and not taken for lost: what credits count */
	uint32_t under_way;
	/* the packet sent last */
	uint32_t last;
	/*
	 * This and what follows only for more than one packet. Owned: the number of each packet's last sending, from
	 * 1; 0: arrived, or not sent
	 */
	uint32_t *order;
	/* so far */
	uint32_t sendings;
	/* largest order of a packet that arrived */
	uint32_t newest;
	/* packets to be sent again, flagged in the order's highest bit */
	uint32_t lost;
	/* no lost packet lies below */
	uint32_t seek;
};

/* A message on its way in. */
struct pgr_incoming {
	/* where it goes: lent; the caller has checked that there is room */
	const struct pgr_iov *to;
	uint32_t to_count;
	/* the same where it goes to one place */
	struct pgr_iov whole;
	/* as its first packet said */
	uint32_t bytes, packet_bytes, packets;
	/* how many packets */
	uint32_t arrived;
	/* all below are here */
	uint32_t cumulative;
	/* arrived since our last acknowledgement */
	uint32_t unsaid;
	/* a bit a packet that is here: owned, or &few where 64 are enough; NULL: no message of several packets */
	uint64_t *map;
	uint64_t few;
};

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
	uint8_t hurries;
	/* the server has said that it executes the call */
	bool alive;
	/* time-outs in a row of a packet of more than small_bytes, of the call or of its result */
	uint8_t silent;
	/* since the first of them the server has spoken of the call */
	bool answered;
	/* the server has said that it sends the result, in packets of so many bytes of data, more than small_bytes; 0 */
	uint32_t kept_bytes;
	/* of our own engine: the call passes on another one */
	bool delegating;
	/* the call went out under `claimed` */
	bool first_sent;
	/* the server has this call, by its own word: it may have executed it */
	bool heard;
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
	/* which call has a deadline of its own, when, and the code with which it then ends; 0: none. Good while `hasty` has it */
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
	bool lent;
	/* when the last call ended: an idle slot acknowledges some time later */
	uint64_t ended_ns;
};

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
	uint64_t lengthy;
	/* so many more packets of such calls leave room to short ones, since one was made beside them */
	uint32_t mixed;
	/* a bit a slot: it has, or had, a call with a deadline of its own */
	uint64_t hasty;
	/* packets that we may have, and have, under way */
	uint32_t credits, under_way;
	/* of data in a full packet, either way: the smaller of both ends' limits, or small_bytes if no more arrive */
	uint32_t packet_bytes;
	/* a packet of more than small_bytes has arrived: at the server, here */
	bool large_went, large_came;
	/* round trip, its variation, time-out: RFC 6298, with samples as Karn's rule allows them; 0: no sample yet */
	uint64_t srtt_ns, rttvar_ns, rto_ns;
	/* of calls: so far; the last one that is answered; which one that was when we last looked for lost ones */
	uint32_t sendings, newest, looked;
	/* when the server last said anything */
	uint64_t heard_ns;
	/* which slot goes on first when credits come */
	unsigned int turn;
	/* unbound; the next tick ends it */
	bool closing;
	/* its process had ended when we last looked, which was then */
	bool ended;
	uint64_t looked_ns;
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

enum pgr_work_state {
	/* arguments arrive */
	PGR_WORK_TAKING,
	/* the procedure has the token */
	PGR_WORK_EXECUTING,
	/* delegated to another server */
	PGR_WORK_PASSED,
	/* a result of several packets, or a delegated one, is under way */
	PGR_WORK_REPLYING,
	/* the result is kept for repetitions */
	PGR_WORK_KEPT,
};

/* A call at the server, from its first packet until its result is acknowledged. */
struct pgr_work {
	/* NULL: free, or the client has moved on */
	struct pgr_client *client;
	/* of the free list, or of those that need the clock */
	struct pgr_work *next;
	/* into that list; NULL: not in it */
	struct pgr_work **back;
	/* in its list of pgr->delegated, while it is among those that need the clock */
	struct pgr_work *next_delegated;
	/* what a token says; the generation is another one for each call */
	uint32_t index, generation;
	/* enum pgr_work_state; the client's slot; what the call said last; of the result, in a row */
	uint8_t state, slot, retransmissions, repeats;
	/* the result goes to `to` under the identity in `head`; who is there has spoken of it */
	bool delegated, heard;
	/* that the receiver of the result gave */
	uint16_t credits;
	uint32_t procedure;
	/* of data in a full packet of the result, at most */
	uint32_t packet_bytes;
	uint64_t sequence;
	struct pgr_to to;
	/* of the result: client, slot, sequence, incarnation */
	struct pgr_header head;
	struct pgr_incoming in;
	/* owned: arguments of several packets, or kept beyond the handler */
	uint8_t *args;
	struct pgr_outgoing out;
	/* owned: the result of one packet, or marshalled */
	uint8_t *saved;
	/* passed on: our own call that carries it */
	struct pgr_slot *onward;
	/* to the pool, and to whose share of it; NULL: nobody's yet */
	size_t charged_bytes;
	struct pgr_share *share;
	/* what is sent in place of a result that stays where it is, until the client has read it */
	uint8_t reference[PGR_REFERENCE_BYTES];
	/* the result is a rejection (FAILED) with this code */
	int rejected;
	pgr_sent *sent;
	void *sent_arg;
	uint64_t due_ns, since_ns;
	/* flags of the arguments: byte order, words */
	uint64_t data_order;
	void *coroutine;
};

/* A slot of a client's, as the server knows it. */
struct pgr_client_slot {
	/* of the newest call that was taken up */
	uint64_t sequence;
	/* NULL: executed and acknowledged */
	struct pgr_work *work;
};

/* Clients in the order in which they fell silent, the first one first; right to PGR_QUEUED_NS. */
struct pgr_queue {
	struct pgr_client *first, *last;
};
enum { PGR_OF_ALL, PGR_OF_SHARE, PGR_QUEUES };

/* What one host holds (on shm: one process) of what is for all. */
struct pgr_share {
	struct pgr_share *next;
	/* the first bytes of its addresses */
	uint32_t who;
	/* clients and works that name it; with the last one it goes */
	uint32_t users;
	uint32_t clients;
	struct pgr_queue silent;
	uint64_t pool_bytes;
};

/* What a server knows of a binding. */
struct pgr_client {
	uint64_t id;
	/* where it is, by the last cookie that it has shown */
	struct pgr_to to;
	/* in its bucket */
	struct pgr_client *next;
	/* the host's, or process's, that it belongs to */
	struct pgr_share *share;
	/* its neighbours in the queue of all, and in its share's; when it was put behind the others */
	struct pgr_client *before[PGR_QUEUES], *behind[PGR_QUEUES];
	uint64_t queued_ns;
	uint64_t heard_ns;
	/* when it was last given a cookie since it is known */
	uint64_t challenged_ns;
	/* pgr->period when it last had work here */
	uint32_t active;
	/* the server's own */
	void *data;
	/* slots of whose last call the result was dropped unacknowledged */
	uint64_t lost;
	struct pgr_client_slot slots[PGR_SLOTS];
};
_Static_assert(sizeof(struct pgr_client) <= 2048, "a known client costs the server at most 2 KiB");

/* What pgr_serve was told. */
struct pgr_procedure {
	uint32_t number;
	pgr_handler *handler;
	void *arg;
	bool has_signature;
	struct pgr_signature signature;
};

/* An endpoint. */
struct pgr {
	/*
	 * Zeros in a child that the process has forked, down to `wire`: the kernel wipes their page there (pgr_endpoint_take). So
	 * the short ways, which look at these anyway, see a fork at no cost, and leave it to the long ones to say so.
	 */
	/* the call whose handler runs, as long as nothing is kept of it: the work that it would take; NULL: none */
	struct pgr_work *current;
	/* this process has opened it; no poll of it runs; the short way of fast.h is open */
	bool here, idle, fast;

	/* owned */
	_Alignas(PGR_WIPED_BYTES) struct pgr_wire *wire;
	/* with all defaults filled in; its pointers are good only while pgr_open runs */
	struct pgr_config config;
	bool has_key;
	/* of the packets' checks; of the cookies, drawn when the endpoint opens */
	uint8_t key[PGR_KEY_BYTES], secret[PGR_KEY_BYTES];
	/* enum pgr_off */
	uint32_t off;
	/* of this endpoint as a server */
	uint32_t incarnation;
	/* of data in a full packet, at most; the same in one of 1,200 bytes, or packet_bytes where that is less */
	uint32_t packet_bytes, small_bytes;
	/* the longest message that goes in one packet */
	uint32_t single_bytes;
	bool reliable;
	/* of requests whose arguments lie where their packet came */
	uint32_t shared;

	/* time: when we last looked */
	uint64_t now_ns;
	/* how often, and when next, slots are looked through for what is late; when clients that are silent */
	uint64_t tick_ns, next_tick_ns, next_sweep_ns;
	/* the clock is read every so many polls that found nothing */
	uint32_t polls, polls_a_look;
	/* credits for each */
	uint16_t grant_to_clients, grant_to_servers;

	/* client: bindings, owned; those of them that are busy; the open ones by their identifier; that of the last packet */
	struct pgr_peer *peers, *busy, **by_hash, *recent_peer;
	/* how many are open, and busy */
	uint32_t peers_count, busy_count;
	/* of by_hash, its places less 1 */
	uint64_t peers_mask;
	/* every eighth call is timed */
	uint64_t sample;

	/* server: known clients, owned, in lists by their identifier; and all of them */
	struct pgr_client **buckets;
	struct pgr_queue silent;
	/* owned: in lists as well, as many */
	struct pgr_share **shares;
	/* owned, sorted: who may pass calls on to us */
	struct pgr_to *delegators;
	uint32_t delegators_count, delegators_room;
	/* whom the program is asked about; NULL: nobody */
	pgr_contact *contact;
	void *contact_arg;
	/* before that, nobody is looked for who may be forgotten early */
	uint64_t next_look_ns;
	/* the client of the last packet */
	struct pgr_client *recent;
	/* of buckets, its places less 1; known */
	uint32_t clients_mask, clients_count;
	/* that had work lately, among whom credits are shared: as of the last sweep; since then, which began this period */
	uint32_t clients_active, clients_counted, period;
	/* owned, sorted by number; the one of the last call */
	struct pgr_procedure *procedures, *recent_procedure;
	/* which number recent_procedure serves */
	uint32_t recent_number;
	uint32_t procedures_count;
	/* owned, by index */
	struct pgr_work **works;
	uint32_t works_count, works_room;
	/* that are not free; where the sweep goes on */
	uint32_t works_used, works_swept;
	/* those that are free, and those that need the clock; of the latter the delegated ones, in works_room lists, owned */
	struct pgr_work *works_free, *timed, **delegated;

	/* no new calls are taken */
	bool draining;
	/* of `current` */
	struct pgr_client *current_client;
	uint8_t current_slot;
	uint16_t current_credits;
	/* on a wire that loses nothing: after so long we ask */
	uint64_t probe_ns;

	/* handlers and continuations that ran in this poll */
	int events;
	/* a wire that loses nothing had no room: try again in the next poll */
	bool stalled;
	/* the wire may hold packets back */
	bool holding;

	/* owned: kept for the next message, by size; all of them together */
	struct pgr_buffer *buffers[PGR_BUFFER_CLASSES];
	uint64_t buffers_bytes;
	/* owned: memory of our own and of others that messages are read in */
	struct pgr_region *regions;
	/* that go so, at least; more than single_bytes */
	uint64_t in_place_bytes;
	struct pgr_view *views;
	/* with a key, or PGR_OFF_GATHER: one packet, to be put in one piece */
	uint8_t *scratch;
	/* PGR_OFF_IN_PLACE: a packet, in fast.h */
	uint8_t *copy;
	/* PGR_OFF_IN_PLACE: a message */
	uint8_t *copied;
	size_t copied_bytes;
	struct pgr_stats stats;
};

/* ---- send.c ---- */
/*
 * Sends one packet: header in the machine's order, the cookie unless it is 0, data gathered from at most PGR_IOV_MAX
 * pieces. 0, or 1 where the wire has no room and nothing happened. `more`: the wire may hold it back until pgr_flush.
 */
int pgr_send(struct pgr *pgr, const struct pgr_to *to, const struct pgr_header *head, uint64_t cookie,
	     const struct pgr_piece *data, unsigned int pieces, bool more);
/* The same, where every nanosecond counts: the line is as it is on the wire. */
int pgr_send_line(struct pgr *pgr, const struct pgr_to *to, const struct pgr_line *line, uint64_t cookie,
		  const struct pgr_piece *data, unsigned int pieces, bool more);
/* Before data that may be held back vanish. */
static inline void pgr_let_go(struct pgr *pgr)
{
	if (PGR_UNLIKELY(pgr->wire->lending))
		pgr_flush(pgr);
}

/* ---- endpoint.c ---- */
/* As pgr_open, on a wire that has no name: tests bring their own. */
int pgr_open_on(const struct pgr_wire_ops *ops, const struct pgr_config *config, struct pgr **pgr_out);

/* ---- client.c ---- */
/* What a server said; `packet` is right in itself. */
void pgr_client_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet);

/* The host of a server says that nobody takes this packet of ours: as wire.h. Ends the call that it speaks of. */
PGR_COLD void pgr_client_nobody(void *engine, const void *packet, size_t bytes);

/* A server refuses a call by a packet that has no right check: it ends nothing, but explains why nothing comes. */
PGR_COLD void pgr_client_refused(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *head);

/* ---- client_bind.c ---- */
/* The open binding with this identifier; NULL. */
struct pgr_peer *pgr_peer_of(struct pgr *pgr, uint64_t client);
/* Makes the slot, of a binding that is busy from now on; false: no memory. */
PGR_COLD bool pgr_slot_make(struct pgr_peer *peer, unsigned int number);
/* An address as a program or a packet names it; false: none that an endpoint of this wire can have. */
bool pgr_read_address(const struct pgr *pgr, const void *address, size_t address_bytes,
		      struct pgr_to *to_out);
/* Nothing of it is outstanding or unacknowledged: it is busy no more, and its slots are released. */
PGR_COLD void pgr_peer_rest(struct pgr_peer *peer);
/* Ends a binding that was unbound, when nobody works on it; its calls end with PGR_E_CLOSED. */
void pgr_peer_end(struct pgr_peer *peer);

/* ---- client_call.c ---- */
/* A slot for the next call. PGR_OK; BUSY: none is free, or the binding ends; E_MEMORY. */
int pgr_slot_take(struct pgr_peer *peer, struct pgr_slot **slot_out);
/* Sends the call whose out.iov, out.count, out.bytes are set. An error: it was not started, and is to be put back. */
int pgr_slot_start(struct pgr_slot *slot, uint32_t procedure, pgr_done *done, void *arg, bool more);
/* Of a slot that was taken and not started. */
void pgr_slot_put_back(struct pgr_slot *slot);
/* Sends what credits allow, of a call. */
void pgr_slot_send(struct pgr_slot *slot, bool more);
/* Room or credits have come: the slots that wait go on, each time from another one. */
void pgr_peer_send_queued(struct pgr_peer *peer);
/* Nothing came in time: says it again. */
void pgr_slot_late(struct pgr_slot *slot);
/* Sends a packet without data of the caller's that speaks of the slot's call; the bitmap is that of a nack. */
void pgr_slot_say(struct pgr_slot *slot, const struct pgr_to *to, uint8_t type, uint8_t flags,
		  uint32_t incarnation, const uint8_t *bitmap, size_t bitmap_bytes, uint32_t number);
/* Asks the server what has become of the call. */
void pgr_slot_ask(struct pgr_slot *slot);
/* The result has arrived whole. */
void pgr_slot_ack(struct pgr_slot *slot, const struct pgr_to *to, bool delegated, uint32_t incarnation);
/* Ends a call: the slot is free again when `done` runs, so that it may call. */
void pgr_slot_end(struct pgr_slot *slot, int code, const void *result, size_t result_bytes);

/* ---- client_result.c ---- */
/* A result is complete, in one piece at `data`: brings it to the caller, and ends the call. */
void pgr_slot_deliver(struct pgr_slot *slot, const struct pgr_packet *packet, const struct pgr_to *from,
		      const uint8_t *data, uint64_t bytes);
/* Takes a packet of a longer result; with the last one the call ends. */
PGR_COLD void pgr_slot_take_part(struct pgr_slot *slot, const struct pgr_packet *packet,
				 const struct pgr_to *from);
/* Tells the server which packets of a longer result have come. */
void pgr_slot_progress(struct pgr_slot *slot);

/* ---- memory.c ---- */
/* Whether a message lies in one piece of memory that the other side can read: then this is sent in its place. */
bool pgr_refer(const struct pgr *pgr, const struct pgr_iov *iov, uint32_t count,
	       uint8_t reference_out[PGR_REFERENCE_BYTES]);
/* Whether the message is sent as the reference that belongs to it. */
static inline bool pgr_is_reference(const struct pgr_outgoing *out, const uint8_t *reference)
{
	return out->count == 1 && out->iov[0].base == reference;
}
/* Of a result that was answered: the client has not said yet that it has read it, where it lies. */
static inline bool pgr_stays(const struct pgr_work *work)
{
	return pgr_is_reference(&work->out, work->reference);
}
/* Where the message of a packet with a reference lies, until the next poll; NULL: nowhere that it may be read. */
PGR_COLD const uint8_t *pgr_referred(struct pgr *pgr, const struct pgr_to *from,
				     const struct pgr_packet *packet, uint64_t *bytes_out);
/* Lets go of memory that its owner has given back, or whose owner has ended. Not where something of it is lent. */
void pgr_views_sweep(struct pgr *pgr);
void pgr_memory_free(struct pgr *pgr);

/* ---- path.c ---- */
/* In packets of how many bytes of data a result goes to who takes so many. */
uint32_t pgr_result_size(const struct pgr *pgr, uint32_t taken);
/* The server takes so many bytes of data in a packet. */
void pgr_peer_takes(struct pgr_peer *peer, uint32_t data_bytes);
/* As if nothing of the call had been sent, in packets of the size that there is now. False: it has failed, and ended. */
bool pgr_slot_begin_again(struct pgr_slot *slot);
/* Whether what is repeated after a time-out is a packet of more than small_bytes. */
bool pgr_slot_large_open(const struct pgr_slot *slot);
/* At a time-out. Whether large packets do not arrive, and small ones go from now on: they are sent, or asked for. */
PGR_COLD bool pgr_slot_shrinks(struct pgr_slot *slot);
/*
 * The client takes so many bytes of data in a packet of this result. Whether smaller ones than went out so far do now, or
 * it was lost for want of memory.
 */
bool pgr_result_smaller(struct pgr *pgr, struct pgr_work *work, uint32_t taken);
/* Bytes of data in the packets of this result, if it has any of more than 1,200 bytes; else 0. */
uint32_t pgr_result_large(const struct pgr *pgr, const struct pgr_work *work);

/* ---- server.c ---- */
/* A place in a table for a key that others choose, who do not know the secret: a few of the finalizer's steps of MurmurHash3. */
static inline uint64_t pgr_mixed(const struct pgr *pgr, uint64_t key)
{
	uint64_t salt;

	memcpy(&salt, pgr->secret, sizeof(salt));
	key ^= salt;
	key = (key ^ key >> 33) * UINT64_C(0xff51afd7ed558ccd);
	key = (key ^ key >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return key ^ key >> 33;
}
/* What a client said, or who passes a call on, or who got a result of ours; `packet` is right in itself. */
void pgr_server_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet);
/* Refuses a call or probe, of which only the header `to` is known, and why it may not be used. */
PGR_COLD void pgr_server_refuse(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to,
				enum pgr_unread why);
/* Who is known by this identifier; NULL. */
struct pgr_client *pgr_client_of(struct pgr *pgr, uint64_t id);
/* Releases a client and all that was kept for it. */
void pgr_client_forget(struct pgr *pgr, struct pgr_client *client);
/* The work that a token names; NULL: its caller has gone, or the token was consumed. */
struct pgr_work *pgr_work_of(struct pgr *pgr, const struct pgr_token *token);
/* Releases what a work owns; it goes to the free list, and its token means nothing any more. */
void pgr_work_free(struct pgr *pgr, struct pgr_work *work);
/* Runs the handler of the work's procedure, or rejects the call where there is none. `args` are lent. */
void pgr_execute(struct pgr *pgr, struct pgr_work *work, const void *args, size_t bytes);
/* The call whose handler runs gets the work that its token names. */
void pgr_current_keep(struct pgr *pgr);
/* What serves this number, PGR_ANY_PROCEDURE included; NULL: nothing does. */
struct pgr_procedure *pgr_procedure_of(struct pgr *pgr, uint32_t number);
/* Into and out of the list of works that need the clock; both may be said twice. */
void pgr_timed_add(struct pgr *pgr, struct pgr_work *work);
void pgr_timed_remove(struct pgr *pgr, struct pgr_work *work);

/* ---- share.c ---- */
/* The share that an address belongs to, until it is put back; NULL: no memory. */
struct pgr_share *pgr_share_get(struct pgr *pgr, const struct pgr_to *to);
/* NULL is legal. */
void pgr_share_put(struct pgr *pgr, struct pgr_share *share);
/* Charges so many bytes more of a work to the pool; false: it has no room, or not for this host. */
bool pgr_charge(struct pgr *pgr, struct pgr_work *work, size_t bytes);
/* All that it was charged. */
void pgr_uncharge(struct pgr *pgr, struct pgr_work *work);
/* A client that is new, or goes to another address, is of this share from now on, and is no more. */
void pgr_share_enter(struct pgr *pgr, struct pgr_share *share, struct pgr_client *client);
void pgr_share_leave(struct pgr *pgr, struct pgr_client *client);
PGR_COLD void pgr_client_requeue(struct pgr *pgr, struct pgr_client *client);
/* It has spoken. */
static inline void pgr_client_heard(struct pgr *pgr, struct pgr_client *client)
{
	client->heard_ns = pgr->now_ns;
	if (PGR_UNLIKELY(pgr->now_ns - client->queued_ns >= PGR_QUEUED_NS))
		pgr_client_requeue(pgr, client);
}
/* Something is being done or kept for it, so it is not forgotten: what it may say next has to find its slot. */
bool pgr_client_has_work(const struct pgr_client *client);
/* Whether the table of clients has a place for one more of this share; for it, one that is silent may be forgotten. */
bool pgr_share_has_place(struct pgr *pgr, const struct pgr_share *share);

/* ---- reply.c ---- */
/* Sends what credits allow, of a result. */
void pgr_result_send(struct pgr *pgr, struct pgr_work *work, bool more);
/* The call was repeated so many times in a row, or time has passed: says the result again. */
void pgr_result_again(struct pgr *pgr, struct pgr_work *work, uint8_t retransmissions);
/* The client has it all: gives the buffers back, and forgets the result. */
void pgr_result_acked(struct pgr *pgr, struct pgr_work *work);
/* Nobody has asked for it for long: it is forgotten unacknowledged, and who asks later is told so. */
void pgr_result_dropped(struct pgr *pgr, struct pgr_work *work);
/* A delegated result was not acknowledged: nobody knows what became of it, and who passed the call on is told. */
void pgr_result_lost(struct pgr *pgr, struct pgr_work *work);
/*
 * Ends the call with a code of its procedure's, PGR_E_PROCEDURE, or PGR_E_GIVE_UP: nobody knows what became of it.
 */
void pgr_work_reject(struct pgr *pgr, struct pgr_work *work, int code);

/* ---- delegate.c ---- */
/* Whether the server at this address may pass calls on to us. */
bool pgr_may_delegate(const struct pgr *pgr, const struct pgr_to *from);
/* Takes the token off the data of a delegated call; false: it is not right. */
bool pgr_delegated_in(const struct pgr *pgr, struct pgr_work *work, const uint8_t *data, size_t bytes);

/* ---- blast.c ---- */
/*
 * Data bytes of each packet of a message, `most` at most: a wire that loses nothing has large ones, but two sides copy
 * at once only in several.
 */
static inline uint32_t pgr_split(const struct pgr *pgr, uint32_t most, uint32_t bytes)
{
	uint32_t part = bytes / PGR_PARTS & ~UINT32_C(63);

	if (PGR_LIKELY(!pgr->reliable || bytes <= pgr->single_bytes))
		return most;
	part = part < pgr->single_bytes ? pgr->single_bytes : part;
	return part < pgr->packet_bytes ? part : pgr->packet_bytes;
}
/* Begins a message whose iov, count and bytes are set. PGR_OK or E_MEMORY, E_TOO_LARGE. */
int pgr_outgoing_start(struct pgr_outgoing *out, uint32_t packet_bytes);
/* Releases what it owns; legal on zeros, and twice. */
void pgr_outgoing_end(struct pgr_outgoing *out);
/*
 * The next packet to send under `credits` (PGR_PACKETS_MAX: on a wire that loses nothing, and so reports nothing): one that
 * is lost, else a new one. PGR_PACKETS_MAX: none now.
 */
uint32_t pgr_outgoing_next(struct pgr_outgoing *out, uint32_t credits);
/* Packet `number` goes out now. */
void pgr_outgoing_sent(struct pgr_outgoing *out, uint32_t number);
/* But it did not: the wire had no room for it. */
void pgr_outgoing_lost(struct pgr_outgoing *out, uint32_t number);
/* Learns from an ack (bitmap NULL) or nack. Returns whether something arrived that was not known to have. */
bool pgr_outgoing_learn(struct pgr_outgoing *out, uint32_t below, const uint8_t *bitmap, size_t bitmap_bytes);
/* The pieces of a packet's data; at most PGR_IOV_MAX. */
unsigned int pgr_outgoing_pieces(const struct pgr_outgoing *out, uint32_t number, struct pgr_piece *pieces);
/* As if nothing had been sent. */
void pgr_outgoing_restart(struct pgr_outgoing *out);
/* Nothing was heard for too long: what is under way is taken for lost. */
void pgr_outgoing_all_lost(struct pgr_outgoing *out);
/* The last packet sent that is not known to have arrived; PGR_PACKETS_MAX: all have. */
uint32_t pgr_outgoing_open(const struct pgr_outgoing *out);

/*
 * Begins a message whose first packet has this header; `to` is where it goes, NULL: to one place, `whole`. PGR_OK or
 * E_MEMORY.
 */
int pgr_incoming_start(struct pgr_incoming *in, const struct pgr_header *head, uint8_t *whole,
		       const struct pgr_iov *to, uint32_t to_count);
/* Releases what it owns; legal on zeros, and twice. */
void pgr_incoming_end(struct pgr_incoming *in);
enum pgr_came {
	/* the packet is new, and its data are in their place; else it is here already, or not of this message */
	PGR_CAME_NEW = 1,
	/* with it all are here */
	PGR_CAME_WHOLE = 2,
	/* its sender shall hear what has come: it asked, or this is a quarter of its window */
	PGR_CAME_REPORT = 4
};
/*
 * Takes a packet of the message, whose sender may have `window` of them under way. One that is cut smaller begins the
 * message anew: what is here of it in larger packets is dropped. Returns bits of enum pgr_came.
 */
unsigned int pgr_incoming_take(struct pgr_incoming *in, const struct pgr_packet *packet, uint32_t window);
/* Fills type (ack or nack), packet number, packet bytes and a bitmap; returns the bitmap's bytes. */
size_t pgr_incoming_report(struct pgr_incoming *in, struct pgr_header *head,
			   uint8_t bitmap[PGR_NACK_BITMAP_BYTES]);
/* Copies to offset `at` of what the list describes; the caller has checked that it fits. */
void pgr_scatter(const struct pgr_iov *iov, uint32_t count, uint64_t at, const uint8_t *data, size_t bytes);
/* Copies all that the list describes to one place, which has room. */
void pgr_gather(const struct pgr_iov *iov, uint32_t count, uint8_t *at);
/* Of all entries. */
uint64_t pgr_iov_bytes(const struct pgr_iov *iov, uint32_t count);

/* ---- clock.c ---- */
/* Reads the clock: ns that go on while the machine sleeps. It is pgr->now_ns until the next look. */
uint64_t pgr_now(struct pgr *pgr);
/* Takes a sample of the round trip (RFC 6298). */
void pgr_round_trip(struct pgr_peer *peer, uint64_t sample_ns);
/*
 * A call took so long from its first sending to its result, and its server said that it was at it: no repetition was
 * of use, so the next calls wait longer before they are repeated. Not by Karn's rule, which knows only losses.
 */
void pgr_service_time(struct pgr_peer *peer, uint64_t took_ns);
/* A time-out, doubled by each repetition, but so that many tries fit into the give-up time. */
uint64_t pgr_backed_off(const struct pgr *pgr, uint64_t rto_ns, uint8_t repeats);
/* How long to wait for the slot's answer: doubled by each repetition, up to a limit. */
uint64_t pgr_slot_timeout(const struct pgr_slot *slot);
/*
 * The slot's call leaves, or its server has spoken of it: from this moment, not from when the clock was last looked
 * at, it waits for an answer, and for the give-up time.
 */
void pgr_slot_arm(struct pgr_slot *slot);
/* As pgr_slot_arm, for a call of which nothing has left before this moment. */
void pgr_slot_leave(struct pgr_slot *slot);
/* From this moment it waits for an answer; when it is given up stays as it is. */
void pgr_slot_wait(struct pgr_slot *slot);

/* ---- timer.c ---- */
/* Looks through slots and works for what is late, through clients for those that are silent. */
void pgr_tick(struct pgr *pgr);
/* The next poll looks through all that waits for the clock. */
static inline void pgr_tick_soon(struct pgr *pgr)
{
	pgr->next_tick_ns = 0;
	pgr->polls = 4 * pgr->polls_a_look;
}
/* When, by pgr_now, something has to be done although nothing arrives. */
uint64_t pgr_next_due(const struct pgr *pgr);

/* ---- credit.c ---- */
/* Shares the window out again, after clients or servers have come or gone. */
void pgr_share_out(struct pgr *pgr);
/* From time to time: among those who had work since the last time. */
void pgr_share_anew(struct pgr *pgr);
/* It has work here. */
static inline void pgr_client_active(struct pgr *pgr, struct pgr_client *client)
{
	if (PGR_LIKELY(client->active == pgr->period))
		return;
	client->active = pgr->period;
	pgr->clients_counted++;
}
/* The credits that go into a packet to a client, which thereby had work here lately; and to a server. */
static inline uint16_t pgr_grant_to_client(struct pgr *pgr, struct pgr_client *client)
{
	pgr_client_active(pgr, client);
	return pgr->grant_to_clients;
}
static inline uint16_t pgr_grant_to_server(const struct pgr *pgr)
{
	return pgr->grant_to_servers;
}

/* ---- buffer.c ---- */
/* An endpoint of zeros; NULL: no memory. */
struct pgr *pgr_endpoint_take(void);
void pgr_endpoint_give(struct pgr *pgr);
/* Room for a message; NULL: no memory. */
uint8_t *pgr_buffer_take(struct pgr *pgr, uint64_t bytes);
/* NULL is legal. */
void pgr_buffer_give(struct pgr *pgr, uint8_t *at);
void pgr_buffers_free(struct pgr *pgr);
/* mask + 1 pointers, all NULL, of which only those that are used cost memory; NULL: none is left. NULL is legal to free. */
void *pgr_table_take(uint64_t mask);
void pgr_table_free(void *table, uint64_t mask);

/* ---- convert.c ---- */
/* Bytes of a message of so many bytes as big-endian words. */
uint64_t pgr_words_bytes(const char *signature, uint64_t bytes);
/* Words do not fit the signature. */
#define PGR_WORDS_BAD UINT64_MAX
/* Both return the bytes written, or PGR_WORDS_BAD; to and from have room for the larger form. */
uint64_t pgr_words_make(const char *signature, const uint8_t *from, uint64_t bytes, uint8_t *to);
uint64_t pgr_words_take(const char *signature, const uint8_t *from, uint64_t bytes, uint8_t *to);
/* Swaps each element in place, for a sender of the other byte order. */
void pgr_swap(const char *signature, uint8_t *at, uint64_t bytes);

/* ---- coroutine.c ---- */
/* Runs the handler on a stack that is made ready for it, saved and restored. */
void pgr_run_on_own_stack(pgr_handler *handler, void *arg, const struct pgr_request *request);
void pgr_own_stack_free(void);

#endif
