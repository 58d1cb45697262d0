/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel that goes down while its peer lives is told with what the layer's library said of it, where it says anything. */
#include <string.h>

#include "engine/engine.h"
#include "tap.h"

static const char *said;

static const char *why(const struct cadge_ctx *ctx)
{
	(void)ctx;
	return said;
}

static void look(uint64_t caps, const char *words, const char *expected)
{
	const struct cadge_layer layer = {.caps = caps, .why = caps & CADGE_CAP_WHY ? why : NULL};
	struct drv_engine engine = {.layer = &layer, .channels_count = 1, .deadline = UINT64_MAX};
	struct drv_port port;
	struct drv_fail fail = {0};

	said = words;
	engine.channels[0].endpoint = 3;
	drv_port_start(&port, &engine);
	tap_ok(drv_engine_poll_oob(&engine, 0, NULL, &fail) == 0 && !engine.broken, "no channel is down");
	port.sink.down(&port.sink, 0, CADGE_E_MEMORY);
	tap_ok(drv_engine_poll_oob(&engine, 0, NULL, &fail) == -1 && engine.broken &&
		       fail.reason == DRV_LIBRARY && !strcmp(fail.text, expected),
	       "%s", fail.text);
}

int main(void)
{
	look(CADGE_CAP_WHY, "peer 0: Too many open files",
	     "the layer reported its peer down, endpoint 3 (out of memory), although it is alive: peer 0: "
	     "Too "
	     "many open files");
	look(CADGE_CAP_WHY, "",
	     "the layer reported its peer down, endpoint 3 (out of memory), although it is alive");
	look(0, "", "the layer reported its peer down, endpoint 3 (out of memory), although it is alive");
	return tap_done();
}
