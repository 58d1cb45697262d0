/* SPDX-License-Identifier: BSD-3-Clause */
/* What nodes say to each other, and to the client that measures them. */
#ifndef PRESS_MESSAGE_H
#define PRESS_MESSAGE_H

#include <stdint.h>

enum press_type {
	/* the client's questions, which nodes answer with the same, not part of the workload: where are you, what have you counted */
	PRESS_HELLO,
	PRESS_STATS,
	/* the five of the study */
	PRESS_FORWARD,
	PRESS_FILE,
	PRESS_CACHING,
	PRESS_LOAD,
	PRESS_CREDIT,
	PRESS_TYPES,
};

/*
 * The head of every message, in front of its content: a piece of a file after FILE, counters after STATS. All machines of
 * a launch have one byte order (the driver refuses others).
 */
struct press_message {
	/* of the attempt: what is left over from another one is not listened to */
	uint64_t attempt;
	/* enum press_type */
	uint32_t type;
	/* open requests of the sender; said with every message */
	uint32_t load;
	/* messages of the receiver that the sender has taken, and has not said so yet; said with every message */
	uint32_t credits;
	uint32_t file;
	/* FORWARD: what its FILE has to repeat */
	uint64_t tag;
	/* FILE: where the piece begins, and the whole file's length. HELLO: the port, in `offset`, and the files' digest, in `tag`. */
	uint32_t offset, total;
	/* FILE: 200, or the status with which the request has failed. CACHING: 1 held, 0 no longer held. */
	uint32_t status;
	uint32_t unused;
};

_Static_assert(sizeof(struct press_message) == 48, "a head has no holes");

/* The largest message; what is longer goes in pieces. */
#define PRESS_MESSAGE_BYTES 32768u
#define PRESS_PIECE_BYTES   (PRESS_MESSAGE_BYTES - sizeof(struct press_message))

/* What a node counts, in the order in which it tells. */
enum press_count {
	PRESS_REQUESTS,  /* requests of clients, all that were answered with a file */
	PRESS_ERRORS,    /* those that were answered with an error */
	PRESS_LOCAL,     /* requests served from this node's memory at once */
	PRESS_FORWARDED, /* requests given to another node */
	PRESS_MISSES,    /* requests, own and forwarded, that waited for a disk */
	PRESS_READS,     /* files read */
	PRESS_EVICTIONS, /* files that left the cache */
	PRESS_WAKEUPS,   /* sleeps that ended */
	PRESS_COPIED,    /* bytes copied between messages and files, at both ends */
	PRESS_OPEN_MOST, /* most open requests at a time */
	PRESS_SENT,      /* messages, by type from here on */
	PRESS_SENT_BYTES = PRESS_SENT + PRESS_TYPES,
	PRESS_COUNTS = PRESS_SENT_BYTES + PRESS_TYPES,
};

#endif
