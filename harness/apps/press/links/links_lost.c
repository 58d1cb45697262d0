/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that die and come back. */
#include "press/links/links.h"
#include "traffic/payload.h"

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
	struct press_link *link = press_link_to(links, endpoint);
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
	links->in_flight -= PRESS_BUFFERS - (uint32_t)__builtin_popcount(link->idle) + link->board_busy;
	press_link_end(link);
	link->lost = true;
	return code < 0 ? drv_engine_fail("disconnect", code, fail) : 0;
}

int press_links_connect(struct press_links *links, uint32_t endpoint, uint64_t session, const void *address,
			size_t bytes, struct drv_fail *fail)
{
	struct drv_engine *engine = links->port.engine;
	struct press_link *link = press_link_to(links, endpoint);
	uint32_t channel;
	int code;

	if (!link || !link->lost)
		return drv_fail_set(fail, DRV_PROTOCOL, "there is a channel to node %u already", endpoint);
	channel = (uint32_t)(link - links->links);
	code = engine->layer->connect(engine->ctx, channel, address, bytes, &engine->channels[channel].chan);
	if (code < 0)
		return drv_engine_fail("connect", code, fail);
	link->attempt = drv_mix(links->attempt, session);
	link->sent = link->taken_there = link->taken = link->credited = link->load_sent = 0;
	/* what is left of its former life in our region has another number */
	link->ring_written = link->ring_read = link->ring_acknowledged = 0;
	link->board_read = 0;
	link->notify = link->dirty = link->down = link->lost = false;
	link->waits = links->version != PRESS_V0;
	return 0;
}

int press_links_attach(struct press_links *links, uint32_t endpoint, const void *key, size_t bytes,
		       struct drv_fail *fail)
{
	struct drv_engine *engine = links->port.engine;
	struct press_link *link = press_link_to(links, endpoint);
	struct drv_channel *channel = link ? &engine->channels[link - links->links] : NULL;
	int code;

	if (!link || link->lost || !link->waits)
		return drv_fail_set(fail, DRV_PROTOCOL, "node %u is not waited for", endpoint);
	code = engine->layer->attach(channel->chan, key, bytes, CADGE_MAY_ALL, 0, &channel->remote);
	if (code < 0)
		return drv_engine_fail("attach", code, fail);
	link->remote = channel->remote;
	link->waits = false;
	return 0;
}
