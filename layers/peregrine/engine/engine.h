/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of the engine: what its files share. One file a duty:
 *
 *	endpoint.c  open, close, poll, wait; which file a packet goes to
 *	client*.c   bindings; a call leaves its slot, its result comes in, what else a server may say
 *	server.c    clients, first contact, what a call meets in its slot
 *	reply.c     results on their way, and kept
 *	delegate.c  calls passed on
 *	blast.c     messages of several packets, both ends
 *	fast.h      the usual case, short
 *	timer.c     round-trip times, repetition, giving up, forgetting
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

#include "packet.h"
#include "pgr.h"
#include "wire.h"

#define PGR_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define PGR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define PGR_PROBE_NS            UINT64_C(500000000)
#define PGR_COLD                __attribute__((cold, noinline))

enum {
	PGR_CREDITS_FIRST = 32, /* packets, before the other side has said more: as in eRPC */
	PGR_CREDITS_MAX = 1024,
	PGR_REORDER_PACKETS = 3, /* a packet is lost when one sent so much later has arrived */
	PGR_REORDER_CALLS = 16,  /* a call is taken for lost when one sent so many later is answered */
	PGR_HURRIES_MAX = 3,     /* times */
	PGR_BACKOFF_MAX = 6,     /* doublings of the time-out */
	PGR_TRIES_MIN = 40,      /* within the give-up time */
	PGR_PROCEDURES_MAX = 1024,
	PGR_COOKIE_EPOCH_S = 5,
	PGR_BUFFER_CLASSES = 32,
	PGR_PARTS = 16,           /* packets of a message on a wire with large ones */
	PGR_SINGLE_BYTES = 16384, /* up to here there it is one */
};

/* A message on its way out: what was sent and what is known to have arrived. */
struct pgr_outgoing {
	struct pgr_iov iov[PGR_IOV_MAX];
	uint32_t count;
	uint32_t bytes, packet_bytes, packets;
	uint32_t next;      /* the first packet that was never sent, or not since a restart */
	uint32_t ever;      /* and that was never sent at all */
	uint32_t acked;     /* all below have arrived */
	uint32_t under_way; /* sent, not known to have arrived and not taken for lost: what credits count */
	uint32_t last;      /* the packet sent last */
	/* Only for more than one packet: */
	uint32_t *order;   /* [packets] number of the last sending of each, from 1; 0: arrived, or not sent */
	uint32_t sendings; /* so far */
	uint32_t newest;   /* largest order of a packet that arrived */
	uint32_t lost;     /* packets to be sent again, flagged in the order's highest bit */
	uint32_t seek;     /* no lost packet lies below */
};

/* A message on its way in. */
struct pgr_incoming {
	uint32_t bytes, packet_bytes, packets;
	uint32_t arrived;    /* how many */
	uint32_t cumulative; /* all below are here */
	uint32_t unsaid;     /* arrived since our last acknowledgement */
	uint64_t *map;       /* a bit a packet; &few where 64 are enough */
	uint64_t few;
};

enum pgr_slot_state {
	PGR_SLOT_FREE,
	PGR_SLOT_QUEUED,  /* waits for credits; nothing was sent */
	PGR_SLOT_CALLING, /* sent, no result yet */
	PGR_SLOT_TAKING,  /* some packets of the result are here */
};

/* One call at a time of a binding. */
struct pgr_slot {
	/* template, in the machine's own order: flags and procedure are patched per call */
	struct pgr_header head;
	struct pgr_peer *peer;
	uint64_t sequence;
	uint8_t number, state;
	uint8_t repeats;  /* time-outs in a row: backoff and Karn's rule */
	uint8_t hurries;  /* of them, repetitions before their time */
	bool alive;       /* the server has said that it executes the call */
	bool delegating;  /* of our own engine: the call passes on another one */
	bool first_sent;  /* the call went out under `claimed` */
	bool heard;       /* the server has this call, by its own word: it may have executed it */
	uint32_t claimed; /* incarnation in the packets of this call */
	uint32_t order;   /* of its sending, among the binding's */
	int code;         /* what giving up means: GIVE_UP, or SERVER_BUSY where it said so */
	uint64_t carried; /* the cookie that this call went out with */
	uint64_t sent_ns, due_ns, give_up_ns; /* sent_ns 0: no sample */
	pgr_done *done;
	void *arg;
	const struct pgr_signature *signature;
	struct pgr_outgoing out;
	struct pgr_iov to[PGR_IOV_MAX]; /* where the result goes */
	uint32_t to_count;
	uint64_t to_bytes;
	struct pgr_incoming in;
	uint8_t *staging; /* owned: the result, where the caller gave no buffers, or before it is copied */
	struct pgr_to result_from; /* of a result of several packets: who sends it, and how it says so */
	uint32_t result_incarnation;
	uint8_t result_flags;
	/* owned: the arguments in one piece, where they cannot be sent from where they lie */
	uint8_t *marshal;
	uint64_t ended_ns;
};

struct pgr_peer {
	struct pgr *pgr;
	struct pgr_peer *next;
	struct pgr_to to;
	uint64_t client;      /* identifier of this binding */
	uint32_t incarnation; /* of the server; 0: not known */
	uint64_t cookie;      /* sent along in slots that are not introduced; 0: none was given yet */
	uint64_t introduced;  /* a bit a slot: the server holds a number for it */
	uint64_t free, queued, unacked; /* a bit a slot; unacked: result taken, not acknowledged */
	uint32_t credits, under_way;    /* packets that we may have, and have, under way */
	uint64_t srtt_ns, rttvar_ns, rto_ns;
	uint32_t sendings, newest,
		looked;    /* of calls; the last that is answered; when we last looked for lost ones */
	uint64_t heard_ns; /* when the server last said anything */
	unsigned int turn; /* which slot goes on first when credits come */
	bool closing;
	uint8_t flags; /* of its calls: byte order, words */
	struct pgr_slot slots[PGR_SLOTS];
};

enum pgr_work_state {
	PGR_WORK_TAKING,    /* arguments arrive */
	PGR_WORK_EXECUTING, /* the procedure has the token */
	PGR_WORK_PASSED,    /* delegated to another server */
	PGR_WORK_REPLYING,  /* a result of several packets, or a delegated one, is under way */
	PGR_WORK_KEPT,      /* the result is kept for repetitions */
};

/* A call at the server, from its first packet until its result is acknowledged. */
struct pgr_work {
	struct pgr_client *client;  /* NULL: free, or the client has moved on */
	struct pgr_work *next;      /* of the free list, or of those that need the clock */
	struct pgr_work **back;     /* into that list; NULL: not in it */
	uint32_t index, generation; /* what a token says */
	uint8_t state, slot, retransmissions, repeats;
	bool delegated;   /* the result goes to `to` under the identity in `head` */
	uint16_t credits; /* that the receiver of the result gave */
	uint32_t procedure;
	uint64_t sequence;
	struct pgr_to to;
	struct pgr_header head; /* of the result: client, slot, sequence, incarnation */
	struct pgr_incoming in;
	uint8_t *args; /* owned */
	struct pgr_outgoing out;
	uint8_t *saved;       /* owned: the result of one packet, or marshalled */
	size_t charged_bytes; /* to the pool */
	int rejected;         /* the result is a rejection (FAILED) with this code */
	pgr_sent *sent;
	void *sent_arg;
	uint64_t due_ns, since_ns;
	uint64_t data_order; /* flags of the arguments: byte order, words */
	void *coroutine;
};

struct pgr_client_slot {
	uint64_t sequence;     /* of the newest call that was taken up */
	struct pgr_work *work; /* NULL: executed and acknowledged */
};

/* What a server knows of a binding. */
struct pgr_client {
	uint64_t id;
	struct pgr_to to;
	struct pgr_client *next; /* in its bucket */
	uint64_t heard_ns;
	uint64_t active_ns; /* when it last had work here */
	void *data;         /* the server's own */
	struct pgr_client_slot slots[PGR_SLOTS];
};
_Static_assert(sizeof(struct pgr_client) <= 2048, "a known client costs the server at most 2 KiB");

struct pgr_procedure {
	uint32_t number;
	pgr_handler *handler;
	void *arg;
	bool has_signature;
	struct pgr_signature signature;
};

struct pgr {
	struct pgr_wire *wire;
	struct pgr_config config;
	bool has_key;
	uint8_t key[PGR_KEY_BYTES], secret[PGR_KEY_BYTES];
	uint32_t off;
	uint32_t incarnation;
	uint32_t packet_bytes; /* of data in a full packet, at most */
	uint32_t single_bytes; /* the longest message that goes in one packet */
	bool reliable;
	/* time */
	uint64_t now_ns; /* when we last looked */
	uint64_t tick_ns, next_tick_ns, next_sweep_ns;
	uint32_t polls, polls_a_look; /* the clock is read every so many polls that found nothing */
	uint16_t grant_to_clients, grant_to_servers; /* credits for each */
	/* client */
	struct pgr_peer *peers, **by_hash, *recent_peer;
	uint32_t peers_count, peers_mask;
	uint64_t sample; /* every eighth call is timed */
	/* server */
	struct pgr_client **buckets;
	struct pgr_client *recent; /* the client of the last packet */
	uint32_t clients_mask, clients_count, clients_active;
	struct pgr_procedure *procedures, *recent_procedure;
	uint32_t recent_number; /* which recent_procedure serves */
	uint32_t procedures_count;
	struct pgr_work **works; /* by index */
	uint32_t works_count, works_room;
	struct pgr_work *works_free, *timed;
	/* the call whose handler runs, as long as nothing is kept of it: see fast.h */
	bool fast;
	struct pgr_work *current; /* the work that it would take; NULL: there is none */
	struct pgr_client *current_client;
	uint8_t current_slot;
	uint16_t current_credits;
	uint64_t probe_ns; /* on a wire that loses nothing: after so long we ask */
	/* what handlers are told */
	int events;
	bool in_poll;
	bool stalled; /* a wire that loses nothing had no room: try again in the next poll */
	bool holding; /* the wire may hold packets back */
	struct pgr_buffer *buffers[PGR_BUFFER_CLASSES]; /* kept for the next message */
	uint64_t buffers_bytes;
	uint8_t *scratch; /* with a key, or PGR_OFF_GATHER: one packet, to be put in one piece */
	uint8_t *copy;    /* PGR_OFF_IN_PLACE: a packet, in fast.h */
	uint8_t *copied;  /* PGR_OFF_IN_PLACE: a message */
	size_t copied_bytes;
	struct pgr_stats stats;
};

/* ---- endpoint.c ---- */
uint64_t pgr_now(struct pgr *pgr); /* reads the clock */
/* Sends one packet: header in the machine's order, data gathered. 0, or 1 where the wire has no room. */
int pgr_send(struct pgr *pgr, const struct pgr_to *to, const struct pgr_header *head, uint64_t cookie,
	     const struct pgr_piece *data, unsigned int pieces, bool more);
/* The same, where every nanosecond counts: the line is as it is on the wire. */
int pgr_send_line(struct pgr *pgr, const struct pgr_to *to, const struct pgr_line *line, uint64_t cookie,
		  const struct pgr_piece *data, unsigned int pieces, bool more);
uint64_t pgr_random(void);
/* Before data that may be held back vanish. */
static inline void pgr_let_go(struct pgr *pgr)
{
	if (PGR_UNLIKELY(pgr->wire->lending))
		pgr_flush(pgr);
}

/* As pgr_open, on a wire that has no name: tests bring their own. */
int pgr_open_on(const struct pgr_wire_ops *ops, const struct pgr_config *config, struct pgr **pgr_out);

/* ---- client.c ---- */
/* What a server said; `packet` is right in itself. */
void pgr_client_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet);

/* ---- client_bind.c ---- */
/* Ends a binding that was unbound, when nobody works on it; its calls end with PGR_E_CLOSED. */
void pgr_peer_end(struct pgr_peer *peer);

/* ---- client_call.c ---- */
/* A slot for the next call; NULL: none is free, or the binding ends. */
struct pgr_slot *pgr_slot_take(struct pgr_peer *peer);
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

/* ---- server.c ---- */
void pgr_server_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet);
void pgr_client_forget(struct pgr *pgr, struct pgr_client *client);
struct pgr_work *pgr_work_of(struct pgr *pgr, const struct pgr_token *token);
void pgr_work_free(struct pgr *pgr, struct pgr_work *work);
void pgr_execute(struct pgr *pgr, struct pgr_work *work, const void *args, size_t bytes);
/* The call whose handler runs gets the work that its token names. */
void pgr_current_keep(struct pgr *pgr);
bool pgr_charge(struct pgr *pgr, struct pgr_work *work, size_t bytes);
struct pgr_procedure *pgr_procedure_of(struct pgr *pgr, uint32_t number);
void pgr_timed_add(struct pgr *pgr, struct pgr_work *work);
void pgr_timed_remove(struct pgr_work *work);

/* ---- reply.c ---- */
void pgr_result_send(struct pgr *pgr, struct pgr_work *work, bool more); /* what credits allow */
void pgr_result_again(struct pgr *pgr, struct pgr_work *work, uint8_t retransmissions);
void pgr_result_acked(struct pgr *pgr, struct pgr_work *work); /* the client has it all */
void pgr_result_lost(struct pgr *pgr, struct pgr_work *work);
/* Ends the call with a code of its procedure's, PGR_E_PROCEDURE, or PGR_E_GIVE_UP: nobody knows what became
 * of it. */
void pgr_work_reject(struct pgr *pgr, struct pgr_work *work, int code);

/* ---- delegate.c ---- */
/* Takes the token off the data of a delegated call; false: it is not right. */
bool pgr_delegated_in(struct pgr_work *work, const uint8_t *data, size_t bytes);

/* ---- blast.c ---- */
/* Data bytes of each packet of a message: a wire that loses nothing has large ones, but two sides copy at
 * once only in several. */
static inline uint32_t pgr_split(const struct pgr *pgr, uint32_t bytes)
{
	uint32_t part = bytes / PGR_PARTS & ~UINT32_C(63);

	if (PGR_LIKELY(!pgr->reliable || bytes <= pgr->single_bytes))
		return pgr->packet_bytes;
	part = part < pgr->single_bytes ? pgr->single_bytes : part;
	return part < pgr->packet_bytes ? part : pgr->packet_bytes;
}
int pgr_outgoing_start(struct pgr_outgoing *out, uint32_t packet_bytes); /* iov, count, bytes are set */
void pgr_outgoing_end(struct pgr_outgoing *out);
/* The next packet to send under `credits`: one that is lost, else a new one. PGR_PACKETS_MAX: none now. */
uint32_t pgr_outgoing_next(struct pgr_outgoing *out, uint32_t credits);
void pgr_outgoing_sent(struct pgr_outgoing *out, uint32_t number);
void pgr_outgoing_lost(struct pgr_outgoing *out, uint32_t number); /* the wire had no room for it */
/* Learns from an ack (bitmap NULL) or nack. Returns whether something arrived that was not known to have. */
bool pgr_outgoing_learn(struct pgr_outgoing *out, uint32_t below, const uint8_t *bitmap, size_t bitmap_bytes);
/* The pieces of a packet's data; at most PGR_IOV_MAX. */
unsigned int pgr_outgoing_pieces(const struct pgr_outgoing *out, uint32_t number, struct pgr_piece *pieces);
void pgr_outgoing_restart(struct pgr_outgoing *out);  /* as if nothing had been sent */
void pgr_outgoing_all_lost(struct pgr_outgoing *out); /* nothing was heard for too long */
/* The last packet sent that is not known to have arrived; PGR_PACKETS_MAX: all have. */
uint32_t pgr_outgoing_open(const struct pgr_outgoing *out);

int pgr_incoming_start(struct pgr_incoming *in, const struct pgr_header *head);
void pgr_incoming_end(struct pgr_incoming *in);
/* Marks a packet; false: it is here already, or is not of this message. */
bool pgr_incoming_take(struct pgr_incoming *in, const struct pgr_header *head);
static inline bool pgr_incoming_whole(const struct pgr_incoming *in)
{
	return in->arrived == in->packets;
}
/* Fills type (ack or nack), packet number and a bitmap; returns the bitmap's bytes. */
size_t pgr_incoming_report(struct pgr_incoming *in, struct pgr_header *head,
			   uint8_t bitmap[PGR_NACK_BITMAP_BYTES]);
void pgr_scatter(const struct pgr_iov *iov, uint32_t count, uint64_t at, const uint8_t *data, size_t bytes);
void pgr_gather(const struct pgr_iov *iov, uint32_t count, uint8_t *at);
uint64_t pgr_iov_bytes(const struct pgr_iov *iov, uint32_t count);

/* ---- timer.c ---- */
void pgr_tick(struct pgr *pgr);
void pgr_round_trip(struct pgr_peer *peer, uint64_t sample_ns);
uint64_t pgr_slot_timeout(const struct pgr_slot *slot);
uint64_t pgr_next_due(const struct pgr *pgr);

/* ---- credit.c ---- */
void pgr_share_out(struct pgr *pgr); /* after clients or servers have come or gone */
static inline uint16_t pgr_grant_to_client(const struct pgr *pgr, struct pgr_client *client)
{
	client->active_ns = pgr->now_ns;
	return pgr->grant_to_clients;
}
static inline uint16_t pgr_grant_to_server(const struct pgr *pgr)
{
	return pgr->grant_to_servers;
}

/* ---- buffer.c ---- */
/* Room for a message; NULL: no memory. */
uint8_t *pgr_buffer_take(struct pgr *pgr, uint64_t bytes);
void pgr_buffer_give(struct pgr *pgr, uint8_t *at); /* NULL is legal */
void pgr_buffers_free(struct pgr *pgr);

/* ---- convert.c ---- */
/* Bytes of a message of so many bytes as big-endian words. */
uint64_t pgr_words_bytes(const char *signature, uint64_t bytes);
/* Both return the bytes written; to and from have room for the larger form. */
uint64_t pgr_words_make(const char *signature, const uint8_t *from, uint64_t bytes, uint8_t *to);
/* PGR_WORDS_BAD where the words do not fit the signature. */
#define PGR_WORDS_BAD UINT64_MAX
uint64_t pgr_words_take(const char *signature, const uint8_t *from, uint64_t bytes, uint8_t *to);
/* Swaps each element in place, for a sender of the other byte order. */
void pgr_swap(const char *signature, uint8_t *at, uint64_t bytes);

/* ---- coroutine.c ---- */
/* Runs the handler on a stack that is made ready for it, saved and restored. */
void pgr_run_on_own_stack(pgr_handler *handler, void *arg, const struct pgr_request *request);
void pgr_own_stack_free(void);

#endif
