/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that other threads work for: each is answered once, in whatever order they are done; while nobody is free they
 * wait, and not more of them than there is room for; and every call's time is kept, whoever took it.
 */
#include "traffic/dispatch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tap.h"

enum { WORKERS = 3, ROOM = 8, CALLS = 1000, REPLY_BYTES = 16 };
#define WAIT_NS UINT64_C(30000000000)

/* A layer that takes replies, every third one only when it is asked again; its descriptor never becomes readable. */
static struct {
	int fd;
	unsigned posts, answers, wrong, overtaken;
	bool refuses;
	bool answered[CALLS];
} state;

static void limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx;
	limits_out->caps = CADGE_CAP_EVENT_FD | CADGE_CAP_WAIT;
}

static int event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	(void)ctx;
	*fd_out = state.fd;
	*due_ns_out = UINT64_MAX;
	return CADGE_DONE;
}

static int post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		uint64_t token)
{
	uint64_t id = CALLS;

	(void)chan, (void)count, (void)flags, (void)token;
	if (state.refuses || ++state.posts % 3 == 0)
		return CADGE_BUSY;
	if (!drv_trailer_read(iov->base, iov->bytes, DRV_RPC_REPLY, &id) || id >= CALLS ||
	    state.answered[id] || drv_load64(iov->base) != id + 7)
		state.wrong++;
	else
		state.answered[id] = true;
	state.overtaken += id != state.answers;
	state.answers++;
	return CADGE_DONE;
}

static const struct cadge_layer layer = {.limits = limits, .event = event, .post = post};

static struct drv_work request(uint64_t id)
{
	return (struct drv_work){.id = id, .key = id + 7};
}

/* As many at a time as there is room for, until all are answered. */
static bool serve(struct drv_dispatch *dispatch, struct drv_server *server, struct drv_engine *engine)
{
	uint64_t begun = 0;
	struct drv_fail fail;

	while (state.answers < CALLS) {
		const unsigned answers = state.answers;

		while (begun < CALLS && begun - state.answers < ROOM) {
			const struct drv_work work = request(begun);

			if (!drv_dispatch_take(dispatch, server, &work))
				return false;
			begun++;
		}
		drv_dispatch_drain(dispatch);
		/* the layer tells nobody that it has room again */
		if (state.answers == answers && dispatch->done.head == dispatch->done.tail && engine->block &&
		    drv_engine_wait(engine, WAIT_NS, &fail))
			return false;
	}
	return begun == CALLS && !drv_dispatch_due(dispatch);
}

static void test(struct drv_engine *engine, const struct drv_service *service, bool block)
{
	static struct drv_samples samples;
	static uint8_t replies[2 * ROOM * 64];
	const struct drv_exchange exchange = {.form = DRV_FORM_EMULATED,
					      .request_bytes = 64,
					      .reply_bytes = REPLY_BYTES,
					      .depth = ROOM,
					      .seed = 1};
	struct drv_dispatch dispatch;
	struct drv_server server;
	struct drv_fail fail;
	uint32_t held = 0;
	bool served;

	memset(&state.posts, 0, sizeof(state) - offsetof(__typeof__(state), posts));
	drv_histogram_clear(&samples.histogram);
	engine->block = block;
	if (!tap_ok(!drv_server_start_on(&server, engine, 0, replies, exchange, &fail) &&
			    !drv_dispatch_start(&dispatch, engine, service, 0, true, ROOM, &fail),
		    "%s: workers start", block ? "block" : "poll"))
		exit(1);
	drv_dispatch_switch(&dispatch, 7, true);
	served = serve(&dispatch, &server, engine);
	tap_ok(served && !state.wrong && !server.failed,
	       "each of %d calls is answered once: %u answers, %u wrong", CALLS, state.answers, state.wrong);
	drv_dispatch_collect(&dispatch, &samples);
	drv_dispatch_collect(&dispatch, &samples);
	tap_ok(samples.histogram.count == CALLS && samples.histogram.min_ns >= service->mean_ns,
	       "%llu calls took %llu ns or more", (unsigned long long)samples.histogram.count,
	       (unsigned long long)samples.histogram.min_ns);
	/* nothing is taken back now: what the workers have, and then as many as may wait */
	for (uint64_t id = 0; id < UINT64_C(2) * ROOM + WORKERS; id++) {
		const struct drv_work work = request(id);

		held += drv_dispatch_take(&dispatch, &server, &work);
	}
	tap_ok(held == ROOM + WORKERS, "%u are held, the next one is not", held);
	drv_dispatch_stop(&dispatch);
	drv_server_stop(&server);
	tap_ok(!engine->hands, "they end with work in their hands");
}

/* One worker: what comes first is begun, done and answered first. And what is done but not answered is due. */
static void test_order(struct drv_engine *engine, const struct drv_service *service)
{
	static uint8_t replies[2 * ROOM * 64];
	const struct drv_exchange exchange = {.form = DRV_FORM_EMULATED,
					      .request_bytes = 64,
					      .reply_bytes = REPLY_BYTES,
					      .depth = ROOM,
					      .seed = 1};
	struct drv_dispatch dispatch;
	struct drv_server server;
	struct drv_fail fail;
	bool served, due;

	memset(&state.posts, 0, sizeof(state) - offsetof(__typeof__(state), posts));
	if (!tap_ok(!drv_server_start_on(&server, engine, 0, replies, exchange, &fail) &&
			    !drv_dispatch_start(&dispatch, engine, service, 0, false, ROOM, &fail),
		    "one worker starts"))
		exit(1);
	served = serve(&dispatch, &server, engine);
	tap_ok(served && !state.wrong && !state.overtaken, "%d calls are answered in order, %u are not",
	       CALLS, state.overtaken);
	memset(&state.posts, 0, sizeof(state) - offsetof(__typeof__(state), posts));
	state.refuses = true;
	due = drv_dispatch_take(&dispatch, &server, &(struct drv_work){.id = 0, .key = 7});
	while (dispatch.idle_count < dispatch.count)
		drv_dispatch_drain(&dispatch);
	due = due && drv_dispatch_due(&dispatch);
	state.refuses = false;
	drv_dispatch_drain(&dispatch);
	tap_ok(due && state.answers == 1 && !drv_dispatch_due(&dispatch),
	       "an answer that the layer has no room for is due");
	drv_dispatch_stop(&dispatch);
	drv_server_stop(&server);
}

int main(void)
{
	struct drv_clock clock;
	struct drv_endpoint endpoint = {.hands = {-1, -1, -1}, .hands_count = WORKERS};
	struct drv_launch launch = {.endpoints = &endpoint, .endpoints_count = 1};
	struct drv_engine engine = {.layer = &layer, .launch = &launch};
	struct drv_service service;
	struct drv_dispatch nothing = {0};
	struct drv_fail fail;

	drv_clock_start(&clock, true);
	engine.clock = clock;
	state.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (state.fd < 0 || drv_service_start(&service, DRV_SERVICE_SPIN, DRV_SERVICE_FIXED, 1000, 0, false,
					      1, &clock, &fail))
		return 1;
	test(&engine, &service, true);
	test(&engine, &service, false);
	endpoint.hands_count = 1;
	test_order(&engine, &service);
	endpoint.hands_count = 0;
	tap_ok(drv_dispatch_start(&nothing, &engine, &service, 0, true, ROOM, &fail) &&
		       fail.reason == DRV_ARGUMENT,
	       "without workers: %s", fail.text);
	drv_dispatch_stop(&nothing);
	close(state.fd);
	return tap_done();
}
