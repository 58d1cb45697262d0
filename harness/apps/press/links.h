/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of one endpoint, over the layer that is measured: a link to each other endpoint. What is to be sent waits
 * in its link's queue, in order, for a buffer, a credit and the layer. A file goes in pieces. Version V0 of the study:
 * everything is a regular message, which is built in a buffer, and copied at either end.
 *
 * Credits: a sender has at most PRESS_WINDOW messages at a receiver that has not taken them. The receiver says how many
 * it took with whatever it sends, and in a message of its own when half a window has come up. Hello, stats and credits
 * themselves need none.
 */
#ifndef PRESS_LINKS_H
#define PRESS_LINKS_H

#include "engine.h"
#include "press/cache.h"
#include "press/message.h"

#define PRESS_WINDOW  8u
#define PRESS_BUFFERS (PRESS_WINDOW + 4u)

struct press_job;
struct press_links;

/* What comes in: the head, and its content, both lent until it returns. `endpoint` is the sender's number. */
typedef void (*press_message_fn)(void *arg, uint32_t endpoint, const struct press_message *head,
				 const void *content, size_t bytes);

struct press_link {
	uint32_t endpoint;
	/* messages that may be sent; taken from there, and not yet said */
	uint32_t credits, owed;
	/* what the other end last heard of our load */
	uint32_t told_load;
	struct press_job *first, **last;
	/* of this link, by number; bit n: buffer n is free */
	uint8_t *buffers;
	uint32_t idle;
};

struct press_links {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	uint64_t attempt;
	uint32_t count;
	/* by channel */
	struct press_link links[DRV_PEERS_MAX];
	press_message_fn taken;
	void *arg;
	/* open requests of this endpoint, for the heads of messages */
	uint32_t load;
	/* messages with the layer, whose buffers are lent */
	uint32_t lent;
	uint64_t counts[PRESS_COUNTS];
	/* a first error of the layer, or a message that makes no sense */
	bool failed;
	struct drv_fail fail;
};

/* What a point with these messages asks of a layer. */
void press_links_need(struct drv_needs *needs_out);

/* Points the engine's sink here. 0, or -1 with the reason. */
int press_links_start(struct press_links *links, struct drv_engine *engine, uint64_t attempt,
		      press_message_fn taken, void *arg, struct drv_fail *fail);
/* Waits half a second at most for buffers that the layer has, and frees what is queued. */
void press_links_end(struct press_links *links);

/* Queues a message without content. 0, or -1 when memory is short. */
int press_links_say(struct press_links *links, uint32_t endpoint, const struct press_message *head);
/* Queues a file, all pieces of it; `entry` is pinned until the last one was built. */
int press_links_file(struct press_links *links, uint32_t endpoint, uint64_t tag, struct press_entry *entry);
/* Queues what this endpoint has counted. */
int press_links_stats(struct press_links *links, uint32_t endpoint);

/* Polls the layer and sends what can go. How many events there were, or -1 with the reason. */
int press_links_turn(struct press_links *links, struct drv_fail *fail);

#endif
