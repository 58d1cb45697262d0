/* SPDX-License-Identifier: BSD-3-Clause */
/* How messages that wait on a link leave. */
#include <stdlib.h>
#include <string.h>

#include "press/links/links_state.h"
#include "press/links/writes.h"

/* the load that others know may be wrong by so much before they are told in a message of its own */
#define LOAD_STEP 8u

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
	link->credited = link->taken;
	link->load_sent = links->load;
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
	const uint32_t sent = link->load_sent, load = links->load,
		       wrong = sent > load ? sent - load : load - sent;
	const bool credits =
		link->taken - link->credited >= PRESS_WINDOW / 2 && !(link->first && press_has_credit(link));

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
