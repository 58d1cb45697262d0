/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/links/links.h"

#include <stdlib.h>
#include <string.h>

#include "press/links/writes.h"

#define SETTLE_NS UINT64_C(500000000)

/* how soon to look again for what is written without a notification */
#define CHECK_NS UINT64_C(50000)

/* ---- out ---- */

static struct press_job *new_job(struct press_links *links, uint32_t endpoint,
				 const struct press_message *head)
{
	struct press_link *link = press_link_to(links, endpoint);
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
	const struct press_link *link = press_link_to(links, endpoint);

	return link && link->lost;
}

int press_links_send(struct press_links *links, uint32_t endpoint, const struct press_message *head)
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

/* ---- in ---- */

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
	links->port.sink.sent = press_links_sent;
	memory = drv_pool_take(engine, DRV_POOL_REQUESTER, engine->channels_count * link_bytes, fail);
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

	while (links->in_flight && !engine->down_code && drv_now_ns() < until_ns)
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

void press_links_end(struct press_links *links)
{
	struct drv_engine *engine = links->port.engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;

	settle(links, until_ns);
	end_writes(links, until_ns);
	settle(links, until_ns);
	engine->broken |= links->in_flight > 0;
	for (uint32_t i = 0; i < links->count; i++)
		press_link_end(&links->links[i]);
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
		if (!link->lost && !link->waits && press_link_send(links, i))
			return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
	}
	if (links->failed) {
		*fail = links->fail;
		return -1;
	}
	return events + written;
}

uint64_t press_links_check_interval_ns(const struct press_links *links)
{
	for (uint32_t i = 0; i < links->count; i++) {
		const struct press_link *link = &links->links[i];

		if (link->remote && (link->ring_acknowledged - link->ring_read - 1 < PRESS_WINDOW ||
				     (link->first && !press_has_credit(link))))
			return CHECK_NS;
	}
	return UINT64_MAX;
}
