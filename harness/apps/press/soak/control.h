/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages between the supervisor and its nodes, each one datagram over a pair of sockets. */
#ifndef PRESS_SOAK_CONTROL_H
#define PRESS_SOAK_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "press/directory.h"
#include "press/links/message.h"

enum soak_control_kind {
	/* to a node: `peer` is gone; it is back, for the session of that number; this is its address; tell how you are; stop */
	SOAK_GONE,
	SOAK_BACK,
	SOAK_ADDRESS,
	SOAK_QUERY,
	SOAK_STOP,
	/* of a node: it listens at the port `peer`; this is its address for `peer`; its layer says that `peer` is down; how it is;
	   it cannot be (a sentence), for the layer cannot do what is asked or for it has failed */
	SOAK_READY,
	SOAK_OFFER,
	SOAK_DOWN,
	SOAK_REPORT,
	SOAK_REFUSED,
	SOAK_FAILED,
};

/* an address and a key, or a report */
#define SOAK_CONTENT_BYTES 8192u

struct soak_control {
	uint32_t kind, peer;
	uint64_t session;
	uint32_t bytes, unused;
	uint8_t content[SOAK_CONTENT_BYTES];
};

/* How a node is. */
struct soak_report {
	/* by node: the session from which its channel is up, else 0; what it holds as far as this node knows, in short */
	uint64_t sessions[PRESS_NODES_MAX], holds[PRESS_NODES_MAX];
	uint64_t counts[PRESS_COUNTS];
	/* of malloc: all of it, and what the cache's files have of it; 0: this malloc does not say */
	uint64_t heap_bytes, cache_heap_bytes;
	uint64_t cache_bytes;
	/* what is under way; all of it 0 in a node that has nothing to do, but for connections that clients keep */
	uint32_t tasks, pins, in_flight, queues, load, connections;
	/* pages of the region that are room for a file */
	uint32_t rooms;
	uint32_t files;
};

_Static_assert(sizeof(struct soak_report) <= SOAK_CONTENT_BYTES, "a report fits into a message");

/* Sends one. 0, or -1 with errno: it did not go, now or ever. */
int soak_send(int fd, const struct soak_control *message, int flags);
/* 1: one has come; 0: none has; -1: the other end is gone. */
int soak_receive(int fd, struct soak_control *message_out);

#endif
