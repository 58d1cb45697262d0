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

#include "engine/engine.h"
#include "press/cache.h"
#include "press/message.h"

#define PRESS_WINDOW  8u
#define PRESS_BUFFERS (PRESS_WINDOW + 4u)

struct press_job;
struct press_links;

/*
 * What comes in: the head, and its content, both lent until it returns. `endpoint` is the sender's number. A FILE without
 * content, of status 200, says that the file was written to where it was wanted.
 */
typedef void (*press_message_fn)(void *arg, uint32_t endpoint, const struct press_message *head,
				 const void *content, size_t bytes);

/* What the layer is at, by the number of the buffer. */
struct press_operation {
	/* pinned: it is written from there; else NULL */
	struct press_entry *entry;
	/* once this has ended, the job goes on: a file that has to be visible first; else NULL */
	struct press_job *job;
};

struct press_link {
	uint32_t endpoint;
	/* messages that need credits: sent; taken at the other end; taken here, and said to be */
	uint32_t sent, taken_there, taken, said;
	/* of its messages, see press_links_meet */
	uint64_t attempt;
	/* see press_links_survive: the layer has reported it down; nothing is sent there, and nothing taken */
	bool down, lost;
	/* see press_links_attach: nothing leaves before that */
	bool waits;
	/* what the other end last heard of our load */
	uint32_t told_load;
	struct press_job *first, **last;
	/* of this link, by number; bit n: buffer n is free */
	uint8_t *buffers;
	uint32_t idle;
	struct press_operation operations[PRESS_BUFFERS];
	/* the other end's region; NULL: nothing is written remotely */
	struct cadge_remote *remote;
	/* messages written into the other end's ring, and read from ours; and as many as it told of */
	uint32_t ring_written, ring_read, ring_told;
	/* the check word of the other end's last board */
	uint64_t board_seen;
	/* the other end has to be told of what is in its ring; the board is being written; something was since the last quiet */
	bool notify, board_busy, dirty;
};

struct press_links {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	uint64_t attempt;
	enum press_version version;
	uint32_t count;
	/* by channel */
	struct press_link links[DRV_PEERS_MAX];
	press_message_fn taken;
	/* NULL: a peer that is down ends the launch, as the driver has it */
	void (*lose)(void *arg, uint32_t endpoint);
	void *arg;
	/* open requests of this endpoint, for the heads of messages */
	uint32_t load;
	/* operations with the layer, whose buffers are lent */
	uint32_t lent;
	uint64_t counts[PRESS_COUNTS];
	/* a first error of the layer, or a message that makes no sense */
	bool failed;
	struct drv_fail fail;
};

/* What a point with these messages asks of a layer. */
void press_links_need(enum press_version version, struct drv_needs *needs_out);

/* Points the engine's sink here. 0, or -1 with the reason. */
int press_links_start(struct press_links *links, struct drv_engine *engine, uint64_t attempt,
		      enum press_version version, press_message_fn taken, void *arg, struct drv_fail *fail);
/* Waits half a second at most for buffers that the layer has, and frees what is queued. */
void press_links_end(struct press_links *links);

/* Queues a message without content. 0, or -1 when memory is short. */
int press_links_say(struct press_links *links, uint32_t endpoint, const struct press_message *head);
/* Queues a file, all pieces of it, to `landing` or in messages; `entry` is pinned as long as it is needed. */
int press_links_file(struct press_links *links, uint32_t endpoint, uint64_t tag, uint32_t landing,
		     struct press_entry *entry);
/* Queues what this endpoint has counted. */
int press_links_stats(struct press_links *links, uint32_t endpoint);

/* Polls the layer and sends what can go. How many events there were, or -1 with the reason. */
int press_links_turn(struct press_links *links, struct drv_fail *fail);

/* How long an endpoint may sleep that waits for what others write without telling it; UINT64_MAX: for nothing. */
uint64_t press_links_look_ns(const struct press_links *links);

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
 * ends name the meeting by the same number, which no earlier one of theirs had and which is not 0: what carries another
 * number is of a former life, and is not listened to. Credits begin anew; messages may be queued at once. From V1 on they
 * leave after press_links_attach.
 */
int press_links_meet(struct press_links *links, uint32_t endpoint, uint64_t meeting, const void *address,
		     size_t bytes, struct drv_fail *fail);

/* From V1 on, when the channel is up: the peer's region, by the key that its layer gave for it. */
int press_links_attach(struct press_links *links, uint32_t endpoint, const void *key, size_t bytes,
		       struct drv_fail *fail);

#endif
