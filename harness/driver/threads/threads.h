/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of an endpoint beside its first, where its role is played by several. Each has a core, a context and an
 * engine of its own, and does what the first thread orders; between orders it polls its layer, as whoever waits does.
 * The out-of-band channel is the first thread's alone.
 */
#ifndef DRV_THREADS_H
#define DRV_THREADS_H

#include <pthread.h>

#include "engine/engine.h"
#include "measure/pin.h"

/* A thread on a core. All zero: one that was not started. */
struct drv_thread {
	pthread_t id;
	bool started;
	int cpu;
	void (*run)(void *arg);
	void *arg;
	/* checked when `run` returns */
	struct drv_pin pin;
};

/* Starts run(arg) on that core; -1: on any. `number` names the thread in *fail. 0 or -1. */
int drv_thread_start(struct drv_thread *thread, int cpu, void (*run)(void *arg), void *arg, uint32_t number,
		     struct drv_fail *fail);
/* Waits until it has ended. Legal where it was not started. */
void drv_thread_join(struct drv_thread *thread);
/* Notes in engine->left_core that this thread left its core, unless another one did so before. */
void drv_thread_note_core(const struct drv_thread *thread, const char *what, uint32_t number,
			  struct drv_engine *engine);

/* What a thread does, on its own engine (engine->thread tells which it is). 0, or -1 with *fail. */
typedef int (*drv_thread_fn)(struct drv_engine *engine, void *arg, struct drv_fail *fail);

/* Starts the other threads of this endpoint, pinned to their cores; nothing where it has one. `engine` is the first's. */
int drv_threads_start(struct drv_engine *engine, struct drv_fail *fail);
/* Ends them. Legal without. */
void drv_threads_end(struct drv_engine *engine);

/* How many there are beside the first. */
uint32_t drv_threads_size(const struct drv_engine *engine);

/* Begins a job in all other threads. `arg` stays until drv_threads_join. */
void drv_threads_post(struct drv_engine *engine, drv_thread_fn job, void *arg);
/* Inside a job of another thread: says that it has come so far. */
void drv_threads_arrive(struct drv_engine *engine);
/*
 * Makes drv_engine_poll_oob of the first thread, where it takes messages, return JSON's null once all others have come so far.
 */
void drv_threads_watch(struct drv_engine *engine);
/* Tells the other threads to come back: those that serve are done, those that act give up. */
void drv_threads_recall(struct drv_engine *engine);
/* Waits until the job is done, polling the layer. 0, or -1 with the reason of the first thread that failed. */
int drv_threads_join(struct drv_engine *engine, struct drv_fail *fail);

/* All three: the job in every thread, the first included. Its own failure counts most. */
int drv_threads_all(struct drv_engine *engine, drv_thread_fn job, void *arg, struct drv_fail *fail);

/* Whether all other threads, and all workers that have ended, stayed on their cores; `detail` gets the first that did not. */
bool drv_threads_pinned(struct drv_engine *engine, char *detail, size_t detail_bytes);

#endif
