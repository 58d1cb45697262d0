/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a layer, the state of its channels, and what every loop does while nothing happens. */
#include "engine/engine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cadge/check.h"
#include "engine/in_place.h"

#define IDLE_WAIT_NS UINT64_C(200000)
/* a host that is short of processor time needs a while to end a process that was killed */
#define EXPLAIN_NS UINT64_C(2000000000)

static void on_up(struct cadge_sink *sink, uint32_t peer)
{
	struct drv_engine *engine = ((struct drv_port *)sink)->engine;

	if (peer < engine->channels_count && !engine->channels[peer].up) {
		engine->channels[peer].up = true;
		engine->up_count++;
	}
}

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	struct drv_engine *engine = ((struct drv_port *)sink)->engine;

	if (peer < engine->channels_count && engine->channels[peer].up) {
		engine->channels[peer].up = false;
		engine->up_count--;
	}
	if (!engine->down_code) {
		engine->down_code = code ? code : CADGE_E_DOWN;
		engine->down_channel = peer;
	}
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

static void on_notified(struct cadge_sink *sink, uint32_t peer, struct cadge_region *region,
			uint64_t offset_bytes, uint64_t bytes)
{
	(void)sink, (void)peer, (void)region, (void)offset_bytes, (void)bytes;
}

void drv_port_start(struct drv_port *port, struct drv_engine *engine)
{
	*port = (struct drv_port){.sink = {.bytes = sizeof(struct cadge_sink),
					   .up = on_up,
					   .down = on_down,
					   .recv = on_recv,
					   .sent = on_sent,
					   .call = on_call,
					   .replied = on_replied,
					   .notified = on_notified},
				  .engine = engine,
				  .due = true};
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
	engine->deadline_ns = now_ns + left_ns;
	return engine->deadline_ns;
}

int drv_engine_explain(struct drv_engine *engine, struct drv_fail *fail)
{
	const uint64_t until_ns = drv_now_ns() + EXPLAIN_NS;
	const char *why = "";
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
	if (engine->layer->caps & CADGE_CAP_WHY)
		why = engine->layer->why(engine->ctx);
	return drv_fail_set(fail, DRV_LIBRARY,
			    "the layer reported its peer down, endpoint %d (%s), although it is alive%s%s",
			    engine->down_code && engine->down_channel < engine->channels_count
				    ? engine->channels[engine->down_channel].endpoint
				    : -1,
			    cadge_code_name(engine->down_code ? engine->down_code : CADGE_E_DOWN),
			    *why ? ": " : "", why);
}

int drv_engine_poll_oob(struct drv_engine *engine, uint64_t now, json_t **message_out, struct drv_fail *fail)
{
	int status = 0;

	if (DRV_UNLIKELY(engine->down_code))
		return drv_engine_explain(engine, fail);
	if (DRV_UNLIKELY(drv_stop_signal))
		return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
	if (DRV_UNLIKELY(engine->awaited_count != NULL) &&
	    atomic_load_explicit(engine->awaited_count, memory_order_acquire) >= engine->awaited_at) {
		if (message_out) {
			*message_out = json_null();
			return 1;
		}
		if (engine->thread)
			return drv_fail_set(fail, DRV_STOPPED, "the first thread gave up");
	}
	if (engine->oob && now >= engine->oob_next) {
		status = message_out ? drv_oob_try(engine->oob, message_out, fail)
				     : drv_oob_peek(engine->oob, fail);
		engine->oob_next = now + engine->oob_period;
	}
	if (status == 0 && now >= engine->deadline)
		return drv_fail_set(fail, DRV_DEADLINE, "the deadline of this %s passed",
				    engine->deadline_ns == engine->launch_deadline_ns ? "launch" : "step");
	return status;
}

static int idle_step(void *arg, struct drv_fail *fail)
{
	struct drv_engine *engine = arg;
	const int events = engine->layer->poll(engine->ctx, engine->sink);
	int status;

	if (events < 0)
		return drv_engine_fail("poll", events, fail);
	if (events > 0 || !engine->block)
		return 0;
	status = drv_engine_wait(engine, IDLE_WAIT_NS * engine->idle_sleep_scale, fail);
	/* of no role's loop */
	engine->waits--;
	return status;
}

const struct drv_idle *drv_engine_idle(struct drv_engine *engine)
{
	engine->idle = (struct drv_idle){.step = idle_step, .arg = engine};
	return engine->ctx ? &engine->idle : NULL;
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
	const size_t peers = drv_launch_channels(launch, (size_t)engine->endpoint, engine->thread, NULL, 0);
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
		.peers_max = peers ? (uint32_t)peers : 1,
		.depth_max = engine->needs.depth,
		.message_bytes_max = engine->needs.message_bytes,
		.region_bytes_max = engine->needs.region_bytes,
		.settings = settings,
		.settings_count = launch->settings_count,
		.inner = engine->loaded.inner,
		.error = error,
		.error_bytes = sizeof(error),
	};
	int code;

	if (!engine->idle_sleep_scale)
		engine->idle_sleep_scale = 1;
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
	code = engine->layer->open(&args, &engine->ctx);
	free(settings);
	if (code == CADGE_DONE) {
		engine->layer = drv_in_place(engine->layer, engine->ctx);
		return 0;
	}
	error[sizeof(error) - 1] = '\0';
	engine->ctx = NULL;
	return drv_fail_set(fail, open_reason(code, engine), "the layer cannot be opened: %s (%s)",
			    error[0] ? error : "it gave no reason", cadge_code_name(code));
}
