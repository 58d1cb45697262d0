/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the mailbox: what mailbox.c (life, receiving) and mailbox_send.c (sending, order, credits) share.
 * mailbox.c says why it is correct.
 */
#ifndef CADGE_WIRE_MAILBOX_STATE_H
#define CADGE_WIRE_MAILBOX_STATE_H

#include "wire/mailbox.h"
#include "kit/bytes.h"

#define LINE_BYTES   64u
#define HEAD_BYTES   24u /* check, what, acknowledgement */
#define CREDIT_BYTES 16u
#define BLOCKS       32u /* ring entries on their way at a time, when puts are QUEUED */
#define CHUNKS       16u /* pieces of long messages on their way at a time; a power of two */
#define BURST        16u /* messages delivered in one poll */
/* What a program adds to a message of a round size, such as the trailer of a call, changes no path. */
#define ROUND_ROOM_BYTES 64u
#define SHORT_BYTES_MAX  (4096u + ROUND_ROOM_BYTES)
#define CHUNK_BYTES_MAX  (64u * 1024)
#define LINES_MAX        (1u << 16)
#define BULK_BYTES_MAX   (1u << 30)
#define CARD_MAGIC       0x31626d63u /* "cmb1" */
#define DESCRIPTOR_BYTES 24u

enum op_kind { OP_BLOCK, OP_CHUNK, OP_CREDIT, OP_QUIET };
enum entry_kind { ENTRY_GREETING = 1, ENTRY_SHORT = 2, ENTRY_CHUNK = 3 };

/* Where a ring entry is made before it is put; reused at once where put answers DONE. */
struct block {
	struct cadge_mailbox_op op;
	uint8_t *at;
	bool busy;
};

/* A message that could not be put whole at once. */
struct send {
	struct cadge_iov iov[CADGE_MAILBOX_IOV_MAX];
	uint64_t token;
	/* of the message; of them, given to chunks so far */
	uint64_t bytes, taken_bytes;
	/* already taken of iov[entry] */
	size_t entry_bytes;
	uint32_t count, entry;
	/* puts that still read the buffers */
	uint32_t pending;
	int code;
	bool issued;
};

/*
 * A piece of a long message. A chunk lives from its reservation until its puts are done and its entry is
 * out.
 */
struct chunk {
	struct cadge_mailbox_op op;
	struct send *send;
	/* reserved in the ring */
	uint64_t position;
	/* of its last put */
	uint64_t serial;
	uint64_t message_bytes, message_offset;
	uint32_t bulk_offset, bytes, placed_bytes;
	uint32_t pending;
};

/* What an acknowledged position frees of the bulk ring. */
struct freed {
	uint64_t position, bulk;
};

struct cadge_mailbox {
	const struct cadge_mailbox_ops *ops;
	/* NULL: not attached */
	void *link;

	/* What arrives here. */
	struct cadge_mailbox_shape shape;
	uint8_t *area;
	uint64_t key;
	/* the next position to look at; everything before it is consumed */
	uint64_t in;
	/* the position that the peer was last sent */
	uint64_t credited;
	/* bytes of bulk consumed and not reported */
	uint64_t bulk_uncredited;
	/* of a message in several pieces; NULL where none can come */
	uint8_t *assembly;
	uint64_t assembled_bytes;
	/* the peer's greeting has arrived */
	bool greeted;

	/* What goes to the peer. */
	struct cadge_mailbox_shape peer_shape;
	uint64_t peer_key;
	/* the next position to write */
	uint64_t out;
	/* everything before it is free again */
	uint64_t acked;
	uint64_t bulk_head, bulk_tail;
	/* what both sides can do */
	uint32_t short_bytes, chunk_bytes;
	/* a ring of as many as the peer's lines */
	struct freed *freed;
	uint32_t freed_size;
	uint64_t freed_first, freed_next;
	struct block blocks[BLOCKS];
	uint32_t block;
	struct chunk chunks[CHUNKS];
	uint64_t chunk_first, chunk_described, chunk_next;
	/* CHUNKS buffers, or NULL where put reads any memory */
	uint8_t *staged;

	/* Order between puts. */
	/* of the last put that anybody cares about */
	uint64_t serial;
	/* everything up to it is visible before whatever is put from now on */
	uint64_t visible_serial;
	uint64_t wanted_serial;
	/* entries before this position have certainly been written to the end */
	uint64_t settled;
	/* what the quiet that is under way will bring them to */
	uint64_t quiet_serial, quiet_position;
	struct cadge_mailbox_op quiet_op;
	bool quiet_busy;

	/* Credits that we give. */
	struct cadge_mailbox_op credit_op;
	uint8_t *credit_at;
	uint64_t credit_serial, credit_given;
	bool credit_busy;

	/* Block mode. */
	/* how far our notifications say that we wrote */
	uint64_t promise;
	/* what the peer's say: written to us, given to us */
	uint64_t promised_in, promised_acked;
	bool note_due;

	/* Messages in progress. */
	uint32_t peer, depth;
	uint64_t message_bytes_max;
	struct send *sends;
	/* stack; rings of depth entries */
	uint32_t *idle, *queue, *finished;
	uint32_t idle_count, queue_first, queue_count, finished_first, finished_count;
	bool greeting_due, up, broken, down_reported;
	/* the library said BUSY: try again */
	bool blocked;
	uint64_t busies, copied_bytes, credits, quiets;
};

/* ---- words and checks ---- */

/* Each load may fall between two pieces of a write: the unit test lets memory change before any of them. */
#ifdef MAILBOX_BEFORE_LOAD
void MAILBOX_BEFORE_LOAD(void);
#else
#define MAILBOX_BEFORE_LOAD() ((void)0)
#endif

static inline uint64_t word_at(const void *at)
{
	MAILBOX_BEFORE_LOAD();
	return cadge_le64(__atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED));
}

static inline uint64_t fold(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A 64-bit check of `words` words at `at` under a key and a position. Each pair of words is multiplied. */
static inline uint64_t check_of(uint64_t key, uint64_t position, const uint8_t *at, size_t words)
{
	const uint64_t left = key ^ UINT64_C(0x9e3779b97f4a7c15), right = key ^ UINT64_C(0xd1b54a32d192ed03);
	uint64_t check = fold(position ^ left, (uint64_t)words ^ right);
	size_t i;

	for (i = 0; i + 1 < words; i += 2)
		check = (check << 29 | check >> 35) ^
			fold(word_at(at + 8 * i) ^ left, word_at(at + 8 * i + 8) ^ right);
	if (i < words)
		check = (check << 29 | check >> 35) ^ fold(word_at(at + 8 * i) ^ left, right);
	return fold(check ^ right, left);
}

static inline size_t padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

static inline uint32_t lines_of(size_t payload_bytes)
{
	return (uint32_t)((HEAD_BYTES + padded(payload_bytes) + LINE_BYTES - 1) / LINE_BYTES);
}

/* The position after an entry: entries are contiguous, so the last of a lap may reach into the spare lines
 * behind it. */
static inline uint64_t after(uint64_t position, uint32_t lines, uint32_t ring_lines)
{
	return (position & (ring_lines - 1)) + lines >= ring_lines ? (position | (ring_lines - 1)) + 1
								   : position + lines;
}

/* ---- geometry of an area: ring, its spare lines, credit line, bulk ---- */

static inline size_t ring_bytes(const struct cadge_mailbox_shape *shape)
{
	return (size_t)(shape->lines + lines_of(shape->short_bytes)) * LINE_BYTES;
}

static inline size_t bulk_at(const struct cadge_mailbox_shape *shape)
{
	return ring_bytes(shape) + LINE_BYTES;
}

static inline size_t block_bytes(const struct cadge_mailbox_shape *shape)
{
	return (size_t)lines_of(shape->short_bytes) * LINE_BYTES;
}

/* ---- mailbox_send.c ---- */

/* Everything before `position` of the peer's ring is free again. */
void mailbox_acknowledge(struct cadge_mailbox *mb, uint64_t position);
/* Looks at the credit line, which the peer writes when it has nothing else to say. */
void mailbox_poll_credit(struct cadge_mailbox *mb);
/* The first message of the queue has left (or failed) as far as we are concerned. */
void mailbox_send_issued(struct cadge_mailbox *mb, struct send *send, int code);
/* The peer has to be told what was consumed. */
bool mailbox_owes_credit(const struct cadge_mailbox *mb);
/* So much of the ring was put since the last quiet that the next lap would have to wait for one. */
static inline bool mailbox_must_settle(const struct cadge_mailbox *mb)
{
	return mb->out - mb->settled >= mb->peer_shape.lines / 4;
}
/* Goes on with everything that is under way. */
void mailbox_pump(struct cadge_mailbox *mb);

#endif
