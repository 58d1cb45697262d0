/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/links.h"

#include <stdlib.h>
#include <string.h>

#define SETTLE_NS UINT64_C(500000000)
/* the load that others know may be wrong by so much before they are told in a message of its own */
#define LOAD_STEP 8u

/* One message, or all those of a file. */
struct press_job {
	struct press_job *next;
	struct press_message head;
	/* FILE: pinned */
	struct press_entry *entry;
	bool counts;
};

static bool takes_credit(uint32_t type)
{
	return type != PRESS_HELLO && type != PRESS_STATS && type != PRESS_CREDIT;
}

static void end_job(struct press_link *link)
{
	struct press_job *job = link->first;

	link->first = job->next;
	if (!link->first)
		link->last = &link->first;
	if (job->entry)
		press_entry_unpin(job->entry);
	free(job);
}

static struct press_link *link_to(struct press_links *links, uint32_t endpoint)
{
	for (uint32_t i = 0; i < links->count; i++)
		if (links->links[i].endpoint == endpoint)
			return &links->links[i];
	return NULL;
}

static struct press_job *new_job(struct press_links *links, uint32_t endpoint,
				 const struct press_message *head)
{
	struct press_link *link = link_to(links, endpoint);
	struct press_job *job = link ? calloc(1, sizeof(*job)) : NULL;

	if (!job)
		return NULL;
	job->head = *head;
	*link->last = job;
	link->last = &job->next;
	return job;
}

int press_links_say(struct press_links *links, uint32_t endpoint, const struct press_message *head)
{
	return new_job(links, endpoint, head) ? 0 : -1;
}

int press_links_file(struct press_links *links, uint32_t endpoint, uint64_t tag, struct press_entry *entry)
{
	const struct press_message head = {
		.type = PRESS_FILE, .file = entry->file, .tag = tag, .total = entry->bytes, .status = 200};
	struct press_job *job = new_job(links, endpoint, &head);

	if (!job)
		return -1;
	press_entry_pin(entry);
	job->entry = entry;
	return 0;
}

int press_links_stats(struct press_links *links, uint32_t endpoint)
{
	struct press_job *job = new_job(links, endpoint, &(struct press_message){.type = PRESS_STATS});

	if (!job)
		return -1;
	job->counts = true;
	return 0;
}

/* ---- out ---- */

/* Writes the message of a job, or its next piece, into a buffer; how long it is. */
static size_t build(struct press_links *links, struct press_link *link, const struct press_job *job,
		    uint8_t *out)
{
	struct press_message head = job->head;
	size_t bytes = 0;

	if (job->entry) {
		bytes = job->entry->bytes - head.offset;
		bytes = bytes < PRESS_PIECE_BYTES ? bytes : PRESS_PIECE_BYTES;
		memcpy(out + sizeof(head), job->entry->data + head.offset, bytes);
		links->counts[PRESS_COPIED] += bytes;
	} else if (job->counts) {
		bytes = sizeof(links->counts);
		memcpy(out + sizeof(head), links->counts, bytes);
	}
	head.attempt = links->attempt;
	head.load = links->load;
	head.credits = link->owed;
	memcpy(out, &head, sizeof(head));
	return sizeof(head) + bytes;
}

/* Sends the first job's message. False: it has to wait, or it failed. */
static bool send_first(struct press_links *links, uint32_t channel)
{
	struct press_link *link = &links->links[channel];
	struct drv_engine *engine = links->port.engine;
	struct press_job *job = link->first;
	const uint32_t type = job->head.type;
	uint32_t number;
	uint8_t *buffer;
	struct cadge_iov iov;
	int code;

	if (!link->idle || (takes_credit(type) && !link->credits))
		return false;
	number = (uint32_t)__builtin_ctz(link->idle);
	buffer = link->buffers + (size_t)number * PRESS_MESSAGE_BYTES;
	iov = (struct cadge_iov){buffer, build(links, link, job, buffer)};
	code = engine->layer->post(engine->channels[channel].chan, &iov, 1, 0,
				   (uint64_t)channel << 32 | number);
	if (code == CADGE_BUSY)
		return false;
	if (code < 0) {
		links->failed = true;
		drv_engine_fail("post", code, &links->fail);
		return false;
	}
	if (code == CADGE_QUEUED) {
		link->idle &= ~(1u << number);
		links->lent++;
	}
	link->credits -= takes_credit(type);
	link->owed = 0;
	link->told_load = links->load;
	links->counts[PRESS_SENT + type]++;
	links->counts[PRESS_SENT_BYTES + type] += iov.bytes;
	job->head.offset += job->entry ? (uint32_t)(iov.bytes - sizeof(struct press_message)) : 0;
	if (!job->entry || job->head.offset == job->entry->bytes)
		end_job(link);
	return true;
}

static bool is_node(const struct press_link *link)
{
	return link->endpoint != 0;
}

/* What has to be said without a message that it could go with. In front of what waits for credits itself. */
static int add_duties(struct press_links *links, struct press_link *link)
{
	const uint32_t told = link->told_load, load = links->load,
		       wrong = told > load ? told - load : load - told;
	const bool credits = link->owed >= PRESS_WINDOW / 2 && !(link->first && link->credits);
	struct press_job *job;

	if (!credits && (link->first || wrong < LOAD_STEP || !is_node(link)))
		return 0;
	if (link->first && link->first->head.type == PRESS_CREDIT)
		return 0;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -1;
	job->head.type = credits ? PRESS_CREDIT : PRESS_LOAD;
	job->next = link->first;
	if (!link->first)
		link->last = &job->next;
	link->first = job;
	return 0;
}

/* ---- in ---- */

static void __attribute__((cold)) nonsense(struct press_links *links, const char *what)
{
	if (!links->failed)
		drv_fail_set(&links->fail, DRV_PROTOCOL, "a node got a message that makes no sense: %s",
			     what);
	links->failed = true;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct press_links *links = (struct press_links *)sink;
	struct press_message head;
	struct press_link *link;

	(void)lend;
	if (peer >= links->count || bytes < sizeof(head)) {
		nonsense(links, "it is too short");
		return CADGE_TAKEN;
	}
	memcpy(&head, data, sizeof(head));
	if (head.attempt != links->attempt)
		return CADGE_TAKEN;
	link = &links->links[peer];
	if (head.type >= PRESS_TYPES || head.credits > PRESS_WINDOW - link->credits) {
		nonsense(links, "its type, or its credits");
		return CADGE_TAKEN;
	}
	link->credits += head.credits;
	link->owed += takes_credit(head.type);
	links->taken(links->arg, link->endpoint, &head, (const uint8_t *)data + sizeof(head),
		     bytes - sizeof(head));
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct press_links *links = (struct press_links *)sink;
	const uint32_t number = (uint32_t)token;

	if (peer >= links->count || token >> 32 != peer || number >= PRESS_BUFFERS ||
	    links->links[peer].idle >> number & 1) {
		nonsense(links, "a completion of what was not sent");
		return;
	}
	links->links[peer].idle |= 1u << number;
	links->lent--;
	if (code < 0 && !links->failed) {
		links->failed = true;
		drv_engine_fail("post", code, &links->fail);
	}
}

/* ---- life ---- */

void press_links_need(struct drv_needs *needs_out)
{
	needs_out->message_bytes = PRESS_MESSAGE_BYTES;
	needs_out->depth = PRESS_BUFFERS;
}

int press_links_start(struct press_links *links, struct drv_engine *engine, uint64_t attempt,
		      press_message_fn taken, void *arg, struct drv_fail *fail)
{
	const size_t link_bytes = (size_t)PRESS_BUFFERS * PRESS_MESSAGE_BYTES;
	uint8_t *memory;

	links->attempt = attempt;
	links->taken = taken;
	links->arg = arg;
	drv_port_start(&links->port, engine);
	links->port.sink.recv = on_recv;
	links->port.sink.sent = on_sent;
	memory = drv_pool_take(engine, DRV_POOL_CLIENT, engine->channels_count * link_bytes, fail);
	if (!memory)
		return -1;
	links->count = engine->channels_count;
	for (uint32_t i = 0; i < links->count; i++) {
		struct press_link *link = &links->links[i];

		*link = (struct press_link){.endpoint = (uint32_t)engine->channels[i].endpoint,
					    .credits = PRESS_WINDOW,
					    .buffers = memory + i * link_bytes,
					    .idle = (1u << PRESS_BUFFERS) - 1};
		link->last = &link->first;
	}
	engine->sink = &links->port.sink;
	return 0;
}

void press_links_end(struct press_links *links)
{
	struct drv_engine *engine = links->port.engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;

	while (links->lent && !engine->down_code && drv_now_ns() < until_ns)
		if (engine->layer->poll(engine->ctx, &links->port.sink) < 0)
			break;
	engine->broken |= links->lent > 0;
	for (uint32_t i = 0; i < links->count; i++)
		while (links->links[i].first)
			end_job(&links->links[i]);
}

int press_links_turn(struct press_links *links, struct drv_fail *fail)
{
	struct drv_engine *engine = links->port.engine;
	const int events = engine->layer->poll(engine->ctx, &links->port.sink);

	if (events < 0)
		return drv_engine_fail("poll", events, fail);
	for (uint32_t i = 0; i < links->count; i++) {
		struct press_link *link = &links->links[i];

		if (add_duties(links, link))
			return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
		while (link->first && send_first(links, i))
			;
	}
	if (links->failed) {
		*fail = links->fail;
		return -1;
	}
	return events;
}
