/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One role in one attempt: its state, its steps, what it counted. Where several threads have it, each goes through the
 * same, and what they counted and recorded is added up here.
 */
#include "session/role_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/self.h"
#include "threads/threads.h"
#include "traffic/payload.h"

#define COUNT_NS UINT64_C(15000000)

const struct drv_role *drv_role_here(const struct drv_engine *engine, const struct drv_point *point)
{
	if (engine->self)
		return drv_role_requester(point->pattern);
	return drv_role_find(point->pattern, engine->launch->endpoints[engine->endpoint].role);
}

/* A job of all threads on the role run of each. */
struct job {
	struct drv_role_run *run;
	size_t index;
	enum drv_step step;
	uint64_t serial;
	const struct drv_phase *phase;
	/* by thread */
	struct drv_usage usage[DRV_THREADS_MAX];
	struct drv_counts counts[DRV_THREADS_MAX];
	bool settled[DRV_THREADS_MAX];
};

static struct drv_role_run *run_of(const struct job *job, const struct drv_engine *engine)
{
	return engine->thread ? &job->run->others[engine->thread - 1] : job->run;
}

static int start_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	const struct job *job = arg;
	const struct drv_point *point = &engine->launch->points[job->index];
	const struct drv_role *role = drv_role_here(engine, point);
	struct drv_role_run *run = run_of(job, engine);

	run->engine = engine;
	run->pattern = point->pattern;
	run->role = role;
	run->parameters = point->parameters;
	run->seed = drv_mix(engine->launch->seed, job->index + 1);
	run->duration_ns = point->duration_ns;
	run->shared = job->run->shared;
	run->state = drv_zeroed(DRV_STATE_ALIGN, role->state_bytes);
	if (!run->state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	return engine->self ? drv_self_prepare(run, fail) : role->prepare(run, fail);
}

static int stop_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	struct drv_role_run *run = run_of(arg, engine);

	(void)fail;
	/* the layer is polled on: what comes now is nobody's */
	if (engine->port.engine)
		engine->sink = &engine->port.sink;
	drv_self_stop(run);
	if (run->state && run->role->stop)
		run->role->stop(run);
	free(run->state);
	run->state = NULL;
	if (engine->thread && run->record) {
		drv_record_free(run->record);
		free(run->record);
	}
	return 0;
}

int drv_role_run_start(struct drv_role_run *run, struct drv_engine *engine, size_t index,
		       struct drv_record *record, struct drv_fail *fail)
{
	const struct drv_role *role = drv_role_here(engine, &engine->launch->points[index]);
	const uint32_t others = drv_threads_size(engine);
	struct job job = {.run = run, .index = index};

	*run = (struct drv_role_run){.engine = engine, .record = record};
	if (role->shared_bytes) {
		run->shared = drv_zeroed(DRV_STATE_ALIGN, role->shared_bytes);
		if (!run->shared)
			return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	}
	if (others) {
		run->others = calloc(others, sizeof(*run->others));
		for (uint32_t i = 0; run->others && i < others; i++) {
			run->others[i].record = malloc(sizeof(struct drv_record));
			if (!run->others[i].record)
				return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
			drv_record_start(run->others[i].record, record->quantities);
		}
		if (!run->others)
			return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	}
	return drv_threads_all(engine, start_one, &job, fail);
}

void drv_role_run_stop(struct drv_role_run *run)
{
	struct job job = {.run = run};
	struct drv_fail ignored;

	if (!run->engine)
		return;
	drv_events_end(&run->engine->events);
	if (!drv_threads_size(run->engine) || run->others)
		drv_threads_all(run->engine, stop_one, &job, &ignored);
	free(run->others);
	free(run->shared);
	run->others = NULL;
	run->shared = NULL;
}

/* A warm-up that is long enough to count in. */
static int count_one(struct drv_role_run *run, struct drv_fail *fail)
{
	const uint64_t cap_ns = drv_warmup_cap_ns(run->duration_ns);
	int status;

	drv_warmup_last(drv_clock_to_ticks(&run->engine->clock, COUNT_NS));
	status = run->role->warmup(run, cap_ns + COUNT_NS, fail);
	drv_warmup_last(0);
	return status;
}

static int serve_alone(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct drv_engine *engine = run->engine;
	const struct drv_idle *idle = drv_engine_idle(engine);
	int status = 0;

	if (run->role->serve)
		return run->role->serve(run, message_out, fail);
	if (!idle)
		return drv_oob_receive(engine->oob, idle, engine->deadline_ns, message_out, fail);
	while (!status && !(status = idle->step(idle->arg, fail)))
		status = drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), message_out, fail);
	return status < 0 ? -1 : 0;
}

/*
 * Everything that a thread with a context does while a point is measured, as the role that measures or in serve (then with a message_out).
 * harness/bench/instructions.py counts what happens below this function, by its name: keep it a function of its own.
 */
int drv_measured(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	const int status = message_out ? serve_alone(run, message_out, fail) : run->role->measure(run, fail);

	/* no jump to the role's function in place of a call: the count would not end with it */
	__asm__ volatile("" ::: "memory");
	return status;
}

static int step_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	struct job *job = arg;
	struct drv_role_run *run = run_of(job, engine);
	struct drv_usage before, after;
	int status;

	memset(&job->usage[engine->thread], 0, sizeof(job->usage[0]));
	drv_warmup_count(drv_engine_operations(engine));
	switch (job->step) {
	case DRV_STEP_VERIFY: return run->role->verify(run, job->serial, fail);
	case DRV_STEP_COUNT: return count_one(run, fail);
	case DRV_STEP_WARMUP: return run->role->warmup(run, drv_warmup_cap_ns(run->duration_ns), fail);
	case DRV_STEP_MEASURE: break;
	}
	drv_usage_read(&before);
	status = drv_measured(run, NULL, fail);
	drv_usage_read(&after);
	job->usage[engine->thread] = drv_usage_since(&before, &after);
	return status;
}

/* Another thread's step; then it works for others, until the first thread calls all back. */
static int step_other(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	const int status = step_one(engine, arg, fail);
	json_t *message;

	drv_threads_arrive(engine);
	return status ? -1 : drv_role_run_serve_alone(run_of(arg, engine), &message, fail);
}

/* Works for others; a message is put back, the recall is not. */
static int serve_until_recalled(struct drv_role_run *run, struct drv_fail *fail)
{
	for (;;) {
		json_t *message;

		if (drv_role_run_serve_alone(run, &message, fail))
			return -1;
		if (json_is_null(message))
			return 0;
		drv_oob_put_back(run->engine->oob, message);
		/* whoever sent it waits for us, and we for the recall */
		if (drv_engine_poll_oob(run->engine, drv_clock_now(&run->engine->clock), NULL, fail))
			return -1;
	}
}

/* The first thread's step, and then it serves until the others have done theirs; whoever is done serves meanwhile. */
static int step_all(struct drv_role_run *run, struct job *job, struct drv_fail *fail)
{
	struct drv_engine *engine = run->engine;
	struct drv_fail why;
	int status;

	drv_threads_post(engine, step_other, job);
	status = step_one(engine, job, fail);
	drv_threads_watch(engine);
	if (!status)
		status = serve_until_recalled(run, fail);
	drv_threads_recall(engine);
	if (drv_threads_join(engine, &why) && !status) {
		*fail = why;
		status = -1;
	}
	for (uint32_t i = 0; i < drv_threads_size(engine); i++) {
		drv_usage_add_thread(&job->usage[0], &job->usage[i + 1]);
		drv_record_add(run->record, run->others[i].record, job->step != DRV_STEP_MEASURE);
	}
	return status;
}

int drv_role_run_step(struct drv_role_run *run, enum drv_step step, uint64_t serial,
		      struct drv_usage *usage_out, struct drv_fail *fail)
{
	struct drv_events *events = &run->engine->events;
	struct job job;
	int status;

	job.run = run;
	job.step = step;
	job.serial = serial;
	if (step == DRV_STEP_WARMUP)
		drv_events_end(events); /* of launches in which endpoint 0 cannot count, but others can */
	if (step == DRV_STEP_MEASURE)
		drv_events_count_cycles(events);
	drv_events_begin(events);
	status = run->others ? step_all(run, &job, fail) : step_one(run->engine, &job, fail);
	if (status)
		drv_self_explain(run, fail);
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
static void add_responder(struct drv_role_run *responder, const struct drv_phase *phase,
			  struct drv_counts *sum)
{
	struct drv_counts counts = {0};

	responder->role->phase(responder, phase, &counts);
	add_counts(sum, &counts);
}

static int phase_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	struct job *job = arg;
	struct drv_role_run *run = run_of(job, engine);
	struct drv_counts *counts = &job->counts[engine->thread];

	(void)fail;
	memset(counts, 0, sizeof(*counts));
	run->role->phase(run, job->phase, counts);
	if (run->responder)
		add_responder(run->responder, job->phase, counts);
	run->serves_measurement = !drv_role_measures(run->role, run->parameters) &&
				  job->phase->ended == DRV_STEP_WARMUP && !job->phase->last;
	counts->waits = engine->waits;
	drv_usage_read(&counts->usage);
	drv_counters_read(engine->layer, engine->ctx, &counts->layer);
	return 0;
}

/* What is counted begins and ends with phases; what measures reads it at the ends of its own steps. */
static void count_phase(const struct drv_role_run *run, const struct drv_phase *phase,
			struct drv_usage *usage)
{
	struct drv_events *events = &run->engine->events;

	if (!drv_usage_follows())
		drv_events_read(events, usage); /* else the work is another process's: not counted */
	if (phase->last || phase->ended == DRV_STEP_MEASURE)
		drv_events_end(events);
	else if (phase->ended == DRV_STEP_VERIFY)
		drv_events_count_calls(events);
	else if (phase->ended == DRV_STEP_WARMUP && !run->role->measures)
		drv_events_count_cycles(events);
	/* after COUNT it is for the caller to end it, once all have been told: it takes long */
}

void drv_role_run_phase(struct drv_role_run *run, const struct drv_phase *phase,
			struct drv_counts *counts_out)
{
	struct job job;
	struct drv_fail ignored;

	job.run = run;
	job.phase = phase;
	drv_threads_all(run->engine, phase_one, &job, &ignored);
	*counts_out = job.counts[0];
	for (uint32_t i = 0; i < drv_threads_size(run->engine); i++) {
		add_counts(counts_out, &job.counts[i + 1]);
		/* of threads that measure, each step has added what they recorded */
		if (phase->last && !run->role->measures)
			drv_record_add(run->record, run->others[i].record, false);
	}
	count_phase(run, phase, &counts_out->usage);
}

static int settle_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	struct job *job = arg;
	struct drv_role_run *run = run_of(job, engine);

	(void)fail;
	job->settled[engine->thread] = !run->role->settle || run->role->settle(run);
	return 0;
}

bool drv_role_run_settle(struct drv_role_run *run)
{
	struct job job;
	struct drv_fail ignored;
	bool settled;

	job.run = run;
	drv_threads_all(run->engine, settle_one, &job, &ignored);
	settled = job.settled[0];
	for (uint32_t i = 0; i < drv_threads_size(run->engine); i++)
		settled &= job.settled[i + 1];
	return settled;
}

int drv_role_run_serve_alone(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	return run->serves_measurement ? drv_measured(run, message_out, fail)
				       : serve_alone(run, message_out, fail);
}

static int serve_one(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	json_t *message;

	return drv_role_run_serve_alone(run_of(arg, engine), &message, fail);
}

int drv_role_run_serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct drv_engine *engine = run->engine;
	struct job job;
	struct drv_fail why;
	int status;

	if (!run->others)
		return drv_role_run_serve_alone(run, message_out, fail);
	job.run = run;
	drv_threads_post(engine, serve_one, &job);
	status = drv_role_run_serve_alone(run, message_out, fail);
	drv_threads_recall(engine);
	if (drv_threads_join(engine, &why) && !status) {
		json_decref(*message_out);
		*fail = why;
		status = -1;
	}
	return status;
}
