/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cadge/check.h"
#include "text.h"

#define ADDRESS_ROOM_BYTES 4096u
#define IDLE_WAIT_NS       UINT64_C(200000)

static void on_up(struct cadge_sink *sink, uint32_t peer)
{
	(void)peer;
	((struct drv_port *)sink)->engine->up = true;
}

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	struct drv_engine *engine = ((struct drv_port *)sink)->engine;

	(void)peer;
	engine->up = false;
	engine->down_code = code ? code : CADGE_E_DOWN;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	(void)sink, (void)peer, (void)data, (void)bytes, (void)lend;
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	(void)sink, (void)peer, (void)token, (void)code;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	(void)sink, (void)peer, (void)op, (void)args, (void)bytes, (void)reply_to;
}

static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	(void)sink, (void)peer, (void)token, (void)code, (void)placement, (void)data, (void)bytes, (void)lend;
	return CADGE_TAKEN;
}

void drv_port_start(struct drv_port *port, struct drv_engine *engine)
{
	port->sink = (struct cadge_sink){on_up, on_down, on_recv, on_sent, on_call, on_replied};
	port->engine = engine;
}

int drv_engine_fail(const char *what, int code, struct drv_fail *fail)
{
	enum drv_reason reason = DRV_LIBRARY;

	if (code == CADGE_E_DOWN)
		reason = DRV_PEER_LOST;
	else if (code == CADGE_E_MEMORY)
		reason = DRV_MEMORY;
	else if (code == CADGE_E_PERMISSION)
		reason = DRV_PERMISSION;
	return drv_fail_set(fail, reason, "the layer's %s failed: %s (%d)", what, cadge_code_name(code),
			    code);
}

uint64_t drv_engine_allow(struct drv_engine *engine, uint64_t span_ns)
{
	const uint64_t now_ns = drv_now_ns();
	uint64_t left_ns = 0;

	if (engine->launch_deadline_ns > now_ns)
		left_ns = engine->launch_deadline_ns - now_ns;
	if (left_ns > span_ns)
		left_ns = span_ns;
	engine->deadline = drv_clock_now(&engine->clock) + drv_clock_to_ticks(&engine->clock, left_ns);
	return now_ns + left_ns;
}

int drv_engine_explain(struct drv_engine *engine, struct drv_fail *fail)
{
	const uint64_t until_ns = drv_now_ns() + UINT64_C(500000000);
	struct drv_fail peer = {0};

	engine->broken = true;
	while (engine->oob && drv_now_ns() < until_ns) {
		const struct timespec pause = {.tv_nsec = 1000000};

		if (drv_oob_peek(engine->oob, &peer)) {
			*fail = peer;
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return drv_fail_set(fail, DRV_LIBRARY,
			    "the layer lost its peer (%s) although the other endpoint lives",
			    cadge_code_name(engine->down_code ? engine->down_code : CADGE_E_DOWN));
}

int drv_engine_look(struct drv_engine *engine, uint64_t now, json_t **message_out, struct drv_fail *fail)
{
	int status = 0;

	if (DRV_UNLIKELY(engine->down_code))
		return drv_engine_explain(engine, fail);
	if (DRV_UNLIKELY(drv_stop_signal))
		return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
	if (engine->oob && now >= engine->oob_next) {
		status = message_out ? drv_oob_try(engine->oob, message_out, fail)
				     : drv_oob_peek(engine->oob, fail);
		engine->oob_next = now + engine->oob_period;
	}
	if (status == 0 && now >= engine->deadline)
		return drv_fail_set(fail, DRV_DEADLINE, "the deadline of this step passed");
	return status;
}

static int idle_step(void *arg, struct drv_fail *fail)
{
	struct drv_engine *engine = arg;
	const int events = engine->layer->poll(engine->ctx, engine->sink);

	if (events < 0)
		return drv_engine_fail("poll", events, fail);
	if (events == 0 && engine->block)
		return drv_engine_wait(engine, IDLE_WAIT_NS, fail);
	return 0;
}

struct drv_idle drv_engine_idle(struct drv_engine *engine)
{
	return (struct drv_idle){.step = idle_step, .arg = engine};
}

/* The largest of everything that the launch's points will ask for. */
static void size_up(const struct drv_launch *launch, struct cadge_open_args *args)
{
	args->message_bytes_max = DRV_CONTROL_BYTES;
	args->depth_max = 1;
	for (size_t i = 0; i < launch->points_count; i++) {
		const struct drv_point *point = &launch->points[i];
		const uint64_t larger =
			point->request_bytes > point->reply_bytes ? point->request_bytes : point->reply_bytes;
		const uint64_t message = point->pattern == DRV_RPC ? larger + DRV_RPC_HEADER_BYTES : larger;
		const uint64_t region =
			drv_memory_stride(point->request_bytes) * drv_region_slots(point->depth);

		if (point->depth > args->depth_max)
			args->depth_max = point->depth;
		if (point->pattern != DRV_ONESIDED && message > args->message_bytes_max)
			args->message_bytes_max = message;
		if (point->pattern == DRV_ONESIDED && region > args->region_bytes_max)
			args->region_bytes_max = region;
	}
}

/* What a code of open means for the launch. */
static enum drv_reason open_reason(int code, const struct drv_engine *engine)
{
	switch (code) {
	case CADGE_E_UNSUPPORTED: return engine->block ? DRV_NO_WAIT : DRV_NO_CAP;
	case CADGE_E_TRANSPORT: return DRV_TRANSPORT;
	case CADGE_E_PORT: return DRV_PORT;
	case CADGE_E_MEMORY: return DRV_MEMORY;
	case CADGE_E_PERMISSION: return DRV_PERMISSION;
	case CADGE_E_ABSENT: return DRV_NODE_LACKS;
	case CADGE_E_TOO_LARGE: return DRV_MSG_TOO_LARGE;
	case CADGE_E_ARGUMENT: return DRV_ARGUMENT;
	default: return DRV_LIBRARY;
	}
}

int drv_engine_open(struct drv_engine *engine, struct drv_fail *fail)
{
	const struct drv_launch *launch = engine->launch;
	const struct drv_endpoint *here = &launch->endpoints[engine->endpoint];
	/* a shim's own table claims whatever a layer under it could */
	const struct cadge_layer *wrapped = drv_loaded_adapter(&engine->loaded);
	struct cadge_setting *settings = calloc(launch->settings_count + 1, sizeof(*settings));
	char error[400] = "";
	struct cadge_open_args args = {
		.bytes = sizeof(args),
		.place = (enum cadge_place)launch->place,
		.wait_mode = (enum cadge_wait_mode)launch->wait,
		.device = here->device,
		.address = here->address,
		.port_first = launch->port_first,
		.port_last = launch->port_last,
		.peers_max = 1,
		.settings = settings,
		.settings_count = launch->settings_count,
		.inner = engine->loaded.inner,
		.error = error,
		.error_bytes = sizeof(error),
	};
	int code;

	if (!settings)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the settings");
	if ((wrapped->caps & CADGE_CAP_RAW_LINK) && here->raw_device) {
		args.device = here->raw_device;
		if (!*here->raw_device) {
			free(settings);
			return drv_fail_set(fail, DRV_TRANSPORT, "the testbed has no link for raw frames");
		}
	}
	for (size_t i = 0; i < launch->settings_count; i++) {
		settings[i].name = launch->settings[i].name;
		settings[i].value = launch->settings[i].value;
	}
	size_up(launch, &args);
	code = engine->layer->open(&args, &engine->ctx);
	free(settings);
	if (code == CADGE_DONE)
		return 0;
	error[sizeof(error) - 1] = '\0';
	engine->ctx = NULL;
	return drv_fail_set(fail, open_reason(code, engine), "the layer cannot be opened: %s (%s)",
			    error[0] ? error : "it gave no reason", cadge_code_name(code));
}

/* Sends our address and receives the peer's; at place self our own is both. */
static int exchange_address(struct drv_engine *engine, uint8_t *blob, size_t *blob_bytes,
			    uint64_t deadline_ns, struct drv_fail *fail)
{
	const struct drv_idle idle = drv_engine_idle(engine);
	char hex[2 * ADDRESS_ROOM_BYTES + 1];
	json_t *mine, *theirs;
	const char *text;
	int code, status;

	*blob_bytes = ADDRESS_ROOM_BYTES;
	code = engine->layer->address(engine->ctx, 0, blob, blob_bytes);
	if (code < 0)
		return drv_engine_fail("address", code, fail);
	if (*blob_bytes > ADDRESS_ROOM_BYTES)
		return drv_fail_set(fail, DRV_LIBRARY, "the layer's address is longer than its room");
	if (engine->self)
		return 0;
	drv_hex(blob, *blob_bytes, hex);
	mine = json_pack("{s:s, s:s}", "m", "address", "blob", hex);
	if (!mine)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	status = drv_oob_exchange(engine->oob, "address", mine, &idle, deadline_ns, &theirs, fail);
	json_decref(mine);
	if (status)
		return -1;
	text = json_string_value(json_object_get(theirs, "blob"));
	*blob_bytes = text ? strlen(text) / 2 : 0;
	if (!text || *blob_bytes > ADDRESS_ROOM_BYTES || drv_unhex(text, blob, *blob_bytes))
		status = drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint sent an address that is none");
	json_decref(theirs);
	return status;
}

int drv_engine_connect(struct drv_engine *engine, uint64_t deadline_ns, struct drv_fail *fail)
{
	const struct drv_idle idle = drv_engine_idle(engine);
	uint8_t blob[ADDRESS_ROOM_BYTES];
	size_t blob_bytes;
	int code;

	if (exchange_address(engine, blob, &blob_bytes, deadline_ns, fail))
		return -1;
	code = engine->layer->connect(engine->ctx, 0, blob, blob_bytes, &engine->chan);
	if (code < 0)
		return drv_engine_fail("connect", code, fail);
	while (!engine->up) {
		if (idle_step(engine, fail))
			return -1;
		if (drv_now_ns() >= deadline_ns)
			return drv_fail_set(fail, DRV_DEADLINE, "the layer did not connect in time");
		if (drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail))
			return -1;
	}
	return engine->self ? 0 : drv_oob_barrier(engine->oob, "up", &idle, deadline_ns, fail);
}

void drv_engine_close(struct drv_engine *engine)
{
	for (int pool = 0; pool < DRV_POOLS; pool++)
		drv_memory_free(engine, &engine->pools[pool]);
	if (engine->chan && engine->layer->disconnect(engine->ctx, engine->chan) < 0)
		fprintf(stderr, "cadge: the layer's disconnect failed\n");
	engine->chan = NULL;
	if (engine->ctx)
		engine->layer->close(engine->ctx);
	engine->ctx = NULL;
}

int drv_memory_make(struct drv_engine *engine, size_t bytes, struct drv_memory *memory_out,
		    struct drv_fail *fail)
{
	struct drv_memory memory = {.bytes = (bytes + 4095) / 4096 * 4096};
	int code;

	if (engine->both.caps & CADGE_CAP_MEM_ALLOC) {
		memory.base = engine->layer->mem_alloc(engine->ctx, memory.bytes);
		memory.from_layer = memory.base != NULL;
		if (!memory.base)
			return drv_fail_set(fail, DRV_MEMORY, "the layer has no %zu bytes for buffers",
					    memory.bytes);
	} else {
		void *base = mmap(NULL, memory.bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (base == MAP_FAILED)
			return drv_fail_set(fail, DRV_MEMORY, "no %zu bytes for buffers: %s", memory.bytes,
					    strerror(errno));
		memory.base = base;
	}
	memset(memory.base, 0, memory.bytes);
	if (engine->both.caps & CADGE_CAP_MEM_REG) {
		code = engine->layer->mem_reg(engine->ctx, memory.base, memory.bytes);
		if (code < 0) {
			drv_memory_free(engine, &memory);
			return drv_engine_fail("mem_reg", code, fail);
		}
		memory.registered = true;
	}
	*memory_out = memory;
	return 0;
}

void drv_memory_free(struct drv_engine *engine, struct drv_memory *memory)
{
	if (!memory->base)
		return;
	if (memory->registered && engine->layer->mem_dereg(engine->ctx, memory->base, memory->bytes) < 0)
		fprintf(stderr, "cadge: the layer's mem_dereg failed\n");
	if (memory->from_layer)
		engine->layer->mem_free(engine->ctx, memory->base, memory->bytes);
	else if (munmap(memory->base, memory->bytes))
		fprintf(stderr, "cadge: munmap failed: %s\n", strerror(errno));
	memset(memory, 0, sizeof(*memory));
}

uint8_t *drv_pool_take(struct drv_engine *engine, enum drv_pool pool, size_t bytes, struct drv_fail *fail)
{
	struct drv_memory *memory = &engine->pools[pool];

	if (memory->bytes < bytes) {
		drv_memory_free(engine, memory);
		if (drv_memory_make(engine, bytes, memory, fail))
			return NULL;
	}
	return memory->base;
}
