/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder as a role: of patterns that exchange requests and replies, and of those that ask one thing at a time; and its workers. */
#include "traffic/responder.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests on their way to another thread and back: copies, order, answers that the layer has no room for ---- */

static struct drv_check *check_of(const struct drv_worker_pool *pool, const struct drv_pool_request *passed)
{
	return &drv_responder_line(pool->responder, passed->request.peer)->check;
}

/* Any thread, with copies: reads the request, does what the service does, writes the answer. */
static uint64_t work_on_copy(void *arg, uint32_t worker, uint64_t job)
{
	const struct drv_worker_pool *pool = arg;
	const struct drv_responder *responder = pool->responder;
	struct drv_pool_request *passed = &pool->requests[job];
	const struct drv_check *check = check_of(pool, passed);
	const size_t bytes = (size_t)responder->exchange.request_bytes;
	/* key, id and place in there are the owner's, who may answer another request now */
	const struct drv_message *like = &responder->message;
	struct drv_message reply = {.at = passed->reply,
				    .bytes = like->bytes,
				    .seed = like->seed,
				    .key = passed->request.key,
				    .full = like->full,
				    .touch = like->touch,
				    .phase = like->phase,
				    .lossy = like->lossy,
				    .trailer = like->trailer,
				    .id = passed->request.id};

	(void)worker;
	if (check->reads)
		passed->good &= drv_check_late(check, passed->copy, bytes) ||
				drv_check_holds(check, passed->copy, bytes, passed->request.key);
	if (responder->service)
		drv_service_do(responder->service, passed->request.key);
	drv_message_write(&reply);
	return job;
}

/* Counts an answer: whether one to a later request of the channel went before it. */
static void count_answer(struct drv_worker_pool *pool, uint32_t channel, uint64_t place)
{
	if (place < pool->lines[channel].answered)
		pool->reordered++;
	else
		pool->lines[channel].answered = place + 1;
}

/* Gives the layer an answer that a worker wrote. False: it has no room now. */
static bool answer_written(struct drv_worker_pool *pool, uint32_t job)
{
	struct drv_responder *responder = pool->responder;
	struct drv_pool_request *passed = &pool->requests[job];
	struct drv_check *check = check_of(pool, passed);
	const int code =
		drv_responder_hand_over(responder, &passed->request, passed->reply, DRV_TOKEN_POOL | job);

	if (code == CADGE_BUSY)
		return false;
	check->full_checked += check->full;
	drv_check_judge(check, passed->good, passed->request.key, (size_t)responder->exchange.request_bytes);
	count_answer(pool, passed->request.peer, passed->place);
	if (code == CADGE_QUEUED)
		return true;
	drv_jobs_release(&pool->jobs, job);
	if (code != CADGE_DONE)
		drv_responder_fail(responder, code);
	return true;
}

/* The owner writes the answer. False: the layer has no room now. */
static bool answer(struct drv_worker_pool *pool, uint32_t job)
{
	if (!drv_responder_answer(pool->responder, &pool->requests[job].request))
		return false;
	drv_jobs_release(&pool->jobs, job);
	return true;
}

bool drv_worker_pool_pass(struct drv_worker_pool *pool, const void *data, size_t bytes,
			  const struct drv_request *request)
{
	struct drv_pool_request *passed;
	uint32_t job;

	if (!drv_jobs_take(&pool->jobs, &job))
		return false;
	passed = &pool->requests[job];
	passed->request = *request;
	passed->place = pool->lines[request->peer].came++;
	pool->came++;
	if (pool->copies) {
		passed->good = drv_check_head(check_of(pool, passed), data, bytes, &passed->request.key);
		memcpy(passed->copy, data, bytes);
	} else {
		passed->request.key = drv_check_take(check_of(pool, passed), data, bytes);
	}
	drv_jobs_submit(&pool->jobs, job);
	return true;
}

/* Passes a request on, or drops it. False: it is to be answered in place. Workers take all, other owners what is too much. */
static bool pass_on(struct drv_worker_pool *pool, const void *data, size_t bytes,
		    const struct drv_request *request)
{
	const bool shared = pool->jobs.policy == DRV_POLICY_SHARED;

	if (bytes != pool->responder->exchange.request_bytes ||
	    (shared && pool->busy_polls < DRV_POOL_BUSY_POLLS))
		return false;
	if (drv_worker_pool_pass(pool, data, bytes, request))
		return true;
	if (!shared)
		drv_responder_drop(drv_responder_line(pool->responder, request->peer));
	return !shared;
}

/* A layer that made up a channel would have failed its conformance suite; memory is kept from it all the same. */
static uint32_t channel_of(const struct drv_worker_pool *pool, uint32_t peer)
{
	return (uint32_t)(drv_responder_line(pool->responder, peer) - pool->responder->lines);
}

static void answered_in_place(struct drv_worker_pool *pool, uint32_t channel)
{
	count_answer(pool, channel, pool->lines[channel].came++);
	pool->came++;
	pool->responder->waits = true;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_worker_pool *pool = ((struct drv_responder *)sink)->pool;
	struct drv_request request = {.peer = channel_of(pool, peer)};
	enum cadge_keep keep;

	if (drv_trailer_read(data, bytes, DRV_RPC_REQUEST, &request.id) &&
	    pass_on(pool, data, bytes - DRV_RPC_TRAILER_BYTES, &request))
		return CADGE_TAKEN;
	keep = pool->in_place.recv(sink, peer, data, bytes, lend);
	answered_in_place(pool, request.peer);
	return keep;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct drv_worker_pool *pool = ((struct drv_responder *)sink)->pool;
	const struct drv_request request = {.peer = channel_of(pool, peer), .reply_to = *reply_to};

	if (pass_on(pool, args, bytes, &request))
		return;
	pool->in_place.call(sink, peer, op, args, bytes, reply_to);
	answered_in_place(pool, request.peer);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_worker_pool *pool = ((struct drv_responder *)sink)->pool;
	const uint64_t job = token & ~(DRV_TOKEN_RESPONDER | DRV_TOKEN_POOL);

	if (!(token & DRV_TOKEN_POOL) || job >= pool->jobs.count ||
	    !drv_jobs_release(&pool->jobs, (uint32_t)job))
		drv_responder_on_sent(sink, peer, token, code);
	else if (code < 0 && code != CADGE_E_LOST)
		drv_responder_fail(pool->responder, code);
}

/* Works for what other threads passed on, and answers what others have worked for. */
static void collect(struct drv_worker_pool *pool)
{
	uint32_t job;

	pool->responder->waits = pool->responder->port.due;
	pool->busy_polls = pool->came == pool->came_before ? 0 : pool->busy_polls + 1;
	pool->came_before = pool->came;
	drv_jobs_collect(&pool->jobs);
	while (drv_jobs_first(&pool->jobs, &job) &&
	       (pool->copies ? answer_written(pool, job) : answer(pool, job)))
		drv_jobs_pop(&pool->jobs);
	/* who asks the port alone collects after every poll */
	pool->responder->port.due = true;
}

/* Memory for a request and an answer of each job. */
static int take_copies(struct drv_worker_pool *pool, uint32_t count, struct drv_fail *fail)
{
	const struct drv_responder *responder = pool->responder;
	const size_t request_stride = drv_memory_stride(responder->exchange.request_bytes);
	/* no client of this endpoint uses that pool */
	uint8_t *memory = drv_pool_take(responder->port.engine, DRV_POOL_REQUESTER,
					count * (request_stride + responder->stride), fail);

	for (uint32_t i = 0; memory && i < count; i++) {
		pool->requests[i].copy = memory + i * request_stride;
		pool->requests[i].reply = memory + count * request_stride + i * responder->stride;
	}
	return memory ? 0 : -1;
}

int drv_worker_pool_start(struct drv_worker_pool *pool, struct drv_responder *responder,
			  enum drv_policy policy, drv_worker_fn work, void *arg, struct drv_queue *common,
			  struct drv_fail *fail)
{
	struct drv_engine *engine = responder->port.engine;
	/* twice as many as clients may have outstanding, so that a late completion holds up nothing; of a queue, its room */
	uint32_t count = engine->channels_count * drv_responder_outstanding(&responder->exchange) * 2;

	if (policy == DRV_POLICY_SHARED && count > DRV_JOBS_SHARE)
		count = DRV_JOBS_SHARE;
	pool->responder = responder;
	pool->copies = !work;
	pool->requests = calloc(count, sizeof(*pool->requests));
	if (!pool->requests)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for requests that are passed on");
	if (pool->copies && take_copies(pool, count, fail))
		return -1;
	pool->in_place = responder->port.sink;
	responder->port.sink.recv = on_recv;
	responder->port.sink.call = on_call;
	responder->port.sink.sent = on_sent;
	responder->port.due = true;
	responder->pool = pool;
	responder->collect = collect;
	return drv_jobs_start(&pool->jobs, engine, policy, count, work ? work : work_on_copy,
			      work ? arg : pool, common, fail);
}

void drv_worker_pool_stop(struct drv_worker_pool *pool)
{
	drv_jobs_stop(&pool->jobs);
	free(pool->requests);
	memset(pool, 0, sizeof(*pool));
}

/* ---- the role ---- */

DRV_INLINE bool pool_due(void *arg)
{
	return drv_worker_pool_due(((const struct drv_responder *)arg)->pool);
}

int drv_responder_role_prepare(struct drv_role_run *run, struct drv_exchange exchange, struct drv_fail *fail)
{
	run->sleep = exchange.depth == 1 ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
	return drv_responder_start(run->state, run->engine, exchange, fail);
}

/* A request that one at a time is asked with: its key says how large its answer is. */
static enum cadge_keep on_asked(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				struct cadge_lend *lend)
{
	struct drv_responder *responder = (struct drv_responder *)sink;
	struct drv_check *check = &responder->lines->check;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes < DRV_HEAD_BYTES)) {
		drv_check_wrong(check, "a message of %zu bytes that is no request", bytes);
		return CADGE_TAKEN;
	}
	key = drv_check_take(check, data, bytes);
	if (DRV_UNLIKELY(drv_ask_bytes(key) < DRV_HEAD_BYTES ||
			 drv_ask_bytes(key) > responder->answer_bytes)) {
		drv_check_wrong(check, "a request for an answer of %zu bytes, where there are %u to %zu",
				drv_ask_bytes(key), DRV_HEAD_BYTES, responder->answer_bytes);
		return CADGE_TAKEN;
	}
	responder->message.bytes = drv_ask_bytes(key);
	drv_responder_due_latest(responder, key);
	return CADGE_TAKEN;
}

int drv_responder_role_prepare_asked(struct drv_role_run *run, drv_recv_fn recv, size_t answer_max,
				     bool touch, struct drv_fail *fail)
{
	const struct drv_exchange exchange = {.form = DRV_FORM_BARE,
					      .reply_bytes = answer_max,
					      .depth = 1,
					      .seed = run->seed,
					      .touch = touch ? DRV_TOUCH_WRITE_READ : DRV_TOUCH_NONE};
	struct drv_responder *responder = run->state;

	if (drv_responder_role_prepare(run, exchange, fail))
		return -1;
	responder->port.sink.recv = recv ? recv : on_asked;
	/* two buffers in turn, of whatever size: the requester has read the one before */
	responder->reuse_last = false;
	responder->lines->check.by_number = false;
	return 0;
}

void drv_responder_role_stop(struct drv_role_run *run)
{
	drv_responder_stop(run->state);
}

/* Compiled with and without workers, so that it is not asked each turn. */
int drv_responder_role_serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct drv_responder *responder = run->state;

	return responder->pool ? drv_poll_until_message(run->engine, &responder->port.sink, responder,
							pool_due, drv_responder_drain, message_out, fail)
			       : drv_poll_until_message(run->engine, &responder->port.sink, responder,
							drv_responder_loop_due, drv_responder_drain,
							message_out, fail);
}

int drv_responder_role_serve_latest(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct drv_responder *responder = run->state;

	return drv_poll_until_message(run->engine, &responder->port.sink, responder, drv_responder_loop_due,
				      drv_responder_drain_latest, message_out, fail);
}

void drv_responder_role_phase(struct drv_role_run *run, const struct drv_phase *phase,
			      struct drv_counts *counts_out)
{
	drv_responder_phase(run->state, phase, counts_out);
}
