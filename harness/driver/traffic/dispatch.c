/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to threads and back. */
#include "traffic/dispatch.h"

#include <stdlib.h>
#include <string.h>

/* A thread's whole life. What a number says is the key of the request: all that the work depends on. */
static void serve_calls(struct drv_hand *hand, void *arg)
{
	const struct drv_dispatch *dispatch = arg;
	struct drv_service *service = &dispatch->services[drv_hand_index(hand)];
	uint64_t key;

	drv_service_settle_in(service);
	while (drv_hand_take(hand, &key)) {
		drv_service_do(service, key);
		if (!drv_hand_give(hand, key))
			return;
	}
}

static bool make_ring(struct drv_job_ring *ring, uint32_t room)
{
	uint32_t size = 1;

	while (size < room)
		size *= 2;
	ring->mask = size - 1;
	ring->jobs = calloc(size, sizeof(*ring->jobs));
	return ring->jobs != NULL;
}

static bool is_full(const struct drv_job_ring *ring)
{
	return ring->tail - ring->head > ring->mask;
}

static void put(struct drv_job_ring *ring, const struct drv_job *job)
{
	ring->jobs[ring->tail++ & ring->mask] = *job;
}

static int start_service(struct drv_service *service, const struct drv_service *like, uint64_t bytes,
			 bool samples, struct drv_fail *fail)
{
	if (drv_service_start(service, like->work, like->spread, like->mean_ns, bytes, true, like->seed,
			      like->clock, fail))
		return -1;
	service->samples = samples ? calloc(1, sizeof(*service->samples)) : NULL;
	if (samples && !service->samples)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for histograms");
	if (samples)
		drv_histogram_clear(&service->samples->histogram);
	return 0;
}

int drv_dispatch_start(struct drv_dispatch *dispatch, struct drv_engine *engine,
		       const struct drv_service *service, uint64_t bytes, bool samples, uint32_t requests,
		       struct drv_fail *fail)
{
	const uint32_t count = drv_hands_wanted(engine);

	memset(dispatch, 0, sizeof(*dispatch));
	if (!count)
		return drv_fail_set(fail, DRV_ARGUMENT, "the launch file gives this endpoint no workers");
	dispatch->engine = engine;
	dispatch->services = calloc(count, sizeof(*dispatch->services));
	dispatch->given = calloc(count, sizeof(*dispatch->given));
	dispatch->idle = calloc(count, sizeof(*dispatch->idle));
	if (!dispatch->services || !dispatch->given || !dispatch->idle ||
	    !make_ring(&dispatch->waiting, requests) || !make_ring(&dispatch->done, requests))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u workers", count);
	for (; dispatch->count < count; dispatch->count++)
		if (start_service(&dispatch->services[dispatch->count], service, bytes, samples, fail))
			return -1;
	/* the first one takes the first request */
	for (uint32_t i = 0; i < count; i++)
		dispatch->idle[dispatch->idle_count++] = count - 1 - i;
	return drv_hands_start(engine, serve_calls, dispatch, 1, fail);
}

void drv_dispatch_stop(struct drv_dispatch *dispatch)
{
	if (!dispatch->engine)
		return;
	drv_hands_end(dispatch->engine);
	for (uint32_t i = 0; dispatch->services && i < drv_hands_wanted(dispatch->engine); i++) {
		free(dispatch->services[i].samples);
		drv_service_stop(&dispatch->services[i]);
	}
	free(dispatch->services);
	free(dispatch->given);
	free(dispatch->idle);
	free(dispatch->waiting.jobs);
	free(dispatch->done.jobs);
	memset(dispatch, 0, sizeof(*dispatch));
}

void drv_dispatch_switch(struct drv_dispatch *dispatch, uint64_t first, bool on)
{
	/* whoever is given a number sees what was written before */
	for (uint32_t i = 0; i < dispatch->count; i++) {
		dispatch->services[i].first = first;
		dispatch->services[i].on = on;
	}
}

void drv_dispatch_collect(struct drv_dispatch *dispatch, struct drv_samples *into)
{
	for (uint32_t i = 0; i < dispatch->count; i++) {
		struct drv_samples *from = dispatch->services[i].samples;

		if (!from)
			continue;
		drv_samples_add(into, from);
		drv_histogram_clear(&from->histogram);
		from->first_count = 0;
	}
}

static void give_out(struct drv_dispatch *dispatch)
{
	while (dispatch->idle_count && dispatch->waiting.head != dispatch->waiting.tail) {
		const struct drv_job *job =
			&dispatch->waiting.jobs[dispatch->waiting.head & dispatch->waiting.mask];
		const uint32_t hand = dispatch->idle[dispatch->idle_count - 1];

		/* it has nothing to do, so there is room for one */
		if (!drv_hands_give(dispatch->engine, hand, job->work.key))
			return;
		dispatch->given[hand] = *job;
		dispatch->idle_count--;
		dispatch->waiting.head++;
	}
}

bool drv_dispatch_take(struct drv_dispatch *dispatch, struct drv_server *server, const struct drv_work *work)
{
	if (is_full(&dispatch->waiting))
		return false;
	put(&dispatch->waiting, &(struct drv_job){server, *work});
	give_out(dispatch);
	return true;
}

void drv_dispatch_drain(struct drv_dispatch *dispatch)
{
	struct drv_job_ring *done = &dispatch->done;
	uint64_t key;
	uint32_t hand;

	while (!is_full(done) && drv_hands_take(dispatch->engine, &hand, &key)) {
		put(done, &dispatch->given[hand]);
		dispatch->idle[dispatch->idle_count++] = hand;
	}
	/* before answers, which take the layer's time */
	give_out(dispatch);
	while (done->head != done->tail) {
		const struct drv_job *job = &done->jobs[done->head & done->mask];

		if (!drv_server_answer(job->server, &job->work))
			break;
		done->head++;
	}
}
