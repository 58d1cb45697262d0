/* SPDX-License-Identifier: BSD-3-Clause */
/* How what waits on a link leaves, and what becomes of it. */
#include <stdlib.h>
#include <string.h>

#include "press/links_parts.h"
#include "press/writes.h"

/* the load that others know may be wrong by so much before they are told in a message of its own */
#define LOAD_STEP 8u

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
	links->lent++;
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
	links->lent--;
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

/* ---- out ---- */

struct press_message press_link_head(const struct press_links *links, const struct press_link *link,
				     const struct press_message *head)
{
	struct press_message own = *head;

	own.attempt = link->attempt;
	own.load = links->load;
	own.taken = link->taken;
	return own;
}

/* Writes the message of a job, or its next piece, into a buffer; how long its content is. */
static size_t build(struct press_links *links, struct press_link *link, const struct press_job *job,
		    uint8_t *out)
{
	const struct press_message head = press_link_head(links, link, &job->head);
	size_t bytes = 0;

	if (job->entry) {
		bytes = job->entry->bytes - head.offset;
		bytes = bytes < PRESS_PIECE_BYTES ? bytes : PRESS_PIECE_BYTES;
		memcpy(out + sizeof(head), job->entry->data + head.offset, bytes);
	} else if (job->counts) {
		bytes = sizeof(links->counts);
		memcpy(out + sizeof(head), links->counts, bytes);
	}
	memcpy(out, &head, sizeof(head));
	return bytes;
}

/* Posts the first job's message, or its next piece. False: it has to wait, or it failed. */
static bool post_first(struct press_links *links, uint32_t channel)
{
	struct press_link *link = &links->links[channel];
	struct drv_engine *engine = links->port.engine;
	struct press_job *job = link->first;
	const uint32_t type = job->head.type;
	uint32_t number;
	uint8_t *buffer;
	struct cadge_iov iov;
	size_t bytes;
	int code;

	if (!link->idle || (press_takes_credit(type) && !press_has_credit(link)))
		return false;
	number = (uint32_t)__builtin_ctz(link->idle);
	buffer = link->buffers + (size_t)number * PRESS_MESSAGE_BYTES;
	bytes = build(links, link, job, buffer);
	iov = (struct cadge_iov){buffer, sizeof(job->head) + bytes};
	code = engine->layer->post(engine->channels[channel].chan, &iov, 1, 0,
				   (uint64_t)channel << 32 | number);
	if (!press_links_accepted(links, channel, number, code, "post"))
		return false;
	link->sent += press_takes_credit(type);
	link->said = link->taken;
	link->told_load = links->load;
	links->counts[PRESS_POSTS]++;
	links->counts[PRESS_SENT + type]++;
	links->counts[PRESS_SENT_BYTES + type] += iov.bytes;
	if (job->entry) {
		links->counts[PRESS_COPIED] += bytes;
		job->head.offset += (uint32_t)bytes;
	}
	if (!job->entry || job->head.offset == job->entry->bytes)
		press_link_end_first(link);
	return true;
}

static bool is_node(const struct press_link *link)
{
	return link->endpoint != 0;
}

/* Puts a message without content in front of all others. */
static int add_first(struct press_link *link, enum press_type type, uint32_t offset)
{
	struct press_job *job = calloc(1, sizeof(*job));

	if (!job)
		return -1;
	job->head.type = type;
	job->head.offset = offset;
	press_link_put_first(link, job);
	return 0;
}

/* What has to be said without a message that it could go with. In front of what waits for credits itself. */
static int add_duties(struct press_links *links, uint32_t channel)
{
	struct press_link *link = &links->links[channel];
	const uint32_t told = link->told_load, load = links->load,
		       wrong = told > load ? told - load : load - told;
	const bool credits =
		link->taken - link->said >= PRESS_WINDOW / 2 && !(link->first && press_has_credit(link));

	if (!credits && (link->first || wrong < LOAD_STEP || !is_node(link)))
		return 0;
	if (link->remote) {
		press_write_board(links, channel);
		return 0;
	}
	if (link->first && link->first->head.type == PRESS_CREDIT)
		return 0;
	return add_first(link, credits ? PRESS_CREDIT : PRESS_LOAD, 0);
}

int press_link_send(struct press_links *links, uint32_t channel)
{
	struct press_link *link = &links->links[channel];

	if (add_duties(links, channel))
		return -1;
	while (link->first &&
	       (press_writes(links, link) ? press_write_first(links, channel) : post_first(links, channel)))
		;
	if (!link->notify || (link->first && link->first->head.type == PRESS_NOTIFY))
		return 0;
	/* once for all that was written in this turn */
	link->notify = false;
	if (add_first(link, PRESS_NOTIFY, link->ring_written))
		return -1;
	post_first(links, channel);
	return 0;
}
