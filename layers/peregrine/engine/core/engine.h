/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint, and what all files of this room share. Arrows run downwards:
 *
 *	endpoint.c   open, close, poll, wait; which file a packet goes to
 *	describe.c   what an endpoint says of itself
 *	timer.c      what time brings about: repetition, giving up, forgetting
 *	client.c     what servers say (peer.h: bindings; slot.h: their calls)
 *	serve.c      what a call meets in its slot, its execution (clients.h: who calls; work.h: their calls)
 *	delegate.c   calls passed on
 *	contact.c    who is known; first contact, and who is forgotten
 *	result.c     a result comes in
 *	path.c       a call is said again, or asked for; the size of packets, and paths that let none of it through
 *	bind.c       bindings
 *	call.c       a call leaves
 *	reply.c      results on their way, and kept
 *	fast.h       the usual case of call, serve, reply and result, short
 *	slot.c, work.c, quota.c    what calls hold at either end, procedures; how much one host may hold
 *	clock.c, send.c    time-outs; a packet leaves, flow control
 *	memory.c, buffer.c    messages that stay where they are; memory for messages
 *
 * What knows no endpoint is in base: messages of several packets (blast.c), unlike byte orders (convert.c), packets as bytes.
 */
#ifndef PGR_ENGINE_H
#define PGR_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../base/base.h"
#include "../base/blast.h"
#include "../base/convert.h"
#include "../base/packet.h"
#include "../wires/wire.h"

/* after so long a client on a wire that loses nothing asks for its call */
#define PGR_PROBE_NS UINT64_C(500000000)
/* between two looks whether who is waited for lives, where the wire can tell */
#define PGR_LIFE_NS UINT64_C(20000000)
/* between two looks for room on a wire that notifies nobody of it */
#define PGR_ROOM_NS UINT64_C(100000)
/* a cookie is good for so long at most */
#define PGR_COOKIE_LIFE_NS (2 * PGR_COOKIE_EPOCH_S * UINT64_C(1000000000))
/* a client that speaks is put behind the others once in so long */
#define PGR_REQUEUE_NS UINT64_C(1000000000)

enum {
	/* packets that may be under way before the other side has said more, as in eRPC (Kalia et al., NSDI 2019) */
	PGR_CREDITS_FIRST = 32,
	/* and however much it says */
	PGR_CREDITS_MAX = 1024,
	/* a call is taken for lost when one sent so many later is answered */
	PGR_REORDER_CALLS = 16,
	/* repetitions of a call before its time-out */
	PGR_EARLY_REPEATS_MAX = 3,
	/* doublings of the time-out */
	PGR_BACKOFF_MAX = 6,
	/* of long calls, while short ones are made beside them: bytes under way; packets until it is over */
	PGR_YIELD_BYTES = 131072,
	PGR_YIELD_PACKETS = 256,
	/* and of data in a packet of such a call, where it could be larger */
	PGR_YIELD_PART = 8192,
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

/* Clients in the order in which they fell silent, the first one first; right to PGR_REQUEUE_NS. */
struct pgr_queue {
	struct pgr_client *first, *last;
};

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
	uint32_t polls, polls_per_clock_read;
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
	struct pgr_quota **quotas;
	/* owned, sorted: who may pass calls on to us */
	struct pgr_to *delegators;
	uint32_t delegators_count, delegators_room;
	/* whom the program is asked about; NULL: nobody */
	pgr_contact *contact;
	void *contact_arg;
	/* before that, nobody is looked for who may be forgotten early */
	uint64_t next_check_ns;
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

/* A place in a table for a key that others choose, who do not know the secret: a few of the finalizer's steps of MurmurHash3. */
static inline uint64_t pgr_keyed_hash(const struct pgr *pgr, uint64_t key)
{
	uint64_t salt;

	memcpy(&salt, pgr->secret, sizeof(salt));
	key ^= salt;
	key = (key ^ key >> 33) * UINT64_C(0xff51afd7ed558ccd);
	key = (key ^ key >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return key ^ key >> 33;
}

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
/* Whether it is not so already, or has to be copied once more. */
static inline bool pgr_needs_reform(const struct pgr *pgr, uint64_t flags)
{
	return (flags & PGR_FLAG_WORDS) || (flags & PGR_FLAG_BIG_ENDIAN) != PGR_OWN_ORDER ||
	       (pgr->off & PGR_OFF_IN_PLACE);
}

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
static inline void pgr_flush_callers_data(struct pgr *pgr)
{
	if (PGR_UNLIKELY(pgr->wire->holds_callers_data))
		pgr_flush(pgr);
}

/* ---- clock.c ---- */
/* Reads the clock: ns that go on while the machine sleeps. It is pgr->now_ns until the next look. */
uint64_t pgr_now(struct pgr *pgr);
/* A time-out, doubled by each repetition, but so that many tries fit into the give-up time. */
uint64_t pgr_backed_off(const struct pgr *pgr, uint64_t rto_ns, uint8_t repeats);

/* ---- endpoint.c ---- */
/* As pgr_open, on a wire that has no name: tests bring their own. */
int pgr_open_on(const struct pgr_wire_ops *ops, const struct pgr_config *config, struct pgr **pgr_out);

/* ---- client.c ---- */
/* What a server said; `packet` is right in itself. */
void pgr_client_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet);
/* The host of a server says that nobody takes this packet of ours: as wire.h. Ends the call that it speaks of. */
PGR_COLD void pgr_client_unreachable(void *engine, const void *packet, size_t bytes);
/* A server refuses a call by a packet that has no right check: it ends nothing, but explains why nothing comes. */
PGR_COLD void pgr_client_refused(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *head);

/* ---- serve.c, contact.c ---- */
/* What a client said, or who passes a call on, or who got a result of ours; `packet` is right in itself. */
void pgr_server_input(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet);
/* Refuses a call or probe, of which only the header `to` is known, and why it may not be used. */
PGR_COLD void pgr_server_refuse(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to,
				enum pgr_fault why);

/* ---- work.c ---- */
/* What serves this number, PGR_ANY_PROCEDURE included; NULL: nothing does. */
struct pgr_procedure *pgr_procedure_of(struct pgr *pgr, uint32_t number);

/* ---- path.c, bind.c, delegate.c ---- */
/* In packets of how many bytes of data a result goes to who takes so many. */
uint32_t pgr_result_size(const struct pgr *pgr, uint32_t taken);
/* An address as a program or a packet names it; false: none that an endpoint of this wire can have. */
bool pgr_read_address(const struct pgr *pgr, const void *address, size_t address_bytes,
		      struct pgr_to *to_out);
/* Whether the server at this address may pass calls on to us. */
bool pgr_may_delegate(const struct pgr *pgr, const struct pgr_to *from);

/* ---- memory.c ---- */
/*
 * Where a message is long, and lies in one piece of memory that the other side can read, `out` consists of a
 * reference to it. False: it does not.
 */
bool pgr_refer(struct pgr *pgr, const struct pgr_iov *iov, uint32_t count, uint64_t bytes,
	       uint8_t reference_out[PGR_REFERENCE_BYTES], struct pgr_outgoing *out);
/* Where the message of a packet with a reference lies, until the next poll; NULL: nowhere that it may be read. */
PGR_COLD const uint8_t *pgr_referred(struct pgr *pgr, const struct pgr_to *from,
				     const struct pgr_packet *packet, uint64_t *bytes_out);
/* Lets go of memory that its owner has given back, or whose owner has ended. Not where something of it is lent. */
void pgr_views_sweep(struct pgr *pgr);
void pgr_memory_free(struct pgr *pgr);

/* ---- timer.c ---- */
/* Looks through slots and works for what is late, through clients for those that are silent. */
void pgr_tick(struct pgr *pgr);
/* The next poll looks through all that waits for the clock. */
static inline void pgr_tick_soon(struct pgr *pgr)
{
	pgr->next_tick_ns = 0;
	pgr->polls = 4 * pgr->polls_per_clock_read;
}
/* When, by pgr_now, something has to be done although nothing arrives. */
uint64_t pgr_next_due(const struct pgr *pgr);

/* ---- send.c: credits ---- */
/* Shares the window out again, after clients or servers have come or gone. */
void pgr_credits_divide(struct pgr *pgr);
/* From time to time: among those who had work since the last time. */
void pgr_credits_renew(struct pgr *pgr);
static inline uint16_t pgr_grant_to_server(const struct pgr *pgr)
{
	return pgr->grant_to_servers;
}

/* ---- buffer.c ---- */
/* Of a message of so many bytes in one piece, as words where conversion is asked for. */
static inline uint64_t pgr_marshalled_bytes(const struct pgr *pgr, const char *signature, uint64_t bytes)
{
	return PGR_UNLIKELY(pgr->off & PGR_OFF_NO_CONVERSION) ? pgr_words_bytes(signature, bytes) : bytes;
}
/* Makes it, and lets `out` consist of it. It is the caller's, to be given back as a buffer; NULL: no memory. */
PGR_COLD uint8_t *pgr_marshal(struct pgr *pgr, const char *signature, const struct pgr_iov *iov,
			      uint32_t count, uint64_t bytes, struct pgr_outgoing *out);
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

#endif
