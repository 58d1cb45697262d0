/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of one endpoint, over the layer that is measured: a link to each other endpoint. What is to be sent waits
 * in its link's queue, in order, for a buffer, a credit and the layer. A file goes in pieces. A regular message is built in a
 * buffer, and copied at either end; what later versions of the study write remotely instead is in writes.h.
 *
 * Credits: a sender has at most PRESS_WINDOW messages at a receiver that has not taken them. The receiver says how many
 * it took so far with whatever it sends, and when half a window has come up, in a message of its own, or from V1 on by a
 * remote write. Hello, stats, notifications and credits themselves need none.
 */
#ifndef PRESS_LINKS_H
#define PRESS_LINKS_H

#include "press/links/links_state.h"

/* What a point with these messages asks of a layer. */
void press_links_need(enum press_version version, struct drv_needs *needs_out);

/* Points the engine's sink here. 0, or -1 with the reason. */
int press_links_start(struct press_links *links, struct drv_engine *engine, uint64_t attempt,
		      enum press_version version, press_message_fn taken, void *arg, struct drv_fail *fail);
/* Waits half a second at most for buffers that the layer has, and frees what is queued. */
void press_links_end(struct press_links *links);

/* Queues a message without content. 0, or -1 when memory is short. */
int press_links_send(struct press_links *links, uint32_t endpoint, const struct press_message *head);
/* Queues a file, all pieces of it, to `landing` or in messages; `entry` is pinned as long as it is needed. */
int press_links_file(struct press_links *links, uint32_t endpoint, uint64_t tag, uint32_t landing,
		     struct press_entry *entry);
/* Queues what this endpoint has counted. */
int press_links_stats(struct press_links *links, uint32_t endpoint);

/* Polls the layer and sends what can go. How many events there were, or -1 with the reason. */
int press_links_turn(struct press_links *links, struct drv_fail *fail);

/* How long an endpoint may sleep that waits for what others write without telling it; UINT64_MAX: for nothing. */
uint64_t press_links_check_interval_ns(const struct press_links *links);

/*
 * Peers that die and come back. In a launch of the driver none may; here they may once `lose` is set: it hears, in
 * press_links_turn, of each peer that the layer reports down, and has to call press_links_lose. Whoever knows of a death
 * from elsewhere calls that at once; both may.
 */
void press_links_survive(struct press_links *links, void (*lose)(void *arg, uint32_t endpoint));

/*
 * Ends the channel to a peer. What waits for it is dropped, files are unpinned; what is said to it from now on goes nowhere.
 * Buffers that the layer had are free again, for the contract has no event of them follow. Not from inside of a poll.
 */
int press_links_lose(struct press_links *links, uint32_t endpoint, struct drv_fail *fail);

/*
 * Connects to that peer in its new life, by the address that its layer made for this end, after ours made one for it. Both
 * ends name the session by the same number, which no earlier one of theirs had and which is not 0: what carries another
 * number is of a former life, and is not listened to. Credits begin anew; messages may be queued at once. From V1 on they
 * leave after press_links_attach.
 */
int press_links_connect(struct press_links *links, uint32_t endpoint, uint64_t session, const void *address,
			size_t bytes, struct drv_fail *fail);

/* From V1 on, when the channel is up: the peer's region, by the key that its layer gave for it. */
int press_links_attach(struct press_links *links, uint32_t endpoint, const void *key, size_t bytes,
		       struct drv_fail *fail);

#endif
