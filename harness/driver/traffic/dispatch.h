/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for servers that work before they answer: other threads (hands, see hands.h) do the work. The thread that
 * owns the context takes requests, gives them to whoever is free, and answers what is done. One queue for all: while
 * nobody is free requests wait here, in order, so that none stands behind a long one while another thread has nothing to
 * do. A thread has one request at a time.
 */
#ifndef DRV_DISPATCH_H
#define DRV_DISPATCH_H

#include "engine/engine.h"
#include "threads/hands.h"
#include "traffic/server.h"
#include "traffic/service.h"

/* A request, and whose it is. */
struct drv_job {
	struct drv_server *server;
	struct drv_work work;
};

struct drv_job_ring {
	struct drv_job *jobs;
	uint32_t head, tail, mask;
};

struct drv_dispatch {
	struct drv_engine *engine;
	/* threads; what each works with, what it works at, and those that have nothing to do */
	uint32_t count;
	struct drv_service *services;
	struct drv_job *given;
	uint32_t *idle;
	uint32_t idle_count;
	/* nobody has begun these; these are done and have no answer yet */
	struct drv_job_ring waiting, done;
};

/*
 * Starts the threads that the launch file gives the calling one: at least one. Each works as `service` does, which was
 * started, with memory of its own; `samples`: the time that each call takes is kept. `requests`: so many wait at most. 0,
 * or -1 with the reason. To be ended with drv_dispatch_stop either way, and legal without a start, on zeroes.
 */
int drv_dispatch_start(struct drv_dispatch *dispatch, struct drv_engine *engine,
		       const struct drv_service *service, uint64_t bytes, bool samples, uint32_t requests,
		       struct drv_fail *fail);
/* Ends the threads, wherever they are. */
void drv_dispatch_stop(struct drv_dispatch *dispatch);

/* Between phases, while nothing is outstanding: the draws count from `first` on, and calls take what is drawn, or not. */
void drv_dispatch_switch(struct drv_dispatch *dispatch, uint64_t first, bool on);
/* Adds what each thread has measured since it was last asked. Between phases as well. */
void drv_dispatch_collect(struct drv_dispatch *dispatch, struct drv_samples *into);

/* A request came. Legal inside a callback: the layer is not touched. False: too many wait already. */
bool drv_dispatch_take(struct drv_dispatch *dispatch, struct drv_server *server, const struct drv_work *work);
/* Answers what is done, as far as the layer takes it, and gives out what waits. Called after poll. */
void drv_dispatch_drain(struct drv_dispatch *dispatch);
/* Something is in the hands of a thread, or waits for an answer. */
static inline bool drv_dispatch_due(const struct drv_dispatch *dispatch)
{
	return dispatch->idle_count < dispatch->count || dispatch->done.head != dispatch->done.tail;
}

#endif
