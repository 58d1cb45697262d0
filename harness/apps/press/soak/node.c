/* SPDX-License-Identifier: BSD-3-Clause */
/* One node: what the driver does for it in a launch, but that others may die, and that it meets them again. */
#include "press/node.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "press/soak/plan.h"
#include "press/soak/control.h"
#include "traffic/payload.h"

#define BLOB_BYTES 4000u

struct member {
	/* first: callbacks get a pointer to it */
	struct press_node node;
	struct press_watch control;
	struct drv_launch launch;
	struct drv_engine engine;
	/* by node: the session that was last reported to it */
	uint64_t sessions[PRESS_NODES_MAX];
	/* of our region; and by node that of theirs, until the channel is up */
	struct blob {
		uint32_t bytes;
		uint8_t content[BLOB_BYTES];
	} key, keys[PRESS_NODES_MAX];
	bool control_ready;
	/* rung when it is to stop */
	_Atomic unsigned stop;
};

static void send_control(uint32_t kind, uint32_t peer, uint64_t session, const void *content, size_t bytes)
{
	struct soak_control message = {
		.kind = kind, .peer = peer, .session = session, .bytes = (uint32_t)bytes};

	if (bytes)
		memcpy(message.content, content, bytes);
	/* without a supervisor there is nothing to be done */
	if (soak_send(SOAK_CONTROL_FD, &message, 0))
		_exit(1);
}

static void send_reason(uint32_t kind, const struct drv_fail *fail)
{
	send_control(kind, 0, 0, fail->text, strlen(fail->text) + 1);
}

static void fail_node(struct press_node *node, const struct drv_fail *fail)
{
	if (!node->failed)
		node->fail = *fail;
	node->failed = true;
}

/* ---- other nodes ---- */

/* The layer says that a peer is down. */
static void on_lost(void *arg, uint32_t endpoint)
{
	struct member *member = arg;
	const struct cadge_layer *layer = member->engine.layer;
	const char *why = layer->caps & CADGE_CAP_WHY ? layer->why(member->engine.ctx) : "it gives no reason";
	char text[200];

	snprintf(text, sizeof(text), "%s", why);
	press_service_lost(&member->node, endpoint);
	send_control(SOAK_DOWN, endpoint, member->sessions[endpoint], text, strlen(text) + 1);
}

static uint32_t channel_to(const struct member *member, uint32_t endpoint)
{
	return endpoint < member->node.directory.self ? endpoint - 1 : endpoint - 2;
}

static void offer_address(struct member *member, uint32_t endpoint, uint64_t session)
{
	struct drv_engine *engine = &member->engine;
	/* how long our key is, the key, and the address */
	uint8_t offer[sizeof(uint32_t) + 2 * BLOB_BYTES];
	const size_t at = sizeof(uint32_t) + member->key.bytes;
	size_t bytes = BLOB_BYTES;
	struct drv_fail fail;
	int code;

	press_service_lost(&member->node, endpoint);
	member->sessions[endpoint] = session;
	code = engine->layer->address(engine->ctx, channel_to(member, endpoint), offer + at, &bytes);
	if (code >= 0) {
		memcpy(offer, &member->key.bytes, sizeof(uint32_t));
		memcpy(offer + sizeof(uint32_t), member->key.content, member->key.bytes);
		send_control(SOAK_OFFER, endpoint, session, offer, at + bytes);
	} else {
		drv_engine_fail("address", code, &fail);
		fail_node(&member->node, &fail);
	}
}

static void connect_peer(struct member *member, const struct soak_control *message)
{
	struct blob *key = &member->keys[message->peer];
	const uint8_t *content = message->content + sizeof(uint32_t);
	struct drv_fail fail;
	uint32_t bytes;

	/* of a session that will not be, for the peer died again */
	if (message->session != member->sessions[message->peer])
		return;
	memcpy(&bytes, message->content, sizeof(bytes));
	key->bytes = bytes < sizeof(key->content) ? bytes : 0;
	memcpy(key->content, content, key->bytes);
	if (!press_service_connect(&member->node, message->peer, message->session, content + bytes,
				   message->bytes - sizeof(uint32_t) - bytes, &fail))
		return;
	if (fail.reason == DRV_PEER_LOST)
		send_control(SOAK_DOWN, message->peer, message->session, NULL, 0);
	else
		fail_node(&member->node, &fail);
}

/* The regions of those whose channel has come up. */
static void attach_all(struct member *member)
{
	const struct press_links *links = &member->node.links;
	struct drv_fail fail;

	for (uint32_t i = 0; i < links->count; i++) {
		const struct press_link *link = &links->links[i];
		const struct blob *key = &member->keys[link->endpoint];

		if (!link->lost && link->waits && !link->down && member->engine.channels[i].up &&
		    press_links_attach(&member->node.links, link->endpoint, key->content, key->bytes,
				       &fail) &&
		    fail.reason != DRV_PEER_LOST)
			fail_node(&member->node, &fail);
	}
}

/* ---- how it is ---- */

static void report_cache(const struct press_cache *cache, struct soak_report *report)
{
	for (const struct press_entry *entry = cache->oldest; entry; entry = entry->newer) {
		report->pins += entry->pins;
		report->files += entry->whole;
		report->cache_heap_bytes += malloc_usable_size((void *)entry) + sizeof(size_t);
	}
	report->cache_bytes = cache->bytes;
}

static uint64_t holds(const struct press_directory *directory, uint32_t endpoint)
{
	uint64_t digest = 0;

	for (uint32_t file = 0; file < directory->files; file++)
		if (directory->holders[file] >> endpoint & 1)
			digest = drv_mix(digest, file + 1);
	return digest;
}

static void send_report(struct member *member)
{
	const struct press_node *node = &member->node;
	struct soak_report report = {.heap_bytes = mallinfo2().uordblks + mallinfo2().hblkhd,
				     .in_flight = node->links.in_flight,
				     .load = node->links.load,
				     .connections = node->connections.open};

	for (uint32_t i = 0; i < PRESS_TASKS_MAX; i++)
		report.tasks += node->tasks[i].used;
	for (uint32_t i = 0; node->landings.base && i < node->landings.pages; i++)
		report.rooms += node->landings.taken[i] != 0;
	for (uint32_t i = 0; i < node->links.count; i++) {
		const struct press_link *link = &node->links.links[i];

		report.queues += link->first != NULL;
		if (member->engine.channels[i].up && !link->waits)
			report.sessions[link->endpoint] = member->sessions[link->endpoint];
		report.holds[link->endpoint] = holds(&node->directory, link->endpoint);
	}
	report.holds[node->directory.self] = holds(&node->directory, node->directory.self);
	memcpy(report.counts, node->links.counts, sizeof(report.counts));
	report_cache(&node->cache, &report);
	send_control(SOAK_REPORT, 0, 0, &report, sizeof(report));
}

/* ---- the supervisor ---- */

static void on_control(struct press_watch *watch, uint32_t events)
{
	struct member *member = (struct member *)((char *)watch - offsetof(struct member, control));

	(void)events;
	member->control_ready = true;
}

/* Not in the loop's turn itself: who loses a node answers clients, any of whom may be the next in that turn. */
static void receive_control(struct press_node *node)
{
	struct member *member = (struct member *)node;
	struct soak_control message;
	int received;

	attach_all(member);
	if (!member->control_ready)
		return;
	member->control_ready = false;
	while ((received = soak_receive(SOAK_CONTROL_FD, &message)) > 0) {
		if (message.kind == SOAK_GONE)
			press_service_lost(node, message.peer);
		else if (message.kind == SOAK_BACK)
			offer_address(member, message.peer, message.session);
		else if (message.kind == SOAK_ADDRESS)
			connect_peer(member, &message);
		else if (message.kind == SOAK_QUERY)
			send_report(member);
		else if (message.kind == SOAK_STOP)
			member->stop = 1;
	}
	if (received < 0)
		_exit(1);
}

/* ---- life ---- */

static void make_launch(struct member *member, const struct soak_plan *plan)
{
	static struct drv_endpoint endpoints[PRESS_NODES_MAX];
	static char loopback[] = "";
	struct drv_endpoint *here = &endpoints[plan->number];

	for (uint32_t i = 0; i <= plan->nodes; i++)
		endpoints[i] = (struct drv_endpoint){.device = (char *)(uintptr_t)plan->device,
						     .address = (char *)(uintptr_t)plan->address,
						     .raw_device = loopback};
	for (uint32_t i = 1; i <= plan->nodes; i++)
		if (i != plan->number)
			here->peers[here->peers_count++] = (uint8_t)i;
	member->launch = (struct drv_launch){.place = plan->place,
					     .wait = DRV_WAIT_BLOCK,
					     .endpoints = endpoints,
					     .endpoints_count = plan->nodes + 1};
}

/* What a layer must be able to do here, besides what the node itself asks for. */
static int check_table(const struct cadge_layer *layer, const struct soak_plan *plan, struct drv_fail *fail)
{
	if (layer->caps & CADGE_CAP_ONE_INIT)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "its library starts once, for processes that begin and end "
				    "together: none can come back");
	if (!(layer->caps & CADGE_CAP_RELIABLE))
		return drv_fail_set(fail, DRV_NO_CAP,
				    "it loses messages, for which nodes would wait for ever");
	if (!(layer->caps & CADGE_CAP_EVENT_FD))
		return drv_fail_set(fail, DRV_NO_WAIT,
				    "it has no descriptor that an event loop could hold (event_fd)");
	if (plan->version && !(layer->caps & CADGE_CAP_PUT))
		return drv_fail_set(fail, DRV_NO_CAP, "it has no remote writes (put)");
	return drv_negotiate_launch(plan->place, DRV_WAIT_BLOCK, layer->caps, fail);
}

static int open_layer(struct member *member, const struct soak_plan *plan, struct drv_fail *fail)
{
	struct drv_engine *engine = &member->engine;

	if (drv_loader_load(plan->modules, plan->layer, NULL, &engine->loaded, fail) ||
	    check_table(engine->loaded.layer, plan, fail))
		return -1;
	engine->layer = engine->loaded.layer;
	engine->launch = &member->launch;
	engine->endpoint = (int)plan->number;
	engine->block = true;
	engine->deadline = engine->launch_deadline_ns = UINT64_MAX;
	engine->awaited_count = &member->stop;
	engine->awaited_at = 1;
	drv_clock_start(&engine->clock, true);
	press_links_need(plan->version, &engine->needs);
	if (drv_engine_open(engine, fail))
		return -1;
	drv_ability_read(engine->layer, engine->ctx, &engine->offer.both);
	engine->offer.place = plan->place;
	if (engine->needs.depth > engine->offer.both.depth_max)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP, "it takes no more than %u operations at a time",
				    engine->offer.both.depth_max);
	if (drv_negotiate_message(PRESS_MESSAGE_BYTES, "message", &engine->offer.both, fail))
		return -1;
	for (uint32_t i = 1; i <= plan->nodes; i++)
		if (i != plan->number)
			engine->channels[engine->channels_count++].endpoint = (int)i;
	return 0;
}

/* What others write into: as the driver has it. */
static int expose(struct member *member, struct drv_fail *fail)
{
	struct drv_engine *engine = &member->engine;
	size_t bytes = sizeof(member->key.content);
	int code;

	if (!engine->needs.region_bytes)
		return 0;
	if (drv_memory_make(engine, (size_t)engine->needs.region_bytes, &engine->region_memory, fail))
		return -1;
	code = engine->layer->expose(engine->ctx, engine->region_memory.base, engine->region_memory.bytes,
				     CADGE_MAY_ALL, CADGE_ALL_PEERS, 0, member->key.content, &bytes,
				     &engine->region);
	member->key.bytes = (uint32_t)bytes;
	return code < 0 ? drv_engine_fail("expose", code, fail) : 0;
}

static int start(struct member *member, const struct soak_plan *plan, struct drv_fail *fail)
{
	const struct press_setting setting = {.workload = PRESS_CLARKNET,
					      .version = plan->version,
					      .cache_bytes = plan->cache_bytes,
					      .working_bytes = plan->working_bytes,
					      .service_ns = plan->service_ns,
					      .seed = plan->seed};
	struct press_node *node = &member->node;

	make_launch(member, plan);
	if (open_layer(member, plan, fail) || expose(member, fail) ||
	    press_node_start(node, &member->engine, &setting, fail))
		return -1;
	press_links_survive(&node->links, on_lost);
	node->turned = receive_control;
	/* no channel is there yet */
	for (uint32_t i = 1; i <= plan->nodes; i++)
		if (i != plan->number)
			press_service_lost(node, i);
	member->control = (struct press_watch){.fd = SOAK_CONTROL_FD, .ready = on_control};
	if (press_loop_add(&node->loop, &member->control, EPOLLIN))
		return drv_fail_set(fail, DRV_SYSTEM, "cannot watch the supervisor's words");
	return 0;
}

int soak_node(const struct soak_plan *plan)
{
	struct member *member = calloc(1, sizeof(*member));
	struct drv_fail fail = {0};
	json_t *message = NULL;
	int status = -1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!member)
		return 1;
	member->node.loop.epoll_fd = -1;
	if (start(member, plan, &fail)) {
		send_reason(drv_reason_is_refusal(fail.reason) ? SOAK_REFUSED : SOAK_FAILED, &fail);
	} else {
		send_control(SOAK_READY, member->node.connections.port, 0, NULL, 0);
		status = press_node_serve(&member->node, &message, &fail);
		if (status)
			send_reason(SOAK_FAILED, &fail);
	}
	json_decref(message);
	press_node_end(&member->node);
	drv_engine_close(&member->engine);
	free(member);
	return status ? 1 : 0;
}
