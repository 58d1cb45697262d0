/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that workers do: each is done once; while no worker is free the others wait, in order, and no more of them than there
 * is room for; the load is even; and owners of one queue help each other. A server whose requests are such jobs answers each.
 */
#include "traffic/responder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tap.h"

enum { WORKERS = 3, ROOM = 8, CALLS = 1000, REQUEST_BYTES = 64, REPLY_BYTES = 16 };
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
static const struct drv_exchange exchange = {.form = DRV_FORM_EMULATED,
					     .request_bytes = REQUEST_BYTES,
					     .reply_bytes = REPLY_BYTES,
					     .depth = ROOM / 2,
					     .seed = 1};

/* A server whose requests workers work for. */
struct served {
	struct drv_responder responder;
	struct drv_worker_pool pool;
	atomic_uint done;
};

/* The key that the owner wrote before it gave the job is there. */
static uint64_t work(void *arg, uint32_t worker, uint64_t job)
{
	struct served *served = arg;

	(void)worker;
	if (served->pool.requests[job].request.key == served->pool.requests[job].request.id + 7)
		atomic_fetch_add(&served->done, 1);
	return job;
}

static void start(struct served *served, struct drv_engine *engine, bool block)
{
	const struct drv_phase phase = {.full = false};
	struct drv_counts counts = {0};
	struct drv_fail fail;

	memset(&state.posts, 0, sizeof(state) - offsetof(__typeof__(state), posts));
	memset(served, 0, sizeof(*served));
	engine->block = block;
	if (!tap_ok(!drv_responder_start(&served->responder, engine, exchange, &fail) &&
			    !drv_worker_pool_start(&served->pool, &served->responder, DRV_POLICY_FIFO, work,
						   served, NULL, &fail) &&
			    served->pool.jobs.count == ROOM,
		    "%s: %u workers start", block ? "block" : "poll", drv_workers_wanted(engine)))
		exit(1);
	drv_responder_phase(&served->responder, &phase, &counts);
	/* keys begin with 7 here, and come in any order */
	served->responder.lines[0].check.by_number = false;
}

static void stop(struct served *served)
{
	drv_worker_pool_stop(&served->pool);
	drv_responder_stop(&served->responder);
}

static void deliver(struct served *served, uint64_t id)
{
	uint8_t request[REQUEST_BYTES + DRV_RPC_TRAILER_BYTES];

	drv_head_write(request, REQUEST_BYTES, exchange.seed, id + 7);
	drv_trailer_write(request, REQUEST_BYTES, id, DRV_RPC_REQUEST);
	served->responder.port.sink.recv(&served->responder.port.sink, 0, request, sizeof(request), NULL);
}

/* As many at a time as there is room for, until all are answered. */
static bool serve(struct served *served, struct drv_engine *engine)
{
	uint64_t begun = 0;
	struct drv_fail fail;

	while (state.answers < CALLS) {
		const unsigned answers = state.answers;

		while (begun < CALLS && begun - state.answers < ROOM)
			deliver(served, begun++);
		if (drv_responder_drain(&served->responder, &fail))
			return false;
		/* the layer notifies nobody that it has room again */
		if (state.answers == answers && served->pool.jobs.done.head == served->pool.jobs.done.tail &&
		    engine->block && drv_engine_wait(engine, WAIT_NS, &fail))
			return false;
	}
	return !drv_worker_pool_due(&served->pool);
}

static void test_responder(struct drv_engine *engine, bool block)
{
	struct served served;
	bool all;

	start(&served, engine, block);
	all = serve(&served, engine);
	tap_ok(all && !state.wrong && atomic_load(&served.done) == CALLS &&
		       !served.responder.lines[0].check.mismatches,
	       "each of %d requests is worked for and answered once: %u answers, %u wrong", CALLS,
	       state.answers, state.wrong);
	/* nothing is taken back now: as many as there is room for, and one that there is none for */
	served.responder.lines[0].check.reliable = true;
	for (uint64_t id = 0; id < ROOM; id++)
		deliver(&served, id);
	all = !served.responder.lines[0].check.mismatches;
	deliver(&served, ROOM);
	tap_ok(all && served.responder.lines[0].check.mismatches == 1, "%d are held, the next one is refused",
	       ROOM);
	stop(&served);
	tap_ok(!engine->workers, "workers end with jobs on their way");
}

/* One worker: what comes first is begun, done and answered first. And what is done but not answered is due. */
static void test_order(struct drv_engine *engine)
{
	struct served served;
	struct drv_fail fail;
	bool all, due;

	start(&served, engine, false);
	all = serve(&served, engine);
	tap_ok(all && !state.wrong && !state.overtaken, "%d requests are answered in order, %u are not",
	       CALLS, state.overtaken);
	memset(&state.posts, 0, sizeof(state) - offsetof(__typeof__(state), posts));
	state.refuses = true;
	deliver(&served, 0);
	while (served.pool.jobs.out)
		drv_responder_drain(&served.responder, &fail);
	due = drv_worker_pool_due(&served.pool);
	state.refuses = false;
	drv_responder_drain(&served.responder, &fail);
	tap_ok(due && state.answers == 1 && !drv_worker_pool_due(&served.pool),
	       "an answer that the layer has no room for is due");
	stop(&served);
}

/* What a worker does not return from before it may. */
static atomic_bool may_return;
static atomic_uint begun;

static uint64_t wait_for_leave(void *arg, uint32_t worker, uint64_t job)
{
	(void)arg, (void)worker;
	atomic_fetch_add(&begun, 1);
	while (!atomic_load(&may_return))
		usleep(100);
	return job;
}

/* While workers are busy, jobs wait by one policy, and are shared out by the other. */
static void test_policy(struct drv_engine *engine, enum drv_policy policy)
{
	const bool fifo = policy == DRV_POLICY_FIFO;
	struct drv_jobs jobs;
	struct drv_fail fail;
	uint32_t job, taken = 0, back = 0;
	bool right = true;

	atomic_store(&may_return, false);
	atomic_store(&begun, 0);
	if (drv_jobs_start(&jobs, engine, policy, ROOM, wait_for_leave, NULL, NULL, &fail))
		tap_ok(false, "workers start: %s", fail.text);
	for (; drv_jobs_take(&jobs, &job); taken++) {
		right &= job == taken;
		drv_jobs_submit(&jobs, job);
	}
	tap_ok(right && taken == ROOM, "%u jobs are free at first", taken);
	/* queues are empty then: what is not given out now waits for its turn */
	while (atomic_load(&begun) < WORKERS)
		usleep(100);
	drv_jobs_collect(&jobs);
	tap_ok(fifo ? jobs.out == WORKERS && jobs.load[0] == 1 && jobs.load[1] == 1 && jobs.load[2] == 1
		    : jobs.out == ROOM && jobs.load[0] == 3 && jobs.load[1] == 3 && jobs.load[2] == 2,
	       "%s: %u are with workers, %u %u %u", fifo ? "fifo" : "least loaded", jobs.out, jobs.load[0],
	       jobs.load[1], jobs.load[2]);
	atomic_store(&may_return, true);
	while (back < ROOM) {
		drv_jobs_collect(&jobs);
		for (; drv_jobs_first(&jobs, &job); back++) {
			drv_jobs_pop(&jobs);
			right &= drv_jobs_release(&jobs, job);
		}
	}
	tap_ok(right && !jobs.out && !jobs.load[0] && !jobs.load[1] && !jobs.load[2] && !drv_jobs_due(&jobs),
	       "all of them come back");
	tap_ok(!drv_jobs_release(&jobs, 0), "one that is free is not freed again");
	drv_jobs_stop(&jobs);
}

/* Owners of one queue, each in a thread of its own; a job is done by any of them, and comes back to its owner. */
enum { OWNERS = 3, JOBS = 4, EACH = 20000 };

struct owner {
	struct drv_engine engine;
	struct drv_jobs jobs;
	struct drv_queue *common;
	atomic_uint *left;
	/* by job: written by its owner before, by whoever did it after */
	uint64_t asked[JOBS], said[JOBS];
	uint64_t wrong;
	pthread_t thread;
};

static uint64_t double_it(void *arg, uint32_t worker, uint64_t job)
{
	struct owner *owner = arg;

	(void)worker;
	owner->said[job] = 2 * owner->asked[job];
	return job;
}

static void *be_owner(void *arg)
{
	struct owner *owner = arg;
	struct drv_jobs *jobs = &owner->jobs;
	uint64_t asked = 0, heard = 0;
	uint32_t job;

	/* it goes on helping until nobody has anything left */
	while (atomic_load(owner->left)) {
		/* the first owner asks most */
		while (asked < (owner->engine.thread ? EACH / 10 : EACH) && drv_jobs_take(jobs, &job)) {
			owner->asked[job] = ++asked;
			drv_jobs_submit(jobs, job);
		}
		drv_jobs_collect(jobs);
		for (; drv_jobs_first(jobs, &job); heard++) {
			owner->wrong += owner->said[job] != 2 * owner->asked[job];
			drv_jobs_pop(jobs);
			drv_jobs_release(jobs, job);
		}
		if (heard == (owner->engine.thread ? EACH / 10 : EACH)) {
			heard = 0;
			asked = UINT64_MAX;
			atomic_fetch_sub(owner->left, 1);
		}
	}
	return NULL;
}

static void test_shared(const struct drv_launch *launch, bool block)
{
	static struct owner owners[OWNERS];
	struct drv_queue *common = drv_zeroed(DRV_QUEUE_ALIGN, DRV_JOBS_SHARED_BYTES);
	atomic_uint left = OWNERS;
	uint64_t wrong = 0, helped = 0;
	struct drv_fail fail;

	memset(owners, 0, sizeof(owners));
	for (uint32_t i = 0; i < OWNERS; i++) {
		owners[i].engine = (struct drv_engine){.launch = launch, .thread = i, .block = block};
		owners[i].left = &left;
		if (drv_jobs_start(&owners[i].jobs, &owners[i].engine, DRV_POLICY_SHARED, JOBS, double_it,
				   &owners[i], common, &fail))
			tap_ok(false, "an owner starts: %s", fail.text);
	}
	for (uint32_t i = 0; i < OWNERS; i++)
		pthread_create(&owners[i].thread, NULL, be_owner, &owners[i]);
	for (uint32_t i = 0; i < OWNERS; i++) {
		pthread_join(owners[i].thread, NULL);
		wrong += owners[i].wrong;
		helped += owners[i].jobs.helped;
	}
	for (uint32_t i = 0; i < OWNERS; i++)
		drv_jobs_stop(&owners[i].jobs);
	tap_ok(!wrong && !atomic_load(&left) && helped <= 2 * EACH,
	       "%s: %d owners help each other out, %llu times", block ? "block" : "poll", OWNERS,
	       (unsigned long long)helped);
	free(common);
}

int main(void)
{
	struct drv_endpoint endpoint = {.worker_cpus = {-1, -1, -1}, .worker_cpus_count = WORKERS};
	struct drv_launch launch = {.endpoints = &endpoint, .endpoints_count = 1};
	struct drv_engine engine = {.layer = &layer, .launch = &launch, .channels_count = 1};
	struct drv_jobs nothing = {0};
	struct drv_fail fail;

	state.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (state.fd < 0)
		return 1;
	test_responder(&engine, true);
	test_responder(&engine, false);
	test_policy(&engine, DRV_POLICY_FIFO);
	test_policy(&engine, DRV_POLICY_LEAST_LOADED);
	test_shared(&launch, false);
	test_shared(&launch, true);
	endpoint.worker_cpus_count = 1;
	test_order(&engine);
	endpoint.worker_cpus_count = 0;
	tap_ok(drv_jobs_start(&nothing, &engine, DRV_POLICY_FIFO, ROOM, work, NULL, NULL, &fail) &&
		       fail.reason == DRV_ARGUMENT,
	       "without workers: %s", fail.text);
	drv_jobs_stop(&nothing);
	drv_memory_free(&engine, &engine.pools[DRV_POOL_RESPONDER]);
	close(state.fd);
	return tap_done();
}
