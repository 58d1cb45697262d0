/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that share one connection: the layer never sees two of them at a time, each gets the replies to its own calls,
 * whoever sleeps is woken when its reply is there, and whatever fails all of them end.
 */
#include "servers/client_threads.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "traffic/requester.h"
#include "tap.h"

enum { REQUEST = 32, REPLY = 40, THREADS = 5, DEPTH = 2, PLACES = 64 };
#define MS UINT64_C(1000000)

/* What the layer does. */
struct orders {
	uint64_t delay_ns;
	/* calls of its own, whose results lie where the caller said, or are lent; messages that end with an event of their own */
	bool native, placed, queued;
	/* it tells when it is due, and has a descriptor that tells nothing; else that is a timer, which event arms */
	bool by_due;
	/* every n-th post is refused once; the reply to this call never comes; poll fails after so many replies; or it is down */
	uint32_t busy_every;
	uint64_t loses, fails_after, down_after;
	/* how long a thread sleeps that nobody wakes; 0: as ever */
	uint64_t sleep_ns;
};

/* A reply that is under way. */
struct reply {
	uint64_t token, due_ns;
	uint8_t *to, message[REPLY + DRV_RPC_TRAILER_BYTES];
	bool sent_due;
};

/* The layer's one context: answers each call after a while, and finds out when two threads are in it. */
static struct {
	struct orders orders;
	atomic_flag in_use;
	atomic_uint together;
	/* none of these is atomic: whoever has the context has them */
	struct reply replies[PLACES];
	uint32_t head, tail, posts;
	/* a post was refused, and would be taken now */
	bool refused;
	uint64_t calls, answered, key_sum;
	int fd;
} world;

static void enter(void)
{
	if (atomic_flag_test_and_set(&world.in_use))
		atomic_fetch_add(&world.together, 1);
}

static int leave(int code)
{
	atomic_flag_clear(&world.in_use);
	return code;
}

static int answer(const uint8_t *request, void *to, uint64_t token)
{
	struct reply *reply = &world.replies[world.tail % PLACES];
	const uint64_t key = drv_head_key(request, REQUEST);

	if (world.orders.busy_every && ++world.posts % world.orders.busy_every == 0) {
		world.refused = true;
		return CADGE_BUSY;
	}
	if (world.tail - world.head == PLACES)
		abort(); /* more than was agreed */
	world.key_sum += key;
	if (++world.calls == world.orders.loses)
		return world.orders.queued || world.orders.native ? CADGE_QUEUED : CADGE_DONE;
	*reply = (struct reply){.token = token,
				.to = to,
				.due_ns = drv_now_ns() + world.orders.delay_ns,
				.sent_due = world.orders.queued};
	drv_head_write(reply->message, REPLY, ~UINT64_C(7), key);
	drv_trailer_write(reply->message, REPLY, token, DRV_RPC_REPLY);
	world.tail++;
	return world.orders.queued || world.orders.native ? CADGE_QUEUED : CADGE_DONE;
}

static int post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		uint64_t token)
{
	(void)chan, (void)count, (void)flags;
	enter();
	return leave(answer(iov->base, NULL, token));
}

static int call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in, uint32_t in_count,
		const struct cadge_iov *out, uint32_t out_count, uint32_t flags, uint64_t token)
{
	(void)chan, (void)op, (void)in_count, (void)flags;
	enter();
	return leave(answer(in->base, out_count && world.orders.placed ? out->base : NULL, token));
}

static void deliver(struct cadge_sink *sink, struct reply *reply)
{
	if (reply->sent_due && !world.orders.native)
		sink->sent(sink, 0, reply->token, CADGE_DONE);
	if (!world.orders.native) {
		sink->recv(sink, 0, reply->message, sizeof(reply->message), NULL);
	} else if (reply->to) {
		memcpy(reply->to, reply->message, REPLY);
		sink->replied(sink, 0, reply->token, CADGE_DONE, CADGE_PLACED, NULL, REPLY, NULL);
	} else {
		sink->replied(sink, 0, reply->token, CADGE_DONE, CADGE_LENT, reply->message, REPLY, NULL);
	}
	/* whoever kept a pointer to what was lent finds this */
	memset(reply->message, 0xee, sizeof(reply->message));
	world.answered++;
}

static int poll_layer(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	const uint64_t now_ns = drv_now_ns();
	int events = 0;

	(void)ctx;
	enter();
	if (world.orders.fails_after && world.answered >= world.orders.fails_after)
		return leave(CADGE_E_LIBRARY);
	if (world.orders.down_after && world.answered >= world.orders.down_after) {
		world.orders.down_after = 0;
		world.head = world.tail;
		sink->down(sink, 0, CADGE_E_DOWN);
		return leave(1);
	}
	for (; world.head != world.tail && world.replies[world.head % PLACES].due_ns <= now_ns; events++)
		deliver(sink, &world.replies[world.head++ % PLACES]);
	return leave(events);
}

static int event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	const uint64_t now_ns = drv_now_ns();
	const uint64_t next_ns =
		world.head == world.tail ? UINT64_MAX : world.replies[world.head % PLACES].due_ns;
	struct itimerspec timer = {{0, 0}, {0, 0}};

	(void)ctx;
	enter();
	if (next_ns <= now_ns || world.refused) {
		world.refused = false;
		return leave(CADGE_BUSY);
	}
	if (next_ns != UINT64_MAX && !world.orders.by_due)
		timer.it_value =
			(struct timespec){(time_t)(next_ns / (1000 * MS)), (long)(next_ns % (1000 * MS))};
	timerfd_settime(world.fd, TFD_TIMER_ABSTIME, &timer, NULL);
	*fd_out = world.fd;
	*due_ns_out = world.orders.by_due && next_ns != UINT64_MAX ? next_ns - now_ns : UINT64_MAX;
	return leave(CADGE_DONE);
}

static void limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx;
	limits_out->caps = CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD;
}

static const struct cadge_layer layer = {
	.post = post, .call = call, .poll = poll_layer, .event = event, .limits = limits};

/* What became of a run. */
struct outcome {
	int status;
	struct drv_fail fail;
	struct drv_counts counts;
	uint64_t operations, calls, key_sum, fastest_ns, slowest_ns;
	unsigned together;
};

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	/* as the loop does it, but for whole bodies, which the layer here does not write */
	return serial ? drv_requester_role_warmup(run, serial, fail) : drv_requester_role_measure(run, fail);
}

static struct outcome share(struct orders orders, uint32_t threads, bool dispatched, bool block,
			    uint64_t duration_ns)
{
	static const struct drv_quantity quantities[] = {{"latency", DRV_HISTOGRAM}, {.name = NULL}};
	struct drv_endpoint here = {.worker_cpus_count = dispatched ? threads : threads - 1};
	const struct drv_launch launch = {.endpoints = &here, .endpoints_count = 1};
	struct drv_engine engine = {.launch = &launch, .layer = &layer, .block = block, .channels_count = 1};
	struct drv_record record;
	struct drv_role_run run = {.engine = &engine, .record = &record, .duration_ns = duration_ns};
	const struct drv_exchange exchange = {.form = orders.native ? DRV_FORM_NATIVE : DRV_FORM_EMULATED,
					      .request_bytes = REQUEST,
					      .reply_bytes = REPLY,
					      .depth = DEPTH,
					      .seed = 7};
	struct outcome outcome = {0};
	struct drv_client_threads *clients = NULL;

	for (uint32_t i = 0; i < threads; i++)
		here.worker_cpus[i] = -1;
	memset(&world, 0, sizeof(world));
	world.orders = orders;
	world.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	engine.offer.both.caps = CADGE_CAP_RELIABLE;
	engine.channels[0].up = true;
	engine.up_count = 1;
	engine.launch_deadline_ns = UINT64_MAX;
	engine.sleep_ns = orders.sleep_ns;
	drv_clock_start(&engine.clock, true);
	drv_record_start(&record, quantities);
	drv_engine_allow(&engine, orders.loses ? 300 * MS : 20000 * MS);
	outcome.status =
		drv_client_threads_start(&clients, &run, exchange, threads, dispatched, &outcome.fail);
	if (!outcome.status)
		outcome.status = drv_client_threads_run(clients, verify, 5 * MS, &outcome.fail);
	if (!outcome.status) {
		drv_client_threads_record(clients, true);
		outcome.status = drv_client_threads_run(clients, verify, 0, &outcome.fail);
		drv_client_threads_record(clients, false);
	}
	if (clients)
		drv_client_threads_counts(clients, &outcome.counts);
	outcome.operations = record.operations;
	outcome.fastest_ns = record.values[0].samples ? record.values[0].samples->histogram.min_ns : 0;
	outcome.slowest_ns = record.values[0].samples ? record.values[0].samples->histogram.max_ns : 0;
	drv_client_threads_stop(clients);
	for (int i = 0; i < DRV_POOLS; i++)
		drv_memory_free(&engine, &engine.pools[i]);
	drv_record_free(&record);
	close(world.fd);
	outcome.calls = world.calls;
	outcome.key_sum = world.key_sum;
	outcome.together = atomic_load(&world.together);
	return outcome;
}

static const char *words(const struct outcome *outcome)
{
	static char text[400];

	snprintf(text, sizeof(text),
		 "%" PRIu64 " of %" PRIu64 " calls measured, %" PRIu64
		 " mismatches %.60s, %u at a time, %.1f to "
		 "%.1f ms: %.100s",
		 outcome->operations, outcome->calls, outcome->counts.mismatches, outcome->counts.mismatch,
		 outcome->together, (double)outcome->fastest_ns / 1e6, (double)outcome->slowest_ns / 1e6,
		 outcome->status ? outcome->fail.text : "done");
	return text;
}

static bool is_right(const struct outcome *outcome)
{
	return !outcome->status && outcome->together == 0 && outcome->counts.mismatches == 0 &&
	       outcome->operations > 0 && outcome->counts.posted == outcome->calls &&
	       outcome->counts.posted_keys == outcome->key_sum && outcome->counts.checked == outcome->calls;
}

/* However calls are made, and their replies come. */
static void test_ways(void)
{
	static const struct orders ways[] = {{0},
					     {.queued = true, .delay_ns = 20000},
					     {.native = true, .delay_ns = 20000},
					     {.native = true, .placed = true, .busy_every = 3},
					     {.by_due = true, .delay_ns = 100000, .busy_every = 5}};

	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (int dispatched = 0; dispatched < 2; dispatched++)
			for (int block = 0; block < 2; block++) {
				const struct outcome outcome =
					share(ways[way], (uint32_t)(block ? THREADS : 2 - dispatched),
					      dispatched, block, 10 * MS);

				tap_ok(is_right(&outcome), "way %zu, %s, %s: %s", way,
				       dispatched ? "dispatched" : "direct", block ? "block" : "poll",
				       words(&outcome));
			}
}

/* Each call takes 1 ms, and whoever is forgotten sleeps for 5 s, which no other work on the machine makes of it. */
static void test_nobody_is_forgotten(void)
{
	const uint64_t duration_ns = 60 * MS, most = THREADS * DEPTH * (duration_ns / MS + 1);

	for (int way = 0; way < 4; way++) {
		const struct outcome outcome =
			share((struct orders){.delay_ns = MS, .by_due = way & 1, .sleep_ns = 5000 * MS},
			      THREADS, way & 2, true, duration_ns);

		tap_ok(is_right(&outcome) && outcome.operations <= most &&
			       outcome.fastest_ns >= MS * 99 / 100 && outcome.slowest_ns < 4000 * MS,
		       "%s, %s: of %" PRIu64 " calls in 60 ms: %s", way & 2 ? "dispatched" : "direct",
		       way & 1 ? "due" : "descriptor", most, words(&outcome));
	}
}

static void test_failures(void)
{
	for (int way = 0; way < 4; way++) {
		const bool dispatched = way & 1, block = way & 2;
		const uint32_t threads = block ? THREADS : dispatched ? 1 : 2;
		struct outcome outcome = share((struct orders){.delay_ns = 10000, .fails_after = 5}, threads,
					       dispatched, block, 500 * MS);

		tap_ok(outcome.status && outcome.fail.reason == DRV_LIBRARY, "a poll that fails: %s",
		       words(&outcome));
		outcome = share((struct orders){.delay_ns = 10000, .down_after = 5}, threads, dispatched,
				block, 500 * MS);
		tap_ok(outcome.status && strstr(outcome.fail.text, "down"), "a channel that breaks: %s",
		       words(&outcome));
		outcome = share((struct orders){.delay_ns = 10000, .loses = 4}, threads, dispatched, block,
				50 * MS);
		tap_ok(outcome.status && outcome.fail.reason == DRV_DEADLINE, "a reply that never comes: %s",
		       words(&outcome));
	}
}

static void test_refusals(void)
{
	const struct drv_ability polls = {0}, once = {.caps = CADGE_CAP_ONE_INIT},
				 sleeps = {.caps = CADGE_CAP_WAIT},
				 is_woken = {.caps = CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD};
	struct drv_fail fail = {0};

	tap_ok(!drv_client_threads_negotiate(&polls, &fail) &&
		       !drv_client_threads_negotiate(&is_woken, &fail),
	       "a layer that polls, and one that another thread can wake");
	tap_ok(drv_client_threads_negotiate(&sleeps, &fail) && fail.reason == DRV_NO_WAIT, "%s", fail.text);
	tap_ok(drv_client_threads_negotiate(&once, &fail) && fail.reason == DRV_NO_CAP, "%s", fail.text);
}

int main(void)
{
	test_ways();
	test_nobody_is_forgotten();
	test_failures();
	test_refusals();
	return tap_done();
}
