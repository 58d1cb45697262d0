/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests on their way to another thread and back: copies, order, and answers that the layer has no room for. */
#include "servers/handoff.h"

#include <stdlib.h>
#include <string.h>

#include "traffic/progress.h"

static struct drv_check *check_of(const struct drv_errand *errand, const struct drv_handoff *handoff)
{
	return &drv_responder_line(&handoff->server, errand->work.peer)->check;
}

/* Any thread: reads the request, does what the handler does, writes the answer. */
static uint64_t work_for(void *arg, uint32_t worker, uint64_t job)
{
	const struct drv_handoff *handoff = arg;
	const struct drv_responder *server = &handoff->server;
	struct drv_errand *errand = &handoff->errands[job];
	const struct drv_check *check = check_of(errand, handoff);
	const size_t bytes = (size_t)server->exchange.request_bytes;
	/* key, id and place in there are the owner's, who may answer another request now */
	const struct drv_message *like = &server->message;
	struct drv_message reply = {.at = errand->reply,
				    .bytes = like->bytes,
				    .seed = like->seed,
				    .key = errand->work.key,
				    .full = like->full,
				    .touch = like->touch,
				    .phase = like->phase,
				    .trailer = like->trailer,
				    .id = errand->work.id};

	(void)worker;
	if (check->reads)
		errand->good &= drv_check_late(check, errand->request, bytes) ||
				drv_check_holds(check, errand->request, bytes, errand->work.key);
	if (server->service)
		drv_service_do(server->service, errand->work.key);
	drv_message_write(&reply);
	return job;
}

/* Counts an answer: whether one to a later request of the channel went before it. */
static void count_answer(struct drv_handoff *handoff, uint32_t channel, uint64_t place)
{
	if (place < handoff->lines[channel].answered)
		handoff->reordered++;
	else
		handoff->lines[channel].answered = place + 1;
}

/* Somebody has worked for it: gives the answer to the layer. False: it has no room now. */
static bool answer(struct drv_handoff *handoff, uint32_t job)
{
	struct drv_responder *server = &handoff->server;
	struct drv_errand *errand = &handoff->errands[job];
	struct drv_check *check = check_of(errand, handoff);
	const int code =
		drv_responder_hand_over(server, &errand->work, errand->reply, DRV_TOKEN_HANDED_OFF | job);

	if (code == CADGE_BUSY)
		return false;
	check->full_checked += check->full;
	drv_check_judge(check, errand->good, errand->work.key, (size_t)server->exchange.request_bytes);
	count_answer(handoff, errand->work.peer, errand->place);
	if (code == CADGE_QUEUED)
		return true;
	drv_jobs_release(&handoff->jobs, job);
	if (code != CADGE_DONE)
		drv_responder_fail(server, code);
	return true;
}

bool drv_handoff_pass(struct drv_handoff *handoff, const void *request, size_t bytes,
		      const struct drv_work *work)
{
	struct drv_errand *errand;
	uint32_t job;

	if (!drv_jobs_take(&handoff->jobs, &job))
		return false;
	errand = &handoff->errands[job];
	errand->work = *work;
	errand->place = handoff->lines[work->peer].came++;
	errand->good = drv_check_head(check_of(errand, handoff), request, bytes, &errand->work.key);
	memcpy(errand->request, request, bytes);
	handoff->came++;
	drv_jobs_submit(&handoff->jobs, job);
	return true;
}

/* Passes a request on, or drops it. False: it is to be answered in place. */
static bool pass_on(struct drv_handoff *handoff, const void *request, size_t bytes,
		    const struct drv_work *work)
{
	if (bytes != handoff->server.exchange.request_bytes || !drv_handoff_wants(handoff))
		return false;
	if (drv_handoff_pass(handoff, request, bytes, work))
		return true;
	if (handoff->jobs.policy == DRV_POLICY_SHARED)
		return false;
	drv_responder_drop(drv_responder_line(&handoff->server, work->peer));
	return true;
}

/* A layer that made up a channel would have failed its conformance suite; memory is kept from it all the same. */
static uint32_t channel_of(const struct drv_handoff *handoff, uint32_t peer)
{
	return (uint32_t)(drv_responder_line(&handoff->server, peer) - handoff->server.lines);
}

static void answered_in_place(struct drv_handoff *handoff, uint32_t channel)
{
	count_answer(handoff, channel, handoff->lines[channel].came++);
	handoff->came++;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_handoff *handoff = (struct drv_handoff *)sink;
	struct drv_work work = {.peer = channel_of(handoff, peer)};
	enum cadge_keep keep;

	if (drv_trailer_read(data, bytes, DRV_RPC_REQUEST, &work.id) &&
	    pass_on(handoff, data, bytes - DRV_RPC_TRAILER_BYTES, &work))
		return CADGE_TAKEN;
	keep = handoff->in_place.recv(sink, peer, data, bytes, lend);
	answered_in_place(handoff, work.peer);
	return keep;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct drv_handoff *handoff = (struct drv_handoff *)sink;
	const struct drv_work work = {.peer = channel_of(handoff, peer), .reply_to = *reply_to};

	if (pass_on(handoff, args, bytes, &work))
		return;
	handoff->in_place.call(sink, peer, op, args, bytes, reply_to);
	answered_in_place(handoff, work.peer);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_handoff *handoff = (struct drv_handoff *)sink;
	const uint64_t job = token & ~(DRV_TOKEN_RESPONDER | DRV_TOKEN_HANDED_OFF);

	if (!(token & DRV_TOKEN_HANDED_OFF) || job >= handoff->jobs.count ||
	    !drv_jobs_release(&handoff->jobs, (uint32_t)job))
		drv_responder_on_sent(sink, peer, token, code);
	else if (code < 0 && code != CADGE_E_LOST)
		drv_responder_fail(&handoff->server, code);
}

int drv_handoff_drain(struct drv_handoff *handoff, struct drv_fail *fail)
{
	uint32_t job;

	if (handoff->server.port.due && drv_responder_drain(&handoff->server, fail))
		return -1;
	if (!handoff->jobs.engine)
		return 0;
	handoff->busy_polls = handoff->came == handoff->came_before ? 0 : handoff->busy_polls + 1;
	handoff->came_before = handoff->came;
	drv_jobs_collect(&handoff->jobs);
	while (drv_jobs_first(&handoff->jobs, &job) && answer(handoff, job))
		drv_jobs_pop(&handoff->jobs);
	return 0;
}

DRV_INLINE bool due(void *arg)
{
	const struct drv_handoff *handoff = arg;

	return handoff->server.port.due || drv_jobs_due(&handoff->jobs);
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	return drv_handoff_drain(arg, fail);
}

int drv_handoff_run(struct drv_handoff *handoff, json_t **message_out, struct drv_fail *fail)
{
	struct drv_port *port = &handoff->server.port;

	return drv_serve_loop(port->engine, &port->sink, handoff, due, drain, message_out, fail);
}

/* Twice as many as clients may have outstanding, so that a late completion holds up nothing; of a queue, its room. */
static uint32_t errands_of(const struct drv_engine *engine, const struct drv_exchange *exchange, bool shared)
{
	const uint32_t wanted = engine->channels_count * drv_responder_outstanding(exchange) * 2;

	return shared && wanted > DRV_JOBS_SHARE ? DRV_JOBS_SHARE : wanted;
}

int drv_handoff_start(struct drv_handoff *handoff, struct drv_queue *common, struct drv_fail *fail)
{
	struct drv_responder *server = &handoff->server;
	const struct drv_exchange *exchange = &server->exchange;
	const size_t request_stride = drv_memory_stride(exchange->request_bytes);
	const uint32_t count = errands_of(server->port.engine, exchange, common != NULL);
	uint8_t *memory;

	handoff->errands = calloc(count, sizeof(*handoff->errands));
	if (!handoff->errands)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for requests that are passed on");
	/* no client of this endpoint uses that pool */
	memory = drv_pool_take(server->port.engine, DRV_POOL_REQUESTER,
			       count * (request_stride + server->stride), fail);
	if (!memory)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		handoff->errands[i].request = memory + i * request_stride;
		handoff->errands[i].reply = memory + count * request_stride + i * server->stride;
	}
	handoff->in_place = server->port.sink;
	server->port.sink.recv = on_recv;
	server->port.sink.call = on_call;
	server->port.sink.sent = on_sent;
	return drv_jobs_start(&handoff->jobs, server->port.engine,
			      common ? DRV_POLICY_SHARED : DRV_POLICY_LEAST_LOADED, count, work_for, handoff,
			      common, fail);
}

void drv_handoff_stop(struct drv_handoff *handoff)
{
	drv_jobs_stop(&handoff->jobs);
	free(handoff->errands);
	drv_responder_stop(&handoff->server);
	memset(handoff, 0, sizeof(*handoff));
}
