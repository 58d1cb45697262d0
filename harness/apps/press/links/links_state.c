/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/links/links_state.h"

#include <stdlib.h>

/* ---- queues ---- */

static void free_job(struct press_job *job)
{
	if (job->entry)
		press_entry_unpin(job->entry);
	free(job);
}

struct press_job *press_link_take_first(struct press_link *link)
{
	struct press_job *job = link->first;

	link->first = job->next;
	if (!link->first)
		link->last = &link->first;
	return job;
}

void press_link_put_first(struct press_link *link, struct press_job *job)
{
	job->next = link->first;
	if (!link->first)
		link->last = &job->next;
	link->first = job;
}

void press_link_end_first(struct press_link *link)
{
	free_job(press_link_take_first(link));
}

struct press_link *press_link_to(struct press_links *links, uint32_t endpoint)
{
	for (uint32_t i = 0; i < links->count; i++)
		if (links->links[i].endpoint == endpoint)
			return &links->links[i];
	return NULL;
}

void __attribute__((cold)) press_links_nonsense(struct press_links *links, const char *what)
{
	if (!links->failed)
		drv_fail_set(&links->fail, DRV_PROTOCOL, "a node got a message that makes no sense: %s",
			     what);
	links->failed = true;
}

void press_links_credit(struct press_links *links, struct press_link *link, uint32_t taken)
{
	const uint32_t more = taken - link->taken_there;

	/* said before what is known already */
	if (more > UINT32_MAX / 2)
		return;
	if (more > link->sent - link->taken_there)
		press_links_nonsense(links, "it took more than it was sent");
	else
		link->taken_there = taken;
}

void press_links_take(struct press_links *links, struct press_link *link, const struct press_message *head,
		      const void *content, size_t bytes)
{
	press_links_credit(links, link, head->taken);
	link->taken += press_takes_credit(head->type);
	if (head->type == PRESS_NOTIFY) {
		if (head->offset - link->ring_read <= PRESS_WINDOW)
			link->ring_acknowledged = head->offset;
	} else if (head->type < PRESS_TYPES) {
		links->taken(links->arg, link->endpoint, head, content, bytes);
	} else {
		press_links_nonsense(links, "its type");
	}
}

/* ---- operations ---- */

static void __attribute__((cold)) note_failure(struct press_links *links, const char *what, int code)
{
	if (!links->failed)
		drv_engine_fail(what, code, &links->fail);
	links->failed = true;
}

/* An error of one channel, whose peer may come back. */
static bool survives(const struct press_links *links, struct press_link *link, int code)
{
	if (!links->lose || code > CADGE_E_DOWN || code <= CADGE_E_LIBRARY)
		return false;
	link->down = true;
	return true;
}

/* An operation of this number has ended. A file that can be seen now goes on with its message. */
static void finish(struct press_link *link, uint32_t number)
{
	struct press_operation operation;

	if (number == PRESS_BUFFERS) {
		link->board_busy = false;
		return;
	}
	operation = link->operations[number];
	link->operations[number] = (struct press_operation){.entry = NULL};
	link->idle |= 1u << number;
	if (operation.entry)
		press_entry_unpin(operation.entry);
	if (operation.job) {
		press_entry_unpin(operation.job->entry);
		operation.job->entry = NULL;
		operation.job->head.offset = 0;
		press_link_put_first(link, operation.job);
	}
}

bool press_links_accepted(struct press_links *links, uint32_t channel, uint32_t number, int code,
			  const char *what)
{
	struct press_link *link = &links->links[channel];

	if (code == CADGE_BUSY)
		return false;
	if (code < 0) {
		if (!survives(links, link, code))
			note_failure(links, what, code);
		return false;
	}
	if (code == CADGE_DONE) {
		finish(link, number);
		return true;
	}
	links->in_flight++;
	if (number == PRESS_BUFFERS)
		link->board_busy = true;
	else
		link->idle &= ~(1u << number);
	return true;
}

void press_links_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct press_links *links = (struct press_links *)sink;
	const uint32_t number = (uint32_t)token;
	struct press_link *link = &links->links[peer < links->count ? peer : 0];

	if (peer >= links->count || token >> 32 != peer || number > PRESS_BUFFERS ||
	    (number == PRESS_BUFFERS ? !link->board_busy : link->idle >> number & 1)) {
		press_links_nonsense(links, "a completion of what was not sent");
		return;
	}
	links->in_flight--;
	finish(link, number);
	if (code < 0 && !survives(links, link, code))
		note_failure(links, "an operation", code);
}

void press_link_end(struct press_link *link)
{
	for (uint32_t number = 0; number < PRESS_BUFFERS; number++)
		if (!(link->idle >> number & 1))
			finish(link, number);
	link->board_busy = false;
	while (link->first)
		press_link_end_first(link);
}

struct press_message press_link_head(const struct press_links *links, const struct press_link *link,
				     const struct press_message *head)
{
	struct press_message own = *head;

	own.attempt = link->attempt;
	own.load = links->load;
	own.taken = link->taken;
	return own;
}
