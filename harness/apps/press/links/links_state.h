/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of links and what all parts of them use: queues, operations of the layer, credits. */
#ifndef PRESS_LINKS_STATE_H
#define PRESS_LINKS_STATE_H

#include "engine/engine.h"
#include "press/content/cache.h"
#include "press/links/message.h"

#define PRESS_WINDOW  8u
#define PRESS_BUFFERS (PRESS_WINDOW + 4u)

/* One message, or all those of a file. */
struct press_job {
	struct press_job *next;
	struct press_message head;
	/* FILE: pinned */
	struct press_entry *entry;
	bool counts;
};

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
	uint32_t sent, taken_there, taken, credited;
	/* of its messages, see press_links_connect */
	uint64_t attempt;
	/* see press_links_survive: the layer has reported it down; nothing is sent there, and nothing taken */
	bool down, lost;
	/* see press_links_attach: nothing leaves before that */
	bool waits;
	/* our load as last reported to the other end */
	uint32_t load_sent;
	struct press_job *first, **last;
	/* of this link, by number; bit n: buffer n is free */
	uint8_t *buffers;
	uint32_t idle;
	struct press_operation operations[PRESS_BUFFERS];
	/* the other end's region; NULL: nothing is written remotely */
	struct cadge_remote *remote;
	/* messages written into the other end's ring, and read from ours; and as many as it told of */
	uint32_t ring_written, ring_read, ring_acknowledged;
	/* the check word of the other end's last board */
	uint64_t board_read;
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
	uint32_t in_flight;
	uint64_t counts[PRESS_COUNTS];
	/* a first error of the layer, or a message that makes no sense */
	bool failed;
	struct drv_fail fail;
};

static inline bool press_takes_credit(uint32_t type)
{
	return type != PRESS_HELLO && type != PRESS_STATS && type != PRESS_CREDIT && type != PRESS_NOTIFY;
}

static inline bool press_has_credit(const struct press_link *link)
{
	return link->sent - link->taken_there < PRESS_WINDOW;
}

/* Memory for the board that is being written, behind the buffers. */
static inline uint8_t *press_link_board(const struct press_link *link)
{
	return link->buffers + (size_t)PRESS_BUFFERS * PRESS_MESSAGE_BYTES;
}

/* A message as it leaves: with what is said with every one. */
struct press_message press_link_head(const struct press_links *links, const struct press_link *link,
				     const struct press_message *head);

/* NULL: there is none. */
struct press_link *press_link_to(struct press_links *links, uint32_t endpoint);

/* The queue of a link: takes the first job out of it, puts one in front of all others, ends the first one. */
struct press_job *press_link_take_first(struct press_link *link);
void press_link_put_first(struct press_link *link, struct press_job *job);
void press_link_end_first(struct press_link *link);

/*
 * What became of an operation that was handed to the layer as `number`. True: it is accepted, and ends now or later;
 * false: it has to wait, or it failed.
 */
bool press_links_accepted(struct press_links *links, uint32_t channel, uint32_t number, int code,
			  const char *what);

/* The layer says that an operation has ended: sink.sent. */
void press_links_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);

/* Sends what can go on one link. 0, or -1 when memory is short. */
int press_link_send(struct press_links *links, uint32_t channel);
/* Nothing of this link follows: frees what waits, and what the layer had. */
void press_link_end(struct press_link *link);

/* A message has come: the first thing that is done with it. */
void press_links_take(struct press_links *links, struct press_link *link, const struct press_message *head,
		      const void *content, size_t bytes);
/* The other end has taken so many messages. */
void press_links_credit(struct press_links *links, struct press_link *link, uint32_t taken);
void press_links_nonsense(struct press_links *links, const char *what);

#endif
