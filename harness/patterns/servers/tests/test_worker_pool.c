/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many clients of one context: each gets the answers to its own requests, in order where they are given in place, also
 * when the layer is busy in between. And what is passed on: it is worked for once, by whoever takes it, and comes back.
 */
#include "traffic/responder.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

enum { CHANNELS = 3, DEPTH = 4, REQUEST = 32, REPLY = 40, ANSWERS_MAX = 64 };

/* A channel of the layer here: what was posted to it. */
struct cadge_chan {
	uint64_t ids[ANSWERS_MAX];
	uint32_t answers, wrong;
};

static struct cadge_chan chans[CHANNELS];
/* how many posts are refused before the next one is taken */
static uint32_t busy;
static uint64_t seed = 7;
static atomic_bool all_done;

static int post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		uint64_t token)
{
	uint64_t id;

	(void)count, (void)flags, (void)token;
	if (busy) {
		busy--;
		return CADGE_BUSY;
	}
	if (iov->bytes != REPLY + DRV_RPC_TRAILER_BYTES ||
	    !drv_trailer_read(iov->base, iov->bytes, DRV_RPC_REPLY, &id) ||
	    !drv_head_holds(iov->base, REPLY, ~seed, id) || !drv_touch_read(iov->base, REPLY, ~seed, id))
		chan->wrong++;
	else
		chan->ids[chan->answers++] = id;
	return CADGE_DONE;
}

static void limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx;
	limits_out->caps = 0;
}

static const struct cadge_layer layer = {.post = post, .limits = limits};
static const struct drv_exchange exchange = {.form = DRV_FORM_EMULATED,
					     .request_bytes = REQUEST,
					     .reply_bytes = REPLY,
					     .depth = DEPTH,
					     .by_channel = true,
					     .seed = 7,
					     .touch = DRV_TOUCH_WRITE_READ};

static void start_engine(struct drv_engine *engine, uint64_t caps)
{
	memset(engine, 0, sizeof(*engine));
	engine->layer = &layer;
	engine->channels_count = CHANNELS;
	engine->offer.both.caps = CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | caps;
	for (uint32_t i = 0; i < CHANNELS; i++)
		engine->channels[i].chan = &chans[i];
	memset(chans, 0, sizeof(chans));
}

/* Delivers request `number` on a channel: its number is its id as well. */
static void deliver(struct drv_responder *responder, uint32_t channel, uint64_t number)
{
	uint8_t message[REQUEST + DRV_RPC_TRAILER_BYTES];

	drv_head_write(message, REQUEST, seed, number);
	drv_touch_write(message, REQUEST, seed, number);
	drv_trailer_write(message, REQUEST, number, DRV_RPC_REQUEST);
	responder->port.sink.recv(&responder->port.sink, channel, message, sizeof(message), NULL);
}

static void start(struct drv_responder *responder, struct drv_engine *engine)
{
	const struct drv_phase phase = {.full = false};
	struct drv_counts counts = {0};
	struct drv_fail fail;

	if (drv_responder_start(responder, engine, exchange, &fail))
		tap_ok(false, "a server starts: %s", fail.text);
	drv_responder_phase(responder, &phase, &counts);
}

/* A thread of a server that passes requests on. */
struct passing {
	struct drv_responder responder;
	struct drv_worker_pool pool;
};

static int pass_on(struct passing *passing, struct drv_queue *common, struct drv_fail *fail)
{
	return drv_worker_pool_start(&passing->pool, &passing->responder,
				     common ? DRV_POLICY_SHARED : DRV_POLICY_LEAST_LOADED, NULL, NULL, common,
				     fail);
}

static void stop(struct passing *passing)
{
	drv_worker_pool_stop(&passing->pool);
	drv_responder_stop(&passing->responder);
}

static struct drv_counts counts_of(struct drv_responder *responder)
{
	const struct drv_phase phase = {.full = false};
	struct drv_counts counts = {0};

	drv_responder_phase(responder, &phase, &counts);
	return counts;
}

static bool in_order(const struct cadge_chan *chan, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (chan->ids[i] != i)
			return false;
	return chan->answers == count && !chan->wrong;
}

/* In place: inside the callback, or after it where the layer does not take answers there. */
static void test_in_place(uint64_t caps)
{
	struct drv_engine engine;
	struct drv_responder responder;
	struct drv_counts counts;
	struct drv_fail fail;
	bool right = true;

	start_engine(&engine, caps);
	start(&responder, &engine);
	for (uint64_t number = 0; number < DEPTH; number++)
		for (uint32_t channel = 0; channel < CHANNELS; channel++) {
			/* every second time there is no room: it waits, and nothing of its channel goes before it */
			busy = (number + channel) % 2;
			deliver(&responder, channel, number);
		}
	busy = 0;
	if (drv_responder_drain(&responder, &fail))
		tap_ok(false, "answers that had to wait");
	for (uint32_t i = 0; i < CHANNELS; i++)
		right &= in_order(&chans[i], DEPTH);
	counts = counts_of(&responder);
	tap_ok(right && counts.executed == CHANNELS * DEPTH && counts.checked == CHANNELS * DEPTH &&
		       !counts.mismatches,
	       "%s: each client gets its answers in order, %" PRIu64 " of %d executed",
	       caps ? "in the callback" : "after poll", counts.executed, CHANNELS * DEPTH);
	deliver(&responder, 1, DEPTH + 1);
	tap_ok(counts_of(&responder).mismatches == 1, "a request that is missing is noticed, on its channel");
	drv_responder_stop(&responder);
	drv_memory_free(&engine, &engine.pools[DRV_POOL_RESPONDER]);
}

/* One poll of a thread: what it brought, and what the thread does then. */
static void turn(struct passing *passing, uint32_t channel, uint64_t number)
{
	struct drv_fail fail;

	deliver(&passing->responder, channel, number);
	if (drv_responder_drain(&passing->responder, &fail))
		tap_ok(false, "a thread that passes on: %s", fail.text);
}

/* Threads of a server that help each other. */
static void start_two(struct passing both[2], struct drv_engine engines[2], struct drv_queue *common)
{
	struct drv_fail fail;

	for (int i = 0; i < 2; i++) {
		memset(&both[i], 0, sizeof(both[i]));
		start(&both[i].responder, &engines[i]);
		if (pass_on(&both[i], common, &fail))
			tap_ok(false, "a thread starts: %s", fail.text);
	}
}

/* Two threads of a server, played by this one: the first is busy, the second helps it out. */
static void test_stealing(void)
{
	struct drv_queue *common = drv_zeroed(DRV_QUEUE_ALIGN, DRV_JOBS_SHARED_BYTES);
	struct drv_engine engines[2];
	struct passing both[2];
	struct drv_fail fail;
	uint64_t number = 0;

	start_engine(&engines[1], CADGE_CAP_POST_IN_SINK);
	start_engine(&engines[0], CADGE_CAP_POST_IN_SINK);
	start_two(both, engines, common);
	while (both[0].pool.busy_polls < DRV_POOL_BUSY_POLLS)
		turn(&both[0], 0, number++);
	tap_ok(in_order(&chans[0], (uint32_t)number) && !both[0].pool.jobs.out,
	       "a thread that is not busy yet answers %" PRIu64 " in place", number);
	deliver(&both[0].responder, 0, number++);
	deliver(&both[0].responder, 1, 0);
	tap_ok(both[0].pool.jobs.out == 2 && chans[1].answers == 0, "once it is, it passes on");
	drv_responder_drain(&both[1].responder, &fail);
	tap_ok(both[1].pool.jobs.helped == 1 && chans[0].answers == number - 1,
	       "another takes one at a time, and does not touch the context");
	/* its own, which nobody took, and what came back */
	drv_responder_drain(&both[0].responder, &fail);
	drv_responder_drain(&both[0].responder, &fail);
	tap_ok(in_order(&chans[0], (uint32_t)number) && chans[1].answers == 1 && !both[0].pool.jobs.out &&
		       both[0].pool.jobs.helped == 0 && both[0].pool.reordered == 0,
	       "its owner answers both: %" PRIu64 " out of order", both[0].pool.reordered);

	/* nothing came for a while: the next requests are answered in place, and overtake what is still out */
	both[0].pool.busy_polls = DRV_POOL_BUSY_POLLS;
	deliver(&both[0].responder, 0, number++);
	both[0].pool.busy_polls = 0;
	deliver(&both[0].responder, 0, number++);
	drv_responder_drain(&both[0].responder, &fail);
	tap_ok(both[0].pool.reordered == 1 && chans[0].answers == number &&
		       chans[0].ids[number - 1] == number - 2,
	       "an answer that was overtaken is counted");
	tap_ok(counts_of(&both[0].responder).executed == number + 1 &&
		       !counts_of(&both[0].responder).mismatches,
	       "all are executed once");
	stop(&both[0]);
	stop(&both[1]);
	for (int i = 0; i < 2; i++) {
		drv_memory_free(&engines[i], &engines[i].pools[DRV_POOL_RESPONDER]);
		drv_memory_free(&engines[i], &engines[i].pools[DRV_POOL_REQUESTER]);
	}
	free(common);
}

/* In a thread of its own: helps out until it is told that all is done. */
static void *help(void *arg)
{
	struct passing *passing = arg;
	struct drv_fail fail;

	while (!atomic_load(&all_done))
		drv_responder_drain(&passing->responder, &fail);
	return NULL;
}

/* While another thread writes answers, the owner answers in place: they share nothing but what is passed on. */
static void test_both_at_once(void)
{
	enum { REQUESTS = 20000 };
	struct drv_queue *common = drv_zeroed(DRV_QUEUE_ALIGN, DRV_JOBS_SHARED_BYTES);
	struct drv_engine engines[2];
	struct passing both[2];
	struct drv_counts counts;
	struct drv_fail fail;
	uint32_t wrong = 0;
	pthread_t helper;

	for (int i = 0; i < 2; i++)
		start_engine(&engines[i], CADGE_CAP_POST_IN_SINK);
	start_two(both, engines, common);
	pthread_create(&helper, NULL, help, &both[1]);
	for (uint64_t number = 0; number < REQUESTS; number++) {
		both[0].pool.busy_polls = number % 2 ? DRV_POOL_BUSY_POLLS : 0;
		deliver(&both[0].responder, 0, number);
		/* all that was passed on is the helper's */
		while (number % 8 == 7 && atomic_load(&common->taken) != atomic_load(&common->put))
			sched_yield();
		while (number % 8 == 7 && both[0].pool.jobs.out)
			drv_responder_drain(&both[0].responder, &fail);
		if (chans[0].answers > ANSWERS_MAX / 2)
			chans[0].answers = 0;
		wrong |= chans[0].wrong;
	}
	atomic_store(&all_done, true);
	pthread_join(helper, NULL);
	counts = counts_of(&both[0].responder);
	tap_ok(!wrong && counts.executed == REQUESTS && counts.checked == REQUESTS && !counts.mismatches,
	       "%" PRIu64 " requests answered by two threads at once, %" PRIu64 " by the other",
	       counts.executed, both[1].pool.jobs.helped);
	for (int i = 0; i < 2; i++) {
		stop(&both[i]);
		drv_memory_free(&engines[i], &engines[i].pools[DRV_POOL_RESPONDER]);
		drv_memory_free(&engines[i], &engines[i].pools[DRV_POOL_REQUESTER]);
	}
	free(common);
}

/* All that was passed on is back before the layer has room for the first: answered in order, and nothing overtakes. */
static void test_waiting_answers(void)
{
	struct drv_queue *common = drv_zeroed(DRV_QUEUE_ALIGN, DRV_JOBS_SHARED_BYTES);
	struct drv_engine engines[2];
	struct passing both[2];
	struct drv_exchange deep = exchange;
	struct cadge_sink *sink = &both[0].responder.port.sink;
	struct drv_fail fail;

	for (int i = 0; i < 2; i++)
		start_engine(&engines[i], CADGE_CAP_POST_IN_SINK);
	start_two(both, engines, common);
	both[0].pool.busy_polls = DRV_POOL_BUSY_POLLS;
	for (uint64_t number = 0; number < DEPTH; number++)
		deliver(&both[0].responder, 0, number);
	for (int i = 0; i < DEPTH; i++)
		drv_responder_drain(&both[1].responder, &fail);
	sink->sent(sink, 0, DRV_TOKEN_RESPONDER | DRV_TOKEN_POOL | both[0].pool.jobs.count, 0);
	busy = 1;
	drv_responder_drain(&both[0].responder, &fail);
	drv_responder_drain(&both[0].responder, &fail);
	tap_ok(in_order(&chans[0], DEPTH) && both[1].pool.jobs.helped == DEPTH && !both[0].pool.reordered,
	       "%d answers wait for room, and leave in order", DEPTH);
	sink->sent(sink, 0, DRV_TOKEN_RESPONDER | DRV_TOKEN_POOL, 0);
	tap_ok(both[0].responder.lines[0].check.mismatches == 2,
	       "a completion of no answer, and one too many, are refused");
	deep.depth = 4096;
	stop(&both[1]);
	if (drv_responder_start(&both[1].responder, &engines[1], deep, &fail) ||
	    pass_on(&both[1], common, &fail))
		tap_ok(false, "a thread of deep clients starts: %s", fail.text);
	tap_ok(both[1].pool.jobs.count == DRV_JOBS_SHARE,
	       "a thread's share of the queue is %u requests, however many may come",
	       both[1].pool.jobs.count);
	stop(&both[0]);
	stop(&both[1]);
	for (int i = 0; i < 2; i++) {
		drv_memory_free(&engines[i], &engines[i].pools[DRV_POOL_RESPONDER]);
		drv_memory_free(&engines[i], &engines[i].pools[DRV_POOL_REQUESTER]);
	}
	free(common);
}

/* Hands: each gets as much to do as the others, and as many requests are on their way as there is room for. */
static void test_workers_share(void)
{
	enum { WORKERS = 3 };
	struct drv_endpoint here = {.worker_cpus = {-1, -1, -1}, .worker_cpus_count = WORKERS};
	const struct drv_launch launch = {.endpoints = &here, .endpoints_count = 1};
	const uint32_t room = 2 * CHANNELS * drv_responder_outstanding(&exchange);
	const struct drv_request named = {.id = 0};
	struct drv_engine engine;
	struct passing one;
	struct drv_fail fail;
	uint8_t request[REQUEST];
	uint32_t passed = 0;
	bool even, back;

	start_engine(&engine, 0);
	engine.launch = &launch;
	memset(&one, 0, sizeof(one));
	start(&one.responder, &engine);
	if (pass_on(&one, NULL, &fail))
		tap_ok(false, "workers start: %s", fail.text);
	drv_head_write(request, REQUEST, seed, 0);
	while (passed <= room && drv_worker_pool_pass(&one.pool, request, REQUEST, &named))
		passed++;
	even = one.pool.jobs.load[0] == room / WORKERS && one.pool.jobs.load[1] == room / WORKERS &&
	       one.pool.jobs.load[2] == room / WORKERS;
	tap_ok(passed == room && room % WORKERS == 0 && even, "%u requests are shared by %d workers, %u each",
	       passed, WORKERS, one.pool.jobs.load[0]);
	while (one.pool.jobs.out)
		drv_responder_drain(&one.responder, &fail);
	back = !one.pool.jobs.load[0] && !one.pool.jobs.load[1] && !one.pool.jobs.load[2];
	tap_ok(back && chans[0].answers == room, "all of them come back");
	stop(&one);
	drv_memory_free(&engine, &engine.pools[DRV_POOL_RESPONDER]);
	drv_memory_free(&engine, &engine.pools[DRV_POOL_REQUESTER]);
}

int main(void)
{
	test_in_place(CADGE_CAP_POST_IN_SINK);
	test_in_place(0);
	test_stealing();
	test_both_at_once();
	test_waiting_answers();
	test_workers_share();
	return tap_done();
}
