/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/links.h"

#include <stdlib.h>
#include <string.h>

#include "press/links_parts.h"
#include "press/writes.h"
#include "verify.h"

#define SETTLE_NS UINT64_C(500000000)
/* the load that others know may be wrong by so much before they are told in a message of its own */
#define LOAD_STEP 8u

/* how soon to look again for what is written without a notification */
#define LOOK_NS UINT64_C(50000)

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

static bool is_lost(struct press_links *links, uint32_t endpoint)
{
	const struct press_link *link = link_to(links, endpoint);

	return link && link->lost;
}

int press_links_say(struct press_links *links, uint32_t endpoint, const struct press_message *head)
{
	return is_lost(links, endpoint) ? 0 : new_job(links, endpoint, head) ? 0 : -1;
}

int press_links_file(struct press_links *links, uint32_t endpoint, uint64_t tag, uint32_t landing,
		     struct press_entry *entry)
{
	const struct press_message head = {.type = PRESS_FILE,
					   .file = entry->file,
					   .tag = tag,
					   .total = entry->bytes,
					   .status = 200,
					   .landing = landing};
	struct press_job *job;

	if (is_lost(links, endpoint))
		return 0;
	job = new_job(links, endpoint, &head);
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

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
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

/* Sends what can go on one link. 0, or -1 when memory is short. */
static int send_all(struct press_links *links, uint32_t channel)
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

/* ---- in ---- */

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
			link->ring_told = head->offset;
	} else if (head->type < PRESS_TYPES) {
		links->taken(links->arg, link->endpoint, head, content, bytes);
	} else {
		press_links_nonsense(links, "its type");
	}
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct press_links *links = (struct press_links *)sink;
	struct press_message head;
	struct press_link *link;

	(void)lend;
	if (peer >= links->count || bytes < sizeof(head)) {
		press_links_nonsense(links, "it is too short");
		return CADGE_TAKEN;
	}
	memcpy(&head, data, sizeof(head));
	link = &links->links[peer];
	if (head.attempt == link->attempt && !link->lost)
		press_links_take(links, link, &head, (const uint8_t *)data + sizeof(head),
				 bytes - sizeof(head));
	return CADGE_TAKEN;
}

/* ---- life ---- */

void press_links_need(enum press_version version, struct drv_needs *needs_out)
{
	needs_out->message_bytes = PRESS_MESSAGE_BYTES;
	/* messages, the board */
	needs_out->depth = version ? PRESS_BUFFERS + 1 : PRESS_BUFFERS;
	needs_out->region_bytes = press_region_bytes(version);
}

int press_links_start(struct press_links *links, struct drv_engine *engine, uint64_t attempt,
		      enum press_version version, press_message_fn taken, void *arg, struct drv_fail *fail)
{
	const size_t link_bytes = (size_t)PRESS_BUFFERS * PRESS_MESSAGE_BYTES + PRESS_BOARD_STRIDE;
	uint8_t *memory;

	links->attempt = attempt;
	links->version = version;
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
					    .attempt = attempt,
					    .buffers = memory + i * link_bytes,
					    .idle = (1u << PRESS_BUFFERS) - 1,
					    .remote = version ? engine->channels[i].remote : NULL};
		link->last = &link->first;
	}
	engine->sink = &links->port.sink;
	return 0;
}

static void settle(struct press_links *links, uint64_t until_ns)
{
	struct drv_engine *engine = links->port.engine;

	while (links->lent && !engine->down_code && drv_now_ns() < until_ns)
		if (engine->layer->poll(engine->ctx, &links->port.sink) < 0)
			break;
}

/* What was written remotely must not arrive when the next attempt has begun. */
static void end_writes(struct press_links *links, uint64_t until_ns)
{
	struct drv_engine *engine = links->port.engine;

	for (uint32_t i = 0; i < links->count; i++) {
		struct press_link *link = &links->links[i];

		while (link->dirty && link->idle && !links->failed && !engine->down_code &&
		       drv_now_ns() < until_ns) {
			const uint32_t number = (uint32_t)__builtin_ctz(link->idle);
			const int code =
				engine->layer->quiet(engine->channels[i].chan, 0, (uint64_t)i << 32 | number);

			link->dirty = !press_links_accepted(links, i, number, code, "quiet");
			if (link->dirty && engine->layer->poll(engine->ctx, &links->port.sink) < 0)
				break;
		}
		engine->broken |= link->dirty;
	}
}

/* Nothing of this link follows: frees what waits, and what the layer had. */
static void end_link(struct press_link *link)
{
	for (uint32_t number = 0; number < PRESS_BUFFERS; number++)
		if (!(link->idle >> number & 1))
			finish(link, number);
	link->board_busy = false;
	while (link->first)
		press_link_end_first(link);
}

void press_links_end(struct press_links *links)
{
	struct drv_engine *engine = links->port.engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;

	settle(links, until_ns);
	end_writes(links, until_ns);
	settle(links, until_ns);
	engine->broken |= links->lent > 0;
	for (uint32_t i = 0; i < links->count; i++)
		end_link(&links->links[i]);
}

int press_links_turn(struct press_links *links, struct drv_fail *fail)
{
	struct drv_engine *engine = links->port.engine;
	const int events = engine->layer->poll(engine->ctx, &links->port.sink);
	const int written = press_read_region(links);

	if (events < 0)
		return drv_engine_fail("poll", events, fail);
	for (uint32_t i = 0; i < links->count; i++) {
		struct press_link *link = &links->links[i];

		if (link->down && !link->lost)
			links->lose(links->arg, link->endpoint);
		if (!link->lost && send_all(links, i))
			return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
	}
	if (links->failed) {
		*fail = links->fail;
		return -1;
	}
	return events + written;
}

uint64_t press_links_look_ns(const struct press_links *links)
{
	for (uint32_t i = 0; i < links->count; i++) {
		const struct press_link *link = &links->links[i];

		if (link->remote && (link->ring_told - link->ring_read - 1 < PRESS_WINDOW ||
				     (link->first && !press_has_credit(link))))
			return LOOK_NS;
	}
	return UINT64_MAX;
}

/* ---- peers that die and come back ---- */

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	struct press_links *links = (struct press_links *)sink;

	(void)code;
	if (peer < links->count)
		links->links[peer].down = true;
}

void press_links_survive(struct press_links *links, void (*lose)(void *arg, uint32_t endpoint))
{
	links->lose = lose;
	links->port.sink.down = on_down;
}

int press_links_lose(struct press_links *links, uint32_t endpoint, struct drv_fail *fail)
{
	struct drv_engine *engine = links->port.engine;
	struct press_link *link = link_to(links, endpoint);
	struct drv_channel *channel = link ? &engine->channels[link - links->links] : NULL;
	int code = CADGE_DONE;

	if (!link || link->lost)
		return 0;
	if (link->remote)
		engine->layer->detach(channel->chan, link->remote);
	channel->remote = link->remote = NULL;
	if (channel->chan)
		code = engine->layer->disconnect(engine->ctx, channel->chan);
	channel->chan = NULL;
	engine->up_count -= channel->up;
	channel->up = false;
	links->lent -= PRESS_BUFFERS - (uint32_t)__builtin_popcount(link->idle) + link->board_busy;
	end_link(link);
	link->lost = true;
	return code < 0 ? drv_engine_fail("disconnect", code, fail) : 0;
}

int press_links_meet(struct press_links *links, uint32_t endpoint, uint64_t meeting, const void *address,
		     size_t bytes, struct drv_fail *fail)
{
	struct drv_engine *engine = links->port.engine;
	struct press_link *link = link_to(links, endpoint);
	uint32_t channel;
	int code;

	if (!link || !link->lost)
		return drv_fail_set(fail, DRV_PROTOCOL, "there is a channel to node %u already", endpoint);
	channel = (uint32_t)(link - links->links);
	code = engine->layer->connect(engine->ctx, channel, address, bytes, &engine->channels[channel].chan);
	if (code < 0)
		return drv_engine_fail("connect", code, fail);
	link->attempt = drv_mix(links->attempt, meeting);
	link->sent = link->taken_there = link->taken = link->said = link->told_load = 0;
	link->down = link->lost = false;
	return 0;
}
