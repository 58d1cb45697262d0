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
	/* from V2 on, where nodes sleep: look into your memory, something was written there */
	PRESS_NOTIFY,
	PRESS_TYPES,
};

/*
 * The versions of the study, as far as they are known: a reconstruction from its descriptions. Each has what those before it
 * have.
 */
enum press_version {
	PRESS_V0, /* messages alone */
	PRESS_V1, /* credits and load by remote writes */
	PRESS_V2, /* forward and caching by remote writes, into rings */
	PRESS_V3, /* files by remote writes, to where the forward said */
	PRESS_V4, /* clients are answered from there: no copy by who receives */
	PRESS_V5, /* files are sent from the cache, whose pages are registered: no copy by who sends */
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
	/* of the receiver's messages that need credits, so many has the sender taken so far; said with every message */
	uint32_t taken;
	uint32_t file;
	/* FORWARD: what its FILE has to repeat */
	uint64_t tag;
	/*
	 * FILE: where the piece begins, and the whole file's length. HELLO: the port, in `offset`, and the files' digest, in `tag`.
	 * NOTIFY: so many messages are in the ring so far, in `offset`.
	 */
	uint32_t offset, total;
	/* FILE: 200, or the status with which the request has failed. CACHING: 1 held, 0 no longer held. */
	uint32_t status;
	/* FORWARD: where in the sender's region there is room for the file, or PRESS_NOWHERE: in messages, please */
	uint32_t landing;
};

#define PRESS_NOWHERE UINT32_MAX

_Static_assert(sizeof(struct press_message) == 48, "a head has no holes");

/* The largest message; what is longer goes in pieces. */
#define PRESS_MESSAGE_BYTES 32768u
#define PRESS_PIECE_BYTES   (PRESS_MESSAGE_BYTES - sizeof(struct press_message))

/* What a node counts, in the order in which it tells. */
enum press_count {
	PRESS_REQUESTS,      /* requests of clients, all that were answered with a file */
	PRESS_ERRORS,        /* those that were answered with an error */
	PRESS_LOCAL,         /* requests served from this node's memory at once */
	PRESS_FORWARDED,     /* requests given to another node */
	PRESS_MISSES,        /* requests, own and forwarded, that waited for a disk */
	PRESS_READS,         /* files read */
	PRESS_DISK_READS,    /* those that have ended, */
	PRESS_DISK_NS,       /* how long helpers were at them, */
	PRESS_DISK_BUFFERED, /* and how many of them went through the page cache */
	PRESS_EVICTIONS,     /* files that left the cache */
	PRESS_WAKEUPS,       /* sleeps that ended */
	PRESS_COPIED,        /* bytes copied between messages and files, at both ends */
	PRESS_OPEN_MOST,     /* most open requests at a time */
	PRESS_POSTS,         /* messages that the layer was given */
	PRESS_PUTS,          /* remote writes that it was given */
	PRESS_QUIETS,        /* waits until those were visible */
	PRESS_SENT,          /* messages, by type from here on, whichever way they went */
	PRESS_SENT_BYTES = PRESS_SENT + PRESS_TYPES,
	PRESS_COUNTS = PRESS_SENT_BYTES + PRESS_TYPES,
};

#endif
