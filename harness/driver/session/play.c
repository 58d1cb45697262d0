/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One role in one attempt: its state, its steps, what it counted. Where several threads play it, each goes through the
 * same, and what they counted and recorded is added up here.
 */
#include "session/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/self.h"
#include "threads/threads.h"
#include "traffic/payload.h"

#define COUNT_NS UINT64_C(15000000)

const struct drv_role *drv_play_role(const struct drv_engine *engine, const struct drv_point *point)
{
	if (engine->self)
		return drv_role_acting(point->pattern);
	return drv_role_find(point->pattern, engine->launch->endpoints[engine->endpoint].role);
}

/* A job of all threads on the play of each. */
struct job {
	struct drv_play *play;
	size_t index;
	enum drv_step step;
	uint64_t serial;
	const struct drv_phase *phase;
	/* by thread */
	struct drv_usage usage[DRV_THREADS_MAX];
	struct drv_counts counts[DRV_THREADS_MAX];
	bool settled[DRV_THREADS_MAX];
};

static struct drv_play *play_of(const struct job *job, const struct drv_engine *engine)
{
	return engine->thread ? &job->play->others[engine->thread - 1] : job->play;
}

static int start_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	const struct job *job = arg;
	const struct drv_point *point = &engine->launch->points[job->index];
	const struct drv_role *role = drv_play_role(engine, point);
	struct drv_play *play = play_of(job, engine);

	play->engine = engine;
	play->pattern = point->pattern;
	play->role = role;
	play->parameters = point->parameters;
	play->seed = drv_mix(engine->launch->seed, job->index + 1);
	play->duration_ns = point->duration_ns;
	play->shared = job->play->shared;
	play->state = drv_zeroed(role->state_bytes);
	if (!play->state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	return engine->self ? drv_self_prepare(play, fail) : role->prepare(play, fail);
}

static int stop_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	struct drv_play *play = play_of(arg, engine);

	(void)fail;
	/* the layer is polled on: what comes now is nobody's */
	if (engine->port.engine)
		engine->sink = &engine->port.sink;
	drv_self_stop(play);
	if (play->state && play->role->stop)
		play->role->stop(play);
	free(play->state);
	play->state = NULL;
	if (engine->thread && play->record) {
		drv_record_free(play->record);
		free(play->record);
	}
	return 0;
}

int drv_play_start(struct drv_play *play, struct drv_engine *engine, size_t index, struct drv_record *record,
		   struct drv_fail *fail)
{
	const struct drv_role *role = drv_play_role(engine, &engine->launch->points[index]);
	const uint32_t others = drv_threads_size(engine);
	struct job job = {.play = play, .index = index};

	*play = (struct drv_play){.engine = engine, .record = record};
	if (role->shared_bytes) {
		play->shared = drv_zeroed(role->shared_bytes);
		if (!play->shared)
			return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	}
	if (others) {
		play->others = calloc(others, sizeof(*play->others));
		for (uint32_t i = 0; play->others && i < others; i++) {
			play->others[i].record = malloc(sizeof(struct drv_record));
			if (!play->others[i].record)
				return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
			drv_record_start(play->others[i].record, record->quantities);
		}
		if (!play->others)
			return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	}
	return drv_threads_all(engine, start_one, &job, fail);
}

void drv_play_stop(struct drv_play *play)
{
	struct job job = {.play = play};
	struct drv_fail ignored;

	if (!play->engine)
		return;
	drv_events_end(&play->engine->events);
	if (!drv_threads_size(play->engine) || play->others)
		drv_threads_all(play->engine, stop_one, &job, &ignored);
	free(play->others);
	free(play->shared);
	play->others = NULL;
	play->shared = NULL;
}

/* A warm-up that is long enough to count in. */
static int count_one(struct drv_play *play, struct drv_fail *fail)
{
	const uint64_t cap_ns = drv_warmup_cap_ns(play->duration_ns);
	int status;

	drv_warmup_last(drv_clock_to_ticks(&play->engine->clock, COUNT_NS));
	status = play->role->warmup(play, cap_ns + COUNT_NS, fail);
	drv_warmup_last(0);
	return status;
}

static int serve_alone(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;
	const struct drv_idle *idle = drv_engine_idle(engine);
	int status = 0;

	if (play->role->serve)
		return play->role->serve(play, message_out, fail);
	if (!idle)
		return drv_oob_receive(engine->oob, idle, engine->deadline_ns, message_out, fail);
	while (!status && !(status = idle->step(idle->arg, fail)))
		status = drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), message_out, fail);
	return status < 0 ? -1 : 0;
}

/*
 * Everything that a thread with a context does while a point is measured, acting or serving (then with a message_out).
 * harness/bench/instructions.py counts what happens below this function, by its name: keep it a function of its own.
 */
int drv_measured(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	const int status =
		message_out ? serve_alone(play, message_out, fail) : play->role->measure(play, fail);

	/* no jump to the role's function in place of a call: the count would not end with it */
	__asm__ volatile("" ::: "memory");
	return status;
}

static int step_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	struct job *job = arg;
	struct drv_play *play = play_of(job, engine);
	struct drv_usage before, after;
	int status;

	memset(&job->usage[engine->thread], 0, sizeof(job->usage[0]));
	drv_warmup_count(drv_engine_operations(engine));
	switch (job->step) {
	case DRV_STEP_VERIFY: return play->role->verify(play, job->serial, fail);
	case DRV_STEP_COUNT: return count_one(play, fail);
	case DRV_STEP_WARMUP: return play->role->warmup(play, drv_warmup_cap_ns(play->duration_ns), fail);
	case DRV_STEP_MEASURE: break;
	}
	drv_usage_read(&before);
	status = drv_measured(play, NULL, fail);
	drv_usage_read(&after);
	job->usage[engine->thread] = drv_usage_since(&before, &after);
	return status;
}

/* Another thread's step; then it works for others, until the first thread calls all back. */
static int step_other(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	const int status = step_one(engine, arg, fail);
	json_t *message;

	drv_threads_reach(engine);
	return status ? -1 : drv_play_serve_alone(play_of(arg, engine), &message, fail);
}

/* Works for others; a message is put back, the recall is not. */
static int serve_until_recalled(struct drv_play *play, struct drv_fail *fail)
{
	for (;;) {
		json_t *message;

		if (drv_play_serve_alone(play, &message, fail))
			return -1;
		if (json_is_null(message))
			return 0;
		drv_oob_put_back(play->engine->oob, message);
		/* whoever sent it waits for us, and we for the recall */
		if (drv_engine_poll_oob(play->engine, drv_clock_now(&play->engine->clock), NULL, fail))
			return -1;
	}
}

/* The first thread's step, and then it serves until the others have done theirs; whoever is done serves meanwhile. */
static int step_all(struct drv_play *play, struct job *job, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;
	struct drv_fail why;
	int status;

	drv_threads_post(engine, step_other, job);
	status = step_one(engine, job, fail);
	drv_threads_watch(engine);
	if (!status)
		status = serve_until_recalled(play, fail);
	drv_threads_ring(engine);
	if (drv_threads_join(engine, &why) && !status) {
		*fail = why;
		status = -1;
	}
	for (uint32_t i = 0; i < drv_threads_size(engine); i++) {
		drv_usage_add_thread(&job->usage[0], &job->usage[i + 1]);
		drv_record_add(play->record, play->others[i].record, job->step != DRV_STEP_MEASURE);
	}
	return status;
}

int drv_play_step(struct drv_play *play, enum drv_step step, uint64_t serial, struct drv_usage *usage_out,
		  struct drv_fail *fail)
{
	struct drv_events *events = &play->engine->events;
	struct job job;
	int status;

	job.play = play;
	job.step = step;
	job.serial = serial;
	if (step == DRV_STEP_WARMUP)
		drv_events_end(events); /* of launches in which endpoint 0 cannot count, but others can */
	if (step == DRV_STEP_MEASURE)
		drv_events_count_cycles(events);
	drv_events_begin(events);
	status = play->others ? step_all(play, &job, fail) : step_one(play->engine, &job, fail);
	if (status)
		drv_self_explain(play, fail);
	*usage_out = job.usage[0];
	drv_events_read(events, usage_out);
	if (step == DRV_STEP_MEASURE)
		drv_events_end(events);
	return status;
}

/* What another thread or role counted, on top. */
static void add_counts(struct drv_counts *sum, const struct drv_counts *more)
{
	sum->posts |= more->posts;
	sum->posted += more->posted;
	sum->posted_keys += more->posted_keys;
	sum->executes |= more->executes;
	sum->exact |= more->exact;
	sum->executed += more->executed;
	sum->executed_keys += more->executed_keys;
	sum->checked += more->checked;
	sum->full_checked += more->full_checked;
	sum->waits += more->waits;
	for (int sort = 0; sort < 2; sort++) {
		sum->stamps.count[sort] += more->stamps.count[sort];
		sum->stamps.sum[sort] += more->stamps.sum[sort];
	}
	if (more->mismatches && !sum->mismatches)
		memcpy(sum->mismatch, more->mismatch, sizeof(sum->mismatch));
	sum->mismatches += more->mismatches;
	drv_usage_add_thread(&sum->usage, &more->usage);
	drv_counters_add(&sum->layer, &more->layer);
}

/* The other role of this process. */
static void add_passive(struct drv_play *passive, const struct drv_phase *phase, struct drv_counts *sum)
{
	struct drv_counts counts = {0};

	passive->role->phase(passive, phase, &counts);
	add_counts(sum, &counts);
}

static int phase_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	struct job *job = arg;
	struct drv_play *play = play_of(job, engine);
	struct drv_counts *counts = &job->counts[engine->thread];

	(void)fail;
	memset(counts, 0, sizeof(*counts));
	play->role->phase(play, job->phase, counts);
	if (play->passive)
		add_passive(play->passive, job->phase, counts);
	play->serves_measurement = !drv_role_acts(play->role, play->parameters) &&
				   job->phase->ended == DRV_STEP_WARMUP && !job->phase->last;
	counts->waits = engine->waits;
	drv_usage_read(&counts->usage);
	drv_counters_read(engine->layer, engine->ctx, &counts->layer);
	return 0;
}

/* What is counted begins and ends with phases; what acts reads it at the ends of its own steps. */
static void count_phase(const struct drv_play *play, const struct drv_phase *phase, struct drv_usage *usage)
{
	struct drv_events *events = &play->engine->events;

	if (!drv_usage_follows())
		drv_events_read(events, usage); /* else the work is another process's: not counted */
	if (phase->last || phase->ended == DRV_STEP_MEASURE)
		drv_events_end(events);
	else if (phase->ended == DRV_STEP_VERIFY)
		drv_events_count_calls(events);
	else if (phase->ended == DRV_STEP_WARMUP && !play->role->acts)
		drv_events_count_cycles(events);
	/* after COUNT it is for the caller to end it, once all have been told: it takes long */
}

void drv_play_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct job job;
	struct drv_fail ignored;

	job.play = play;
	job.phase = phase;
	drv_threads_all(play->engine, phase_one, &job, &ignored);
	*counts_out = job.counts[0];
	for (uint32_t i = 0; i < drv_threads_size(play->engine); i++) {
		add_counts(counts_out, &job.counts[i + 1]);
		/* of threads that act, each step has added what they recorded */
		if (phase->last && !play->role->acts)
			drv_record_add(play->record, play->others[i].record, false);
	}
	count_phase(play, phase, &counts_out->usage);
}

static int settle_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	struct job *job = arg;
	struct drv_play *play = play_of(job, engine);

	(void)fail;
	job->settled[engine->thread] = !play->role->settle || play->role->settle(play);
	return 0;
}

bool drv_play_settle(struct drv_play *play)
{
	struct job job;
	struct drv_fail ignored;
	bool settled;

	job.play = play;
	drv_threads_all(play->engine, settle_one, &job, &ignored);
	settled = job.settled[0];
	for (uint32_t i = 0; i < drv_threads_size(play->engine); i++)
		settled &= job.settled[i + 1];
	return settled;
}

int drv_play_serve_alone(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	return play->serves_measurement ? drv_measured(play, message_out, fail)
					: serve_alone(play, message_out, fail);
}

static int serve_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	json_t *message;

	return drv_play_serve_alone(play_of(arg, engine), &message, fail);
}

int drv_play_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;
	struct job job;
	struct drv_fail why;
	int status;

	if (!play->others)
		return drv_play_serve_alone(play, message_out, fail);
	job.play = play;
	drv_threads_post(engine, serve_one, &job);
	status = drv_play_serve_alone(play, message_out, fail);
	drv_threads_ring(engine);
	if (drv_threads_join(engine, &why) && !status) {
		json_decref(*message_out);
		*fail = why;
		status = -1;
	}
	return status;
}
