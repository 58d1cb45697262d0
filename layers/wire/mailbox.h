/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over remote writes, for libraries that have put but no messages (or whose messages are not the
 * subject).
 *
 * One struct cadge_mailbox is one end of one connection: what this side receives from one peer and sends to
 * it. Each end has an *area* of its own memory that the peer writes:
 *
 *	ring     lines of 64 bytes: short messages whole, and the descriptors of pieces of long ones
 *	bulk     a ring of bytes for the pieces of long messages
 *	credit   one line in which the peer says how far it has consumed *its* ring, that is, what we sent
 *
 * Only two things are asked of the library: put, and quiet (all earlier puts of this connection are
 * visible). No order between puts, no order inside a put, no atomic store is assumed; mailbox.c gives the
 * argument. The mailbox is reliable and ordered as far as put is reliable, never drops, and says BUSY when
 * the peer's ring is used up.
 *
 * Sources: wire/mailbox.c and wire/mailbox_send.c.
 *
 * Everything here runs on the one thread of its context and never blocks. Nothing is allocated after
 * create.
 */
#ifndef CADGE_WIRE_MAILBOX_H
#define CADGE_WIRE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadge/layer.h"

/*
 * Names an operation that the library carries out for the mailbox. Several operations may carry the same
 * pointer; each answer QUEUED is followed by exactly one cadge_mailbox_done with that pointer. Only the
 * mailbox looks inside.
 */
struct cadge_mailbox_op {
	struct cadge_mailbox *mailbox;
	uint32_t kind;
	uint32_t index;
};

#define CADGE_MAILBOX_NOTE_BYTES 16u /* payload of a notification */
/* what a peer has to know of a mailbox besides the memory key of its area */
#define CADGE_MAILBOX_CARD_BYTES 32u

/*
 * What the adapter supplies, bound to its library. `link` is the pointer that was given to
 * cadge_mailbox_attach, e.g. the adapter's cadge_chan. None of them may block or call the mailbox back before
 * it returns, except cadge_mailbox_done for *other* operations.
 */
struct cadge_mailbox_ops {
	/*
	 * Writes `bytes` from `local` to `offset_bytes` of the peer's area (0 = its first byte).
	 * DONE: `local` may be reused. QUEUED: `local` is lent until cadge_mailbox_done(op). BUSY: nothing
	 * happened, try again after progress. Negative: the connection is broken. `local` is inside the
	 * staging memory of the config, or inside the caller's message where config.put_anywhere is set.
	 */
	int (*put)(void *link, const void *local, size_t bytes, uint64_t offset_bytes,
		   struct cadge_mailbox_op *op);
	/* All earlier puts of this link are visible to the peer's CPU: now (DONE), at cadge_mailbox_done
	 * (QUEUED), BUSY. */
	int (*quiet)(void *link, struct cadge_mailbox_op *op);
	/*
	 * Optional, NULL where the library does not promise it: no later put of this link becomes visible
	 * before an earlier one. DONE, BUSY or negative. Without it the mailbox waits for quiet where it
	 * needs order.
	 */
	int (*fence)(void *link);
	/*
	 * Block mode only, else NULL: sends CADGE_MAILBOX_NOTE_BYTES as a message that wakes the peer; there
	 * they go to cadge_mailbox_notified. The bytes are copied. DONE, BUSY or negative. It may overtake
	 * writes, never be lost.
	 */
	int (*notify)(void *link, const void *note);
};

/* Geometry of an area, told to the peer by the card. An adapter may lower short_bytes before create. */
struct cadge_mailbox_shape {
	/* of 64 bytes, in the ring; a power of two */
	uint32_t lines;
	/* longest message that travels whole in the ring; with its header at most lines / 4 lines */
	uint32_t short_bytes;
	/* of the ring of bytes: a power of two, 0 where no message is long */
	uint32_t bulk_bytes;
	/* longest piece of a long message; at most a quarter of bulk_bytes */
	uint32_t chunk_bytes;
};

struct cadge_mailbox_config {
	/* of this side's area; the peer's is told by its card */
	struct cadge_mailbox_shape shape;
	const struct cadge_mailbox_ops *ops;
	/* cadge_mailbox_area_bytes, aligned to 64; exposed to the peer by the adapter */
	void *area;
	/* cadge_mailbox_staging_bytes, aligned to 64; sources of puts */
	void *staging;
	/* put may read any memory; otherwise long messages are copied to staging first */
	bool put_anywhere;
	/* number passed to the sink */
	uint32_t peer;
	/* operations that can be QUEUED at a time */
	uint32_t depth_max;
	/* longest message in either direction */
	uint64_t message_bytes_max;
	/* any number that differs between the lives of this area, e.g. from getrandom */
	uint64_t key;
};

/* A good shape for so many messages in flight and so long messages. */
void cadge_mailbox_shape(uint32_t depth_max, uint64_t message_bytes_max,
			 struct cadge_mailbox_shape *shape_out);
/* Memory for a shape: the area, written by the peer, and staging, read by our own puts. Multiples of 64. */
size_t cadge_mailbox_area_bytes(const struct cadge_mailbox_shape *shape);
size_t cadge_mailbox_staging_bytes(const struct cadge_mailbox_shape *shape, bool put_anywhere);
/* Bytes that are written beside the payload of a short message. */
size_t cadge_mailbox_overhead_bytes(void);

/* DONE, E_MEMORY or E_ARGUMENT. area and staging stay the caller's and must outlive the mailbox. Clears the
 * area. */
int cadge_mailbox_create(const struct cadge_mailbox_config *config, struct cadge_mailbox **mailbox_out);
/* NULL is legal. The library must not run operations of this mailbox any more. */
void cadge_mailbox_destroy(struct cadge_mailbox *mailbox);

/* Writes CADGE_MAILBOX_CARD_BYTES that the peer gives to its attach. Same bytes until detach. */
void cadge_mailbox_card(const struct cadge_mailbox *mailbox, void *card_out);
/*
 * Connects to the peer whose card this is: from now on ops work on `link`. A greeting goes out with the first
 * poll; when the peer's greeting arrives, poll calls sink.up. DONE or E_ARGUMENT (not a card, or made by
 * another version).
 */
int cadge_mailbox_attach(struct cadge_mailbox *mailbox, const void *card, size_t card_bytes, void *link);
/*
 * Forgets the peer and all operations, without events; a new key is made from the old one, so writes of the
 * earlier life that still arrive are not taken for messages. After it the library must not call
 * cadge_mailbox_done for old operations.
 */
void cadge_mailbox_detach(struct cadge_mailbox *mailbox);

/* As cadge_layer.post. BUSY before `up`. At most CADGE_MAILBOX_IOV_MAX entries. Legal inside the sink. */
#define CADGE_MAILBOX_IOV_MAX 8u
int cadge_mailbox_post(struct cadge_mailbox *mailbox, const struct cadge_iov *iov, uint32_t count,
		       uint64_t token);
/*
 * Delivers what has arrived, reports sent messages, continues long ones, returns credits. The adapter calls
 * it after the progress of its library. Returns the number of events delivered, sink.down among them (once).
 */
int cadge_mailbox_poll(struct cadge_mailbox *mailbox, struct cadge_sink *sink);

/* The library finished an operation that was QUEUED. code DONE or negative. Not inside ops of the same
 * operation. */
void cadge_mailbox_done(struct cadge_mailbox_op *op, int code);

/* The library says that the connection broke: the next poll reports it to the sink; operations not yet begun fail. */
void cadge_mailbox_fail(struct cadge_mailbox *mailbox);

/* Block mode: a notification of the peer arrived. */
void cadge_mailbox_notified(struct cadge_mailbox *mailbox, const void *note);
/*
 * Block mode: true where it is safe to sleep until the library wakes us: nothing has arrived, nothing was
 * announced that is not visible yet, nothing of ours waits to be issued again after BUSY.
 */
bool cadge_mailbox_may_sleep(struct cadge_mailbox *mailbox);

/* For counters: calls each(arg, name, value). */
void cadge_mailbox_counters(const struct cadge_mailbox *mailbox,
			    void (*each)(void *arg, const char *name, uint64_t value), void *arg);

#endif
