/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of Active Messages share: a bundle, its endpoints, its peers, and packets on their way. */
#ifndef CADGE_AM_AM_STATE_H
#define CADGE_AM_AM_STATE_H

#include "am/am.h"
#include "kit/adapter.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * A packet: kind, handler, number of words, endpoint it is for, endpoint it is from, status, requests that were handled and
 * not answered (16 bits), tag (64 bits); the words; of a long message offset, length and number (64 bits each); else the
 * payload. In place of the tag, grants, rejections and what follows a grant have the number. Little-endian.
 *
 * A long message asks first, and its payload stays with the sender until the target has looked at tag, handler, segment and
 * queue:
 *
 *   sender                              target
 *   ASKED    request or reply, LONG ->  refused: RETURNED (a request) or REJECTED (a reply), and nothing was placed
 *            <- GRANT                   else it waits in `granted`, where it takes a place of the queue
 *   PLACING  puts, quiet, PLACED    ->  the handler runs, or waits in the queue for a poll
 *
 * The key of a segment goes to a peer with the first grant: who was never granted anything cannot write.
 */
enum {
	KIND_REQUEST,
	KIND_REPLY,
	KIND_RETURNED,
	KIND_ACK,
	KIND_GRANT,
	KIND_REJECTED,
	KIND_PLACED,
	KIND_MASK = 15,
	KIND_LONG = 16,
	KIND_UNASKED = 32, /* LONG, and it lies there already: see `trusting` of am_config */
};
#define LONG_BYTES 24u

/* A copy of a packet: one that found no room, a request that waits for a poll with a budget, or a long one that was granted. */
struct am_copy {
	struct am_copy *next;
	am_handler *handler; /* of one that was granted */
	uint64_t number;     /* which its sender gave it */
	size_t bytes;
	uint8_t data[];
};

struct am_copies {
	struct am_copy *first, *last;
	uint32_t count;
};

enum am_xfer_step { XFER_IDLE, XFER_ASKED, XFER_PLACING };

/* A long message that we send. */
struct am_xfer {
	struct am_xfer *next; /* among those that are idle, or that wait for room */
	uint64_t number;      /* new for each use; its low half is the place in the table */
	enum am_xfer_step step;
	bool waits;           /* for room of the wire */
	bool quiet, reported; /* that was asked for; the last packet has left */
	uint32_t pending;     /* operations of the wire that were QUEUED */
	int code;
	uint32_t peer;
	struct cadge_iov piece[AM_PIECES_MAX];
	uint32_t pieces_count, piece_at;
	size_t piece_done_bytes; /* of the piece that is being put */
	struct cadge_remote *remote;
	uint64_t at_bytes;
	uint64_t token;
	uint32_t head_bytes;
	uint8_t head[AM_HEAD_BYTES + sizeof(uint32_t) * AM_WORDS_MAX + LONG_BYTES];
};

struct am_name {
	bool used;
	uint8_t number;
	uint32_t peer;
	uint64_t tag;
};

struct am_endpoint {
	struct am *am;
	uint32_t number;
	uint64_t tag;
	uint8_t *segment;
	size_t segment_bytes;
	struct cadge_region *region;
	struct cadge_blob_out key;
	uint8_t key_room[512];
	uint32_t coming; /* long messages that were granted and are not there yet */
	struct am_name names[AM_NAMES_MAX];
	am_handler *handlers[AM_HANDLERS_MAX];
};

struct am_peer {
	struct cadge_link *link; /* NULL: not connected */
	bool down;
	uint32_t credits; /* requests that we may send */
	uint32_t window;  /* requests that it may have outstanding */
	uint32_t owed;    /* requests of it that were handled without a reply, and not reported yet */
	struct am_copies unsent, queue, granted;
	uint32_t granted_replies;                       /* of those in `granted` */
	bool has_key[AM_ENDPOINTS_MAX];                 /* of our segments */
	struct cadge_remote *segment[AM_ENDPOINTS_MAX]; /* its own, as far as it granted something */
};

/* What a packet says; `payload` and `words` lie in it. */
struct am_incoming {
	uint8_t kind, handler, count, to, from, status;
	const uint8_t *words;
	uint8_t *payload;
	size_t bytes;
	uint64_t offset_bytes, long_bytes, number; /* of a long message */
};

struct am_token {
	struct am *am;
	struct am_endpoint *endpoint;
	uint32_t peer;
	uint8_t kind, handler, status, source_endpoint;
	bool replied;
};

struct am {
	struct cadge_wire *wire;
	struct am_calls calls;
	uint32_t peers, outstanding, queue, packet_bytes;
	bool inside;      /* a handler */
	bool credits_due; /* somebody is owed half a window */
	bool stuck;       /* the wire had no room */
	bool in_order;    /* a packet comes after the puts before it, without quiet */
	int handled;
	uint32_t budget;
	uint32_t unsent, queued; /* of all peers */
	struct am_xfer *idle_xfers, *waiting_xfers;
	struct am_xfer **xfers; /* all of them, by their place */
	uint32_t xfers_count;
	uint32_t endpoints_count;
	struct am_endpoint *endpoints[AM_ENDPOINTS_MAX];
	bool trusting, uncredited; /* see am_config */
	uint64_t requests_without_credit, replies_unsent, returned_here, returned_to_us, acks_sent,
		grants_sent, packets_refused;
	struct am_peer peer[];
};

/* ---- am_send.c ---- */

/* Sends the packet of `head` and pieces, with what the peer is owed. DONE, BUSY or E_DOWN. */
int am_send_packet(struct am *am, struct am_peer *peer, const uint8_t *head, size_t head_bytes,
		   const struct cadge_iov *pieces, uint32_t pieces_count);
/* As above; where there is no room a copy is kept and sent later. DONE, E_DOWN or E_MEMORY. */
int am_send_surely(struct am *am, struct am_peer *peer, const uint8_t *head, size_t head_bytes,
		   const struct cadge_iov *pieces, uint32_t pieces_count);
/* Sends what found no room before, and what is owed. */
void am_send_unsent(struct am *am);
void am_return_credits(struct am *am);

/* ---- am_xfer.c: long messages that we send ---- */

/* NULL: out of memory. */
struct am_xfer *am_xfer_take(struct am *am, uint32_t peer);
void am_xfer_give(struct am *am, struct am_xfer *xfer);
/* Places without asking. DONE, QUEUED (`ended` follows), or negative; but for QUEUED the transfer is idle again. */
int am_xfer_place(struct am *am, struct am_xfer *xfer);
void am_xfers_go_on(struct am *am);
void am_xfer_ended(void *arg, uint32_t peer, uint64_t token, int code);
/* Of this number, asked for of this peer; NULL: there is none. */
struct am_xfer *am_xfer_asked(struct am *am, uint32_t peer, uint64_t number);
void am_xfer_granted(struct am *am, uint32_t peer, const uint8_t *data, size_t bytes);
/* It is over, and `ended` is told. */
void am_xfer_finish(struct am *am, struct am_xfer *xfer, int code);
/* What was to be placed, in one piece: the caller's own, or a copy for free() in *copy_out. NULL: no byte, or no memory. */
void *am_xfer_payload(const struct am_xfer *xfer, void **copy_out, size_t *bytes_out);
/* The peer is down: what nobody will grant ends. */
void am_xfers_down(struct am *am, uint32_t peer);
void am_xfers_drop(struct am *am, uint32_t peer);
void am_xfers_destroy(struct am *am);

/* ---- am_grant.c: long messages that come ---- */

void am_grant_request(struct am *am, uint32_t peer, uint8_t *data, size_t bytes, struct am_incoming *in);
void am_grant_reply(struct am *am, uint32_t peer, uint8_t *data, size_t bytes, struct am_incoming *in);
void am_on_placed(struct am *am, uint32_t peer, uint64_t number);
/* The link has ended. */
void am_grants_forget(struct am *am, struct am_peer *peer);

/* ---- copies (am_send.c) ---- */

/* DONE or E_MEMORY. */
int am_copies_add(struct am_copies *copies, const uint8_t *head, size_t head_bytes,
		  const struct cadge_iov *pieces, uint32_t pieces_count);
/* At the end of these copies. */
void am_copies_append(struct am_copies *copies, struct am_copy *copy);
/* The first one. */
struct am_copy *am_copies_take(struct am_copies *copies);
/* That of this number; NULL: there is none. */
struct am_copy *am_copies_pick(struct am_copies *copies, uint64_t number);
void am_copies_destroy(struct am_copies *copies);

/* ---- am_poll.c ---- */

enum cadge_keep am_on_packet(void *arg, uint32_t peer, void *data, size_t bytes);
bool am_parse(uint8_t *data, size_t bytes, struct am_incoming *in);
/* 0, or why it goes back; of a long one `payload` is in the segment then. */
enum am_status am_check_request(const struct am *am, const uint8_t *data, struct am_incoming *in);
/* Whether a long message lies in the segment; `payload` does then. */
bool am_find_payload(const struct am_endpoint *endpoint, struct am_incoming *in);
void am_return_to_sender(struct am *am, struct am_peer *peer, const uint8_t *data, size_t bytes,
			 enum am_status status);
void am_run_request(struct am *am, uint32_t peer, am_handler *handler, const struct am_incoming *in);
void am_run_reply(struct am *am, uint32_t peer, am_handler *handler, const struct am_incoming *in);
/* Whether the endpoints have room for one more request of this peer. */
static inline bool am_has_room(const struct am *am, const struct am_peer *peer)
{
	return peer->queue.count + peer->granted.count - peer->granted_replies < am->queue;
}

#endif
