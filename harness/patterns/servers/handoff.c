/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests on their way to another thread and back: copies, order, and answers that the layer has no room for. */
#include "servers/handoff.h"

#include <stdlib.h>
#include <string.h>

/* Any thread: reads the request, does what the handler does, writes the answer. */
static uint64_t work_for(void *arg, uint32_t worker, uint64_t job)
{
	const struct drv_handoff *handoff = arg;
	const struct drv_exchange *exchange = &handoff->exchange;
	struct drv_errand *errand = &handoff->errands[job];
	const struct drv_check *check = &errand->server->check;
	/* key, id and place in there are the owner's, who may answer another request now */
	const struct drv_message *like = &errand->server->message;
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
		errand->good &= drv_check_late(check, errand->request, (size_t)exchange->request_bytes) ||
				drv_check_holds(check, errand->request, (size_t)exchange->request_bytes,
						errand->work.key);
	if (handoff->service)
		drv_service_do(handoff->service, errand->work.key);
	drv_message_write(&reply);
	return job;
}

static void __attribute__((cold, noinline)) note_failure(struct drv_handoff *handoff, const char *what,
							 int code)
{
	if (!handoff->failed)
		drv_engine_fail(what, code, &handoff->fail);
	handoff->failed = true;
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
	const struct drv_engine *engine = handoff->jobs.engine;
	const struct drv_exchange *exchange = &handoff->exchange;
	struct drv_errand *errand = &handoff->errands[job];
	struct drv_check *check = &errand->server->check;
	const uint64_t token = DRV_TOKEN_SERVER | DRV_TOKEN_HANDED_OFF | job;
	const struct cadge_iov iov = {errand->reply,
				      (size_t)drv_form_bytes(exchange->form, exchange->reply_bytes)};
	const bool native = exchange->form == DRV_FORM_NATIVE;
	const int code =
		native ? engine->layer->reply(engine->ctx, &errand->work.reply_to, &iov, 1, 0, token)
		       : engine->layer->post(errand->server->chans[errand->work.peer], &iov, 1, 0, token);

	if (code == CADGE_BUSY)
		return false;
	check->full_checked += check->full;
	drv_check_judge(check, errand->good, errand->work.key, (size_t)exchange->request_bytes);
	count_answer(handoff, errand->channel, errand->place);
	if (code == CADGE_QUEUED)
		return true;
	drv_jobs_release(&handoff->jobs, job);
	if (code != CADGE_DONE)
		note_failure(handoff, native ? "reply" : "post", code);
	return true;
}

bool drv_handoff_pass(struct drv_handoff *handoff, struct drv_server *server, uint32_t channel,
		      const void *request, size_t bytes, const struct drv_work *work)
{
	struct drv_errand *errand;
	uint32_t job;

	if (!drv_jobs_take(&handoff->jobs, &job))
		return false;
	errand = &handoff->errands[job];
	errand->server = server;
	errand->channel = channel;
	errand->work = *work;
	errand->place = handoff->lines[channel].came++;
	errand->good = drv_check_head(&server->check, request, bytes, &errand->work.key);
	memcpy(errand->request, request, bytes);
	handoff->came++;
	drv_jobs_submit(&handoff->jobs, job);
	return true;
}

void drv_handoff_answered(struct drv_handoff *handoff, uint32_t channel)
{
	count_answer(handoff, channel, handoff->lines[channel].came++);
	handoff->came++;
}

int drv_handoff_drain(struct drv_handoff *handoff)
{
	uint32_t job;

	handoff->busy_polls = handoff->came == handoff->came_before ? 0 : handoff->busy_polls + 1;
	handoff->came_before = handoff->came;
	drv_jobs_collect(&handoff->jobs);
	while (drv_jobs_first(&handoff->jobs, &job) && answer(handoff, job))
		drv_jobs_pop(&handoff->jobs);
	return handoff->failed ? -1 : 0;
}

bool drv_handoff_sent(struct drv_handoff *handoff, uint64_t token, int code)
{
	const uint64_t job = token & ~(DRV_TOKEN_SERVER | DRV_TOKEN_HANDED_OFF);

	if (job >= handoff->jobs.count || !drv_jobs_release(&handoff->jobs, (uint32_t)job))
		return false;
	if (code < 0 && code != CADGE_E_LOST)
		note_failure(handoff, "post", code);
	return true;
}

/* Twice as many as clients may have outstanding, so that a late completion holds up nothing; of a queue, its room. */
static uint32_t errands_of(const struct drv_engine *engine, const struct drv_exchange *exchange, bool shared)
{
	const uint32_t wanted = engine->channels_count * drv_server_outstanding(exchange) * 2;

	return shared && wanted > DRV_JOBS_SHARE ? DRV_JOBS_SHARE : wanted;
}

int drv_handoff_start(struct drv_handoff *handoff, struct drv_engine *engine, struct drv_exchange exchange,
		      struct drv_service *service, struct drv_queue *common, struct drv_fail *fail)
{
	const size_t request_stride = drv_memory_stride(exchange.request_bytes);
	const size_t reply_stride = drv_memory_stride(drv_form_bytes(exchange.form, exchange.reply_bytes));
	const uint32_t count = errands_of(engine, &exchange, common != NULL);
	uint8_t *memory;

	*handoff = (struct drv_handoff){.exchange = exchange, .service = service};
	handoff->errands = calloc(count, sizeof(*handoff->errands));
	if (!handoff->errands)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for requests that are passed on");
	/* no client of this endpoint uses that pool */
	memory = drv_pool_take(engine, DRV_POOL_CLIENT, count * (request_stride + reply_stride), fail);
	if (!memory)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		handoff->errands[i].request = memory + i * request_stride;
		handoff->errands[i].reply = memory + count * request_stride + i * reply_stride;
	}
	return drv_jobs_start(&handoff->jobs, engine, common ? DRV_POLICY_SHARED : DRV_POLICY_LEAST_LOADED,
			      count, work_for, handoff, common, fail);
}

void drv_handoff_stop(struct drv_handoff *handoff)
{
	drv_jobs_stop(&handoff->jobs);
	free(handoff->errands);
	handoff->errands = NULL;
}
