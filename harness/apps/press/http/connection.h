/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One HTTP connection of a client: requests are read one at a time and answered in order, with keep-alive and pipelining.
 * Whoever is slow is waited for so long and no longer; who goes away in the middle takes nothing with it but its answer.
 */
#ifndef PRESS_CONNECTION_H
#define PRESS_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "press/content/cache.h"
#include "press/http/loop.h"
#include "press/http/request.h"

/* a request, or the taking of an answer, may take so long without a byte; and a connection may have nothing to ask */
#define PRESS_SLOW_NS UINT64_C(10000000000)
#define PRESS_IDLE_NS UINT64_C(60000000000)

#define PRESS_INPUT_BYTES 4096u

struct press_connections;

enum press_connection_state { PRESS_READING, PRESS_SERVING, PRESS_ANSWERING };

struct press_connection {
	/* first: the loop gets a pointer to it */
	struct press_watch watch;
	struct press_connections *all;
	struct press_connection *next, *before;
	enum press_connection_state state;
	/* what epoll watches for now */
	uint32_t events;
	/* bytes moved last at */
	uint64_t moved_ns;
	struct press_parser parser;
	char in[PRESS_INPUT_BYTES];
	size_t in_bytes, in_used;
	/* the answer: head, then the content of a pinned entry, or NULL */
	char head[PRESS_HEAD_ROOM];
	size_t head_bytes, content_bytes, written;
	struct press_entry *entry;
	bool keep_alive;
	/* it is in press_connections' own code further up */
	bool busy;
	/* of who serves its request; NULL: nobody */
	void *task;
};

struct press_connections {
	struct press_loop *loop;
	struct press_watch listening;
	uint16_t port;
	struct press_connection *first;
	uint32_t open;
	/* there was no descriptor for a client: nobody is taken until one may be free */
	bool full;
	/* how often that was so */
	uint64_t times_full;
	/*
	 * A request has come, which is in connection->parser.request; its state is SERVING until press_connection_answer, which
	 * may be called at once.
	 */
	void (*request)(void *arg, struct press_connection *connection);
	/* the connection ends while `task` is set */
	void (*gone)(void *arg, struct press_connection *connection);
	void *arg;
	/* now, in CLOCK_MONOTONIC ns, told by the owner of the loop */
	uint64_t now_ns;
};

/* Listens at this literal address, at a port that the kernel chooses. 0, or -1 with errno. */
int press_connections_start(struct press_connections *connections, struct press_loop *loop,
			    const char *address);
/* Ends all connections, at once. */
void press_connections_end(struct press_connections *connections);

/* Answers the request that is being served: with a file, which is pinned until it was sent, or, without one, with a status. */
void press_connection_answer(struct press_connection *connection, unsigned status, struct press_entry *entry);

/* Ends those that were too slow. Not to be called from a `ready`. */
void press_connections_tidy(struct press_connections *connections);

#endif
