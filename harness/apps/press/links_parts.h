/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of a link share: its queue (links.c), messages (links_send.c), remote writes (writes.c), deaths (links_lost.c). */
#ifndef PRESS_LINKS_PARTS_H
#define PRESS_LINKS_PARTS_H

#include "press/links.h"

/* One message, or all those of a file. */
struct press_job {
	struct press_job *next;
	struct press_message head;
	/* FILE: pinned */
	struct press_entry *entry;
	bool counts;
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
