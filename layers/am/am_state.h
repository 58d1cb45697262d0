/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of Active Messages share: a bundle, its endpoints, its peers, and packets on their way. */
#ifndef CADGE_AM_AM_STATE_H
#define CADGE_AM_AM_STATE_H

#include "am/am.h"
#include "common/adapter.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * A packet: kind, handler, number of words, endpoint it is for, endpoint it is from, status, requests that were handled and
 * not answered (16 bits), tag (64 bits); the words; of a long message offset and length (64 bits each); else the payload.
 * Little-endian.
 */
enum { KIND_REQUEST, KIND_REPLY, KIND_RETURNED, KIND_ACK, KIND_MASK = 15, KIND_LONG = 16 };
#define LONG_BYTES 16u

/* A copy of a packet: one that found no room, or a request that waits for a poll with a budget. */
struct am_copy {
	struct am_copy *next;
	size_t bytes;
	uint8_t data[];
};

struct am_copies {
	struct am_copy *first, *last;
	uint32_t count;
};

/* A long transfer: puts, quiet, then a packet. */
struct am_xfer {
	struct am_xfer *next;     /* among those that are free, or that wait for room */
	struct am_xfer *next_all; /* among all of the bundle */
	bool used, waits;         /* it waits for room of the wire */
	bool quiet;               /* asked for */
	uint32_t pending;         /* operations of the wire that were QUEUED */
	int code;
	uint32_t peer;
	struct cadge_iov piece[AM_PIECES_MAX];
	uint32_t pieces_count, piece_at;
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
	struct am_name names[AM_NAMES_MAX];
	am_handler *handlers[AM_HANDLERS_MAX];
};

struct am_peer {
	struct cadge_link *link; /* NULL: not connected */
	bool down;
	uint32_t credits; /* requests that we may send */
	uint32_t window;  /* requests that it may have outstanding */
	uint32_t owed;    /* requests of it that were handled without a reply, and not told yet */
	struct am_copies unsent, queue;
	struct cadge_remote *segment[AM_ENDPOINTS_MAX];
	uint64_t segment_bytes[AM_ENDPOINTS_MAX];
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
	bool inside; /* a handler */
	bool debts;  /* somebody is owed half a window */
	bool stuck;  /* the wire had no room */
	int handled;
	uint32_t budget;
	uint32_t unsent, queued; /* of all peers */
	struct am_xfer *idle_xfers, *all_xfers, *waiting_xfers;
	uint32_t endpoints_count;
	struct am_endpoint *endpoints[AM_ENDPOINTS_MAX];
	bool untagged, uncredited; /* see am_config */
	uint64_t requests_without_credit, replies_unsent, returned_here, returned_to_us, acks_sent,
		packets_refused;
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
void am_pay_debts(struct am *am);

/* ---- am_xfer.c ---- */

struct am_xfer *am_xfer_take(struct am *am, uint32_t peer);
/* Begins. DONE; QUEUED: `ended` follows; negative. But for QUEUED the transfer is free again. */
int am_xfer_begin(struct am *am, struct am_xfer *xfer);
void am_xfers_go_on(struct am *am);
void am_xfer_ended(void *arg, uint32_t peer, uint64_t token, int code);
void am_xfers_drop(struct am *am, uint32_t peer);
void am_xfers_destroy(struct am *am);

/* ---- copies (am_send.c) ---- */

/* DONE or E_MEMORY. */
int am_copies_add(struct am_copies *copies, const uint8_t *head, size_t head_bytes,
		  const struct cadge_iov *pieces, uint32_t pieces_count);
struct am_copy *am_copies_take(struct am_copies *copies);
void am_copies_destroy(struct am_copies *copies);

/* ---- am_poll.c ---- */

enum cadge_keep am_on_packet(void *arg, uint32_t peer, void *data, size_t bytes);

#endif
