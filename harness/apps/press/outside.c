/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/outside.h"

#include <string.h>

#include "press/http/dial.h"

#define WAIT_NS UINT64_C(10000000)

static int lack_memory(struct drv_fail *fail)
{
	return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
}

/* The port of another node, or a question of the client, endpoint 0. */
static void on_message(void *arg, uint32_t endpoint, const struct press_message *head, const void *content,
		       size_t bytes)
{
	struct press_outside *outside = arg;

	(void)content, (void)bytes;
	if (endpoint == 0) {
		outside->asks_where |= head->type == PRESS_HELLO;
		outside->asks_counts |= head->type == PRESS_STATS;
		return;
	}
	if (head->type != PRESS_HELLO)
		return;
	if (head->tag != press_files_digest(&outside->files)) {
		outside->failed = true;
		drv_fail_set(&outside->fail, DRV_PROTOCOL, "node %u has other files than node %u", endpoint,
			     outside->owners[outside->self].endpoint);
	}
	for (uint32_t i = 0; i < outside->owners_count; i++)
		if (outside->owners[i].endpoint == endpoint)
			outside->owners[i].port = (uint16_t)head->offset;
}

/* Tells every other node where its nginx has to ask ours. */
static int announce(struct press_outside *outside, struct drv_fail *fail)
{
	const struct press_message hello = {.type = PRESS_HELLO,
					    .offset = outside->nginx.ports[PRESS_NGINX_BACK],
					    .tag = press_files_digest(&outside->files)};

	for (uint32_t i = 0; i < outside->owners_count; i++)
		if (i != outside->self &&
		    press_links_send(&outside->links, outside->owners[i].endpoint, &hello))
			return lack_memory(fail);
	outside->announced = true;
	return 0;
}

static bool knows_all(const struct press_outside *outside)
{
	for (uint32_t i = 0; i < outside->owners_count; i++)
		if (!outside->owners[i].port)
			return false;
	return true;
}

static int start_nginx(struct press_outside *outside, struct drv_fail *fail)
{
	const struct drv_engine *engine = outside->links.port.engine;
	const char *names[PRESS_NODES_MAX];

	for (uint32_t i = 0; i < outside->owners_count; i++) {
		struct press_owner *owner = &outside->owners[i];

		press_nginx_name(owner->name, press_node_address(&engine->launch->endpoints[owner->endpoint]),
				 owner->port);
		names[i] = owner->name;
	}
	return press_nginx_start(&outside->nginx, &outside->files, names, outside->self,
				 outside->owners_count, outside->connections, fail);
}

static int answer_client(struct press_outside *outside, struct drv_fail *fail)
{
	const struct press_message hello = {.type = PRESS_HELLO,
					    .offset = outside->nginx.ports[PRESS_NGINX_FRONT],
					    .tag = press_files_digest(&outside->files)};

	if (outside->asks_where && outside->nginx.pid) {
		outside->asks_where = false;
		if (press_links_send(&outside->links, 0, &hello))
			return lack_memory(fail);
	}
	if (outside->asks_counts) {
		outside->asks_counts = false;
		if (press_nginx_requests(&outside->nginx, &outside->links.counts[PRESS_REQUESTS], fail))
			return -1;
		if (press_links_stats(&outside->links, 0))
			return lack_memory(fail);
	}
	return 0;
}

/* What there is to do: nothing as a rule. */
static int work(struct press_outside *outside, struct drv_fail *fail)
{
	if (outside->failed) {
		*fail = outside->fail;
		return -1;
	}
	if (outside->asks_where && !outside->announced && announce(outside, fail))
		return -1;
	if (outside->announced && !outside->nginx.pid && knows_all(outside) && start_nginx(outside, fail))
		return -1;
	return answer_client(outside, fail) || press_nginx_check(&outside->nginx, fail) ? -1 : 0;
}

int press_outside_serve(struct press_outside *outside, json_t **message_out, struct drv_fail *fail)
{
	struct drv_engine *engine = outside->links.port.engine;

	for (;;) {
		const int events = press_links_turn(&outside->links, fail);
		int status;

		if (events < 0 || work(outside, fail))
			return -1;
		if (events > 0)
			continue;
		status = drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), message_out, fail);
		if (status)
			return status < 0 ? -1 : 0;
		if (drv_engine_wait(engine, WAIT_NS, fail))
			return -1;
	}
}

int press_outside_start(struct press_outside *outside, struct drv_engine *engine,
			const struct press_outside_setting *setting, struct drv_fail *fail)
{
	const uint32_t self = (uint32_t)engine->endpoint;

	outside->connections = (uint32_t)setting->connections;
	for (int door = 0; door < PRESS_NGINX_DOORS; door++)
		outside->nginx.reserved[door] = -1;
	if (!engine->block)
		return drv_fail_set(fail, DRV_NO_WAIT,
				    "nginx sleeps when nobody asks it anything: block mode alone");
	if (setting->trace ? press_files_replay(&outside->files, setting->trace, setting->seed)
			   : press_files_make(&outside->files, setting->workload, setting->working_bytes,
					      setting->seed))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a site of %u files",
				    outside->files.count);
	/* every endpoint but the client, which all nodes have in one order */
	for (uint32_t e = 1; e < engine->launch->endpoints_count; e++) {
		if (e == self)
			outside->self = outside->owners_count;
		outside->owners[outside->owners_count++].endpoint = e;
	}
	if (press_nginx_prepare(&outside->nginx, &engine->launch->endpoints[self], fail) ||
	    press_links_start(&outside->links, engine, setting->seed, PRESS_V0, on_message, outside, fail))
		return -1;
	outside->owners[outside->self].port = outside->nginx.ports[PRESS_NGINX_BACK];
	return 0;
}

void press_outside_end(struct press_outside *outside)
{
	press_nginx_end(&outside->nginx);
	if (outside->links.port.engine)
		press_links_end(&outside->links);
	press_files_free(&outside->files);
}
