/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining the channels of a launch: addresses travel out of band, then every channel comes up; and taking them down. */
#include <stdio.h>
#include <string.h>

#include "threads/threads.h"
#include "engine/engine.h"
#include "base/text.h"
#include "measure/usage.h"

#define ADDRESS_ROOM_BYTES 4096u
#define KEY_ROOM_BYTES     4096u

/* What all threads of an endpoint share while they connect. */
struct setup {
	/* by thread: an array of addresses in hexadecimal, one a channel */
	json_t *own[DRV_THREADS_MAX];
	/* what all endpoints said */
	const json_t *all;
	uint64_t deadline_ns;
};

static int own_addresses(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	const struct drv_launch *launch = engine->launch;
	struct drv_end ends[DRV_PEERS_MAX];
	char hex[2 * ADDRESS_ROOM_BYTES + 1];
	uint8_t blob[ADDRESS_ROOM_BYTES];
	struct setup *setup = arg;
	json_t *list = json_array();

	memset(engine->channels, 0, sizeof(engine->channels));
	engine->up_count = 0;
	engine->channels_count = (uint32_t)drv_launch_channels(launch, (size_t)engine->endpoint,
							       engine->thread, ends, DRV_PEERS_MAX);
	setup->own[engine->thread] = list;
	for (uint32_t i = 0; i < engine->channels_count; i++) {
		size_t bytes = sizeof(blob);
		const int code = engine->layer->address(engine->ctx, i, blob, &bytes);

		engine->channels[i].endpoint = ends[i].endpoint;
		engine->channels[i].thread = ends[i].thread;
		if (code < 0)
			return drv_engine_fail("address", code, fail);
		if (bytes > sizeof(blob))
			return drv_fail_set(fail, DRV_LIBRARY, "the layer's address is longer than its room");
		drv_hex(blob, bytes, hex);
		if (json_array_append_new(list, json_string(hex)))
			return drv_fail_set(fail, DRV_MEMORY, "no memory for addresses");
	}
	return 0;
}

/* Bytes of a member of what another endpoint sent. 0, or -1 when they make no sense. */
static int take_bytes(const json_t *hex, uint8_t *out, size_t room_bytes, size_t *bytes_out)
{
	const char *text = json_string_value(hex);

	*bytes_out = text ? strlen(text) / 2 : 0;
	return text && *bytes_out <= room_bytes && !drv_unhex(text, out, *bytes_out) ? 0 : -1;
}

static int connect_all(struct drv_engine *engine, const json_t *all, struct drv_fail *fail)
{
	struct drv_end ends[DRV_PEERS_MAX];
	uint8_t blob[ADDRESS_ROOM_BYTES];

	drv_launch_channels(engine->launch, (size_t)engine->endpoint, engine->thread, ends, DRV_PEERS_MAX);
	for (uint32_t i = 0; i < engine->channels_count; i++) {
		const json_t *threads = json_object_get(json_array_get(all, ends[i].endpoint), "blobs");
		size_t bytes;
		int code;

		if (take_bytes(json_array_get(json_array_get(threads, ends[i].thread), ends[i].channel), blob,
			       sizeof(blob), &bytes))
			return drv_fail_set(fail, DRV_PROTOCOL, "endpoint %d sent an invalid address",
					    ends[i].endpoint);
		code = engine->layer->connect(engine->ctx, i, blob, bytes, &engine->channels[i].chan);
		if (code < 0)
			return drv_engine_fail("connect", code, fail);
	}
	return 0;
}

/* Whose fault it was, the layer's or the machine's: one that hardly ever had a processor could not connect. */
static int fail_late(const struct drv_engine *engine, const struct drv_usage *begun, struct drv_fail *fail)
{
	const uint32_t missing = engine->channels_count - engine->up_count;
	struct drv_usage now, since;

	drv_usage_read(&now);
	since = drv_usage_since(begun, &now);
	if (since.run_wait_ns < 0 || (uint64_t)since.run_wait_ns < since.wall_ns / 4)
		return drv_fail_set(fail, DRV_DEADLINE, "%u of %u channels did not connect in time", missing,
				    engine->channels_count);
	return drv_fail_set(
		fail, DRV_DEADLINE,
		"%u of %u channels did not connect in time, in which this thread waited %.1f s of "
		"%.1f s for a processor",
		missing, engine->channels_count, (double)since.run_wait_ns / 1e9,
		(double)since.wall_ns / 1e9);
}

/* One thread's channels, until all are up. */
static int connect_thread(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	const struct drv_idle *idle = drv_engine_idle(engine);
	const struct setup *setup = arg;
	struct drv_usage begun;

	drv_usage_read(&begun);
	if (connect_all(engine, setup->all, fail))
		return -1;
	while (engine->up_count < engine->channels_count) {
		if (idle->step(idle->arg, fail))
			return -1;
		if (drv_now_ns() >= setup->deadline_ns)
			return fail_late(engine, &begun, fail);
		if (drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), NULL, fail))
			return -1;
	}
	return 0;
}

/* A gather; at place self what we say is all. `mine` is taken over. */
static int gather(struct drv_engine *engine, const char *name, json_t *mine, uint64_t deadline_ns,
		  json_t **all_out, struct drv_fail *fail)
{
	const struct drv_idle *idle = drv_engine_idle(engine);
	int status = 0;

	if (engine->oob)
		status = drv_oob_gather(engine->oob, name, mine, idle, deadline_ns, all_out, fail);
	else if (!(*all_out = json_pack("[O]", mine)))
		status = drv_fail_set(fail, DRV_MEMORY, "no memory for a list");
	json_decref(mine);
	return status;
}

int drv_engine_connect(struct drv_engine *engine, uint64_t deadline_ns, struct drv_fail *fail)
{
	const struct drv_idle *idle = drv_engine_idle(engine);
	struct setup setup = {.deadline_ns = deadline_ns};
	json_t *blobs = json_array(), *all;
	int status = drv_threads_all(engine, own_addresses, &setup, fail);

	for (size_t t = 0; t <= drv_threads_size(engine); t++)
		if (json_array_append_new(blobs, setup.own[t]) && !status)
			status = drv_fail_set(fail, DRV_MEMORY, "no memory for addresses");
	if (status) {
		json_decref(blobs);
		return -1;
	}
	if (gather(engine, "address", json_pack("{s:o}", "blobs", blobs), deadline_ns, &all, fail))
		return -1;
	setup.all = all;
	status = drv_threads_all(engine, connect_thread, &setup, fail);
	json_decref(all);
	if (status)
		return -1;
	return engine->oob ? drv_oob_barrier(engine->oob, "up", idle, deadline_ns, fail) : 0;
}

static int expose(struct drv_engine *engine, uint64_t bytes, uint8_t *key, size_t *key_bytes,
		  struct drv_fail *fail)
{
	int code;

	if (drv_memory_make(engine, (size_t)bytes, &engine->region_memory, fail))
		return -1;
	code = engine->layer->expose(engine->ctx, engine->region_memory.base, engine->region_memory.bytes,
				     CADGE_MAY_ALL, CADGE_ALL_PEERS, 0, key, key_bytes, &engine->region);
	if (code >= 0 && *key_bytes <= KEY_ROOM_BYTES)
		return 0;
	drv_memory_free(engine, &engine->region_memory);
	return code < 0 ? drv_engine_fail("expose", code, fail)
			: drv_fail_set(fail, DRV_LIBRARY, "the layer's key is longer than its room");
}

static int attach_all(struct drv_engine *engine, const json_t *all, struct drv_fail *fail)
{
	uint8_t key[KEY_ROOM_BYTES];

	for (uint32_t i = 0; i < engine->channels_count; i++) {
		struct drv_channel *channel = &engine->channels[i];
		const json_t *hex = json_object_get(json_array_get(all, (size_t)channel->endpoint), "key");
		size_t bytes;
		int code;

		if (!json_string_length(hex))
			continue;
		if (take_bytes(hex, key, sizeof(key), &bytes))
			return drv_fail_set(fail, DRV_PROTOCOL, "endpoint %d sent an invalid key",
					    channel->endpoint);
		code = engine->layer->attach(channel->chan, key, bytes, CADGE_MAY_ALL, 0, &channel->remote);
		if (code < 0)
			return drv_engine_fail("attach", code, fail);
	}
	return 0;
}

int drv_engine_regions(struct drv_engine *engine, uint64_t bytes, bool exposes, bool attaches,
		       uint64_t deadline_ns, struct drv_fail *fail)
{
	char hex[2 * KEY_ROOM_BYTES + 1] = "";
	uint8_t key[KEY_ROOM_BYTES];
	size_t key_bytes = sizeof(key);
	json_t *all;
	int status;

	if (!bytes)
		return 0;
	if (exposes) {
		if (expose(engine, bytes, key, &key_bytes, fail))
			return -1;
		drv_hex(key, key_bytes, hex);
	}
	if (gather(engine, "region", json_pack("{s:s}", "key", hex), deadline_ns, &all, fail))
		return -1;
	status = attaches ? attach_all(engine, all, fail) : 0;
	json_decref(all);
	return status;
}

static void release_regions(struct drv_engine *engine)
{
	for (uint32_t i = 0; i < engine->channels_count; i++)
		if (engine->channels[i].remote)
			engine->layer->detach(engine->channels[i].chan, engine->channels[i].remote);
	if (engine->region)
		engine->layer->unexpose(engine->ctx, engine->region);
	engine->region = NULL;
	drv_memory_free(engine, &engine->region_memory);
}

static int close_thread(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	(void)arg, (void)fail;
	release_regions(engine);
	for (int pool = 0; pool < DRV_POOLS; pool++)
		drv_memory_free(engine, &engine->pools[pool]);
	for (uint32_t i = 0; i < engine->channels_count; i++)
		if (engine->channels[i].chan &&
		    engine->layer->disconnect(engine->ctx, engine->channels[i].chan) < 0)
			fprintf(stderr, "cadge: the layer's disconnect failed\n");
	engine->channels_count = 0;
	if (engine->ctx)
		engine->layer->close(engine->ctx);
	engine->ctx = NULL;
	return 0;
}

void drv_engine_close(struct drv_engine *engine)
{
	struct drv_fail ignored;

	drv_threads_all(engine, close_thread, NULL, &ignored);
	drv_threads_end(engine);
}
