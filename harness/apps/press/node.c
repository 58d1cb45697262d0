/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/node.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "press/http/dial.h"

#define HELPERS 8u
#define WAIT_NS UINT64_C(10000000)
#define TIDY_NS UINT64_C(1000000000)

/* ---- the loop ---- */

static void on_layer(struct press_watch *watch, uint32_t events)
{
	(void)watch, (void)events; /* every turn polls it */
}

static void on_disk(struct press_watch *watch, uint32_t events)
{
	struct press_node *node = (struct press_node *)((char *)watch - offsetof(struct press_node, helpers));

	(void)events;
	node->disk_ended = true;
}

/* How long the loop may sleep: not at all where there is work, or where others have to be looked at all the time. */
static int sleep_for(struct press_node *node, bool was_busy, uint64_t *timeout_ns_out, struct drv_fail *fail)
{
	struct drv_engine *engine = node->links.port.engine;
	uint64_t due_ns = UINT64_MAX, check_ns;
	int code, fd;

	*timeout_ns_out = 0;
	if (was_busy || !engine->block)
		return 0;
	code = engine->layer->event(engine->ctx, &fd, &due_ns);
	if (code == CADGE_BUSY)
		return 0;
	if (code < 0)
		return drv_engine_fail("event", code, fail);
	if (node->layer.fd < 0) {
		node->layer.fd = fd;
		if (press_loop_add(&node->loop, &node->layer, EPOLLIN))
			return drv_fail_set(fail, DRV_SYSTEM, "cannot watch the layer's descriptor: %s",
					    strerror(errno));
	}
	check_ns = press_links_check_interval_ns(&node->links);
	due_ns = check_ns < due_ns ? check_ns : due_ns;
	*timeout_ns_out = due_ns < WAIT_NS ? due_ns : WAIT_NS;
	return 0;
}

int press_node_serve(struct press_node *node, json_t **message_out, struct drv_fail *fail)
{
	struct drv_engine *engine = node->links.port.engine;

	for (;;) {
		const int events = press_links_turn(&node->links, fail);
		uint64_t timeout_ns;
		int ready;

		if (events < 0 || sleep_for(node, events > 0, &timeout_ns, fail))
			return -1;
		engine->waits += timeout_ns > 0;
		node->links.counts[PRESS_WAKEUPS] += timeout_ns > 0;
		ready = press_loop_turn(&node->loop, timeout_ns);
		if (ready < 0)
			return drv_fail_set(fail, DRV_SYSTEM, "epoll: %s", strerror(errno));
		node->connections.now_ns = drv_now_ns();
		if (node->disk_ended)
			press_service_reads(node);
		if (node->turned)
			node->turned(node);
		if (node->failed) {
			*fail = node->fail;
			return -1;
		}
		if (node->connections.now_ns >= node->tidy_ns) {
			node->tidy_ns = node->connections.now_ns + TIDY_NS;
			press_connections_tidy(&node->connections);
			press_service_tidy(node);
		}
		if (events == 0 && ready == 0) {
			const int status =
				drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), message_out, fail);

			if (status)
				return status < 0 ? -1 : 0;
		}
	}
}

/* ---- life ---- */

static int start_outside(struct press_node *node, const struct drv_engine *engine, struct drv_fail *fail)
{
	const struct drv_endpoint *here = &engine->launch->endpoints[engine->endpoint];
	const char *address = press_client_address(here);

	node->connections.request = press_service_request;
	node->connections.gone = press_service_gone;
	node->connections.arg = node;
	node->connections.now_ns = drv_now_ns();
	if (press_loop_start(&node->loop) ||
	    press_connections_start(&node->connections, &node->loop, address))
		return drv_fail_set(fail, DRV_SYSTEM, "cannot listen for clients at %s: %s", address,
				    strerror(errno));
	node->helpers.fd = node->disk.event_fd;
	if (press_loop_add(&node->loop, &node->helpers, EPOLLIN))
		return drv_fail_set(fail, DRV_SYSTEM, "cannot watch the disk helpers: %s", strerror(errno));
	return 0;
}

/*
 * Memory that others write into, and that is written from. Pages are longer than files, and lie side by side: half as much
 * again as the cache may hold leaves room for both.
 */
static int start_memory(struct press_node *node, struct drv_engine *engine,
			const struct press_setting *setting, struct drv_fail *fail)
{
	const size_t pages_bytes = setting->cache_bytes + setting->cache_bytes / 2 + PRESS_FILE_BYTES_MAX;
	uint8_t *memory;

	if (setting->version >= PRESS_V3 && engine->region_memory.base &&
	    press_arena_start(&node->landings, engine->region_memory.base + PRESS_LANDING_AT,
			      PRESS_LANDING_BYTES))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for files that come");
	if (setting->version < PRESS_V5)
		return 0;
	memory = drv_pool_take(engine, DRV_POOL_RESPONDER, pages_bytes, fail);
	if (!memory)
		return -1;
	if (press_arena_start(&node->pages, memory, pages_bytes))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a cache of %zu bytes", pages_bytes);
	node->cache.arena = &node->pages;
	return 0;
}

int press_node_start(struct press_node *node, struct drv_engine *engine, const struct press_setting *setting,
		     struct drv_fail *fail)
{
	node->loop.epoll_fd = node->connections.listening.fd = node->layer.fd = -1;
	node->layer.ready = on_layer;
	node->helpers.ready = on_disk;
	if (engine->block && !(engine->offer.both.caps & CADGE_CAP_EVENT_FD))
		return drv_fail_set(fail, DRV_NO_WAIT,
				    "the layer has no descriptor that an event loop could hold (event_fd)");
	if ((setting->trace ? press_files_replay(&node->files, setting->trace, setting->seed)
			    : press_files_make(&node->files, setting->workload, setting->working_bytes,
					       setting->seed)) ||
	    press_cache_start(&node->cache, setting->cache_bytes, node->files.count) ||
	    press_directory_start(&node->directory, node->files.count, (uint32_t)engine->endpoint))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a site of %u files", node->files.count);
	node->cache.evicted = press_service_evicted;
	node->cache.arg = node;
	if (start_memory(node, engine, setting, fail))
		return -1;
	if (press_service_start(node))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u requests", PRESS_TASKS_MAX);
	if (setting->real_disk && press_storage_make(&node->storage, &node->files, fail))
		return -1;
	if (press_disk_start(&node->disk, &node->files, HELPERS, setting->service_ns,
			     setting->real_disk ? &node->storage : NULL))
		return drv_fail_set(fail, DRV_SYSTEM, "cannot start the disk helpers: %s", strerror(errno));
	if (start_outside(node, engine, fail))
		return -1;
	return press_links_start(&node->links, engine, setting->seed, setting->version, press_service_message,
				 node, fail);
}

void press_node_end(struct press_node *node)
{
	if (node->connections.loop)
		press_connections_end(&node->connections);
	if (node->disk.last)
		press_disk_end(&node->disk, press_service_drop);
	press_storage_free(&node->storage);
	if (node->links.port.engine)
		press_links_end(&node->links);
	press_service_end(node);
	press_directory_free(&node->directory);
	if (node->cache.entries)
		press_cache_free(&node->cache);
	press_arena_end(&node->pages);
	press_files_free(&node->files);
	press_loop_end(&node->loop);
}
