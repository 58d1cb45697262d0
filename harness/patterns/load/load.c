/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern load: an open loop of calls. They are due at instants that are fixed beforehand, at a rate that is given, or is
 * a share of what a closed loop of as many outstanding reaches in the same attempt; times are taken from those instants, so
 * that a call that had to wait before it was sent is not measured as if it had been due later (coordinated omission).
 */
#include "load.params.h"

#include <sys/prctl.h>

#include "launch/pattern.h"
#include "measure/arrivals.h"
#include "traffic/requester_parts.h"
#include "traffic/requester.h"

/* The state of the client. `requester` is first: the functions of its role take a pointer to it. */
struct load {
	struct drv_requester requester;
	struct drv_pace pace;
	/* of the closed loop, in the warm-up */
	uint64_t calls, span_ns;
};

static struct drv_exchange exchange_of(const struct parameters *parameters, const struct drv_ability *both,
				       uint64_t seed)
{
	return (struct drv_exchange){DRV_CALLS_OF(parameters, both, seed),
				     .depth = (uint32_t)parameters->depth};
}

DRV_EXCHANGE_RULES(exchange_of)

/* ---- the open loop ---- */

/* Hands over what is due, however many are outstanding, up to `depth`. */
DRV_INLINE int start(struct drv_requester *requester, enum drv_form form)
{
	struct drv_pace *pace = &((struct load *)requester)->pace;

	while (requester->ready_head != requester->ready_tail && DRV_LIKELY(!requester->ending)) {
		const uint64_t now = drv_clock_now(&requester->progress.port.engine->clock);
		struct drv_op *op = &requester->ops[drv_requester_next(requester)];

		if (now < pace->due)
			return 1;
		/* the slot that has been free for longest was not yet */
		pace->holds |= op->start > pace->due;
		op->start = now;
		op->due = pace->due;
		if (DRV_UNLIKELY(drv_requester_issue(requester, form, 0) <= 0)) {
			pace->holds = true;
			return 0;
		}
		drv_pace_sent(pace);
		if (DRV_UNLIKELY(drv_pace_over(pace)))
			requester->ending = true;
	}
	return 1;
}

/* It may sleep until a call is due that has a slot. */
DRV_INLINE uint64_t until_due(const struct drv_requester *requester, uint64_t most_ns)
{
	const struct drv_clock *clock = &requester->progress.port.engine->clock;
	const uint64_t now = drv_clock_now(clock), due = ((const struct load *)requester)->pace.due;
	uint64_t due_ns;

	if (requester->ending || requester->ready_head == requester->ready_tail)
		return most_ns;
	due_ns = due > now ? drv_clock_to_ns(clock, due - now) : 0;
	return due_ns < most_ns ? due_ns : most_ns;
}

DRV_REQUESTER_LOOP(open_loop, start, until_due)

/* Waits for all that is due before the end, so that it takes longer where more is due than the layer does. */
static int loop(struct drv_requester *requester, struct drv_fail *fail)
{
	struct drv_pace *pace = &((struct load *)requester)->pace;

	drv_pace_begin(pace, requester->began, requester->end);
	requester->end = UINT64_MAX;
	requester->ending = drv_pace_over(pace);
	return open_loop(requester, fail);
}

static bool complete(struct drv_requester *requester, const struct drv_op *op, uint64_t now)
{
	drv_pace_done(&((struct load *)requester)->pace, &requester->progress.port.engine->clock, op->due,
		      op->start, now);
	return true;
}

static int measure_open(struct load *load, uint64_t span_ns, struct drv_record *record, struct drv_fail *fail)
{
	const struct drv_engine *engine = load->requester.progress.port.engine;
	const struct drv_pace *pace = &load->pace;
	int status;

	load->requester.loop = loop;
	load->requester.measured = complete;
	/* else the kernel may wake who sleeps until a call is due 50 us too late; 0 is the usual again */
	if (engine->block)
		prctl(PR_SET_TIMERSLACK, 1UL);
	status = drv_requester_measure(&load->requester, span_ns, record, fail);
	if (engine->block)
		prctl(PR_SET_TIMERSLACK, 0UL);
	load->requester.loop = NULL;
	load->requester.measured = NULL;
	/* after the last call none was due until the end: that is time that it took as well */
	if (pace->end != UINT64_MAX &&
	    record->elapsed_ns < drv_clock_to_ns(&engine->clock, pace->end - pace->begin))
		record->elapsed_ns = drv_clock_to_ns(&engine->clock, pace->end - pace->begin);
	return status;
}

/* ---- the roles ---- */

/* Whoever prepared the requester has made the histogram of responses. */
static int prepare_pace(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_pace *pace = &((struct load *)run->state)->pace;

	pace->response = run->record->values[RESPONSE].samples;
	pace->service = drv_record_samples(run->record, SERVICE, fail);
	pace->lag = drv_record_samples(run->record, LAG, fail);
	/* whether it has to wait is up to the instants */
	run->sleep = DRV_SLEEP_FREE;
	return pace->service && pace->lag ? 0 : -1;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_requester_role_prepare(run, exchange_in(run), fail) ? -1 : prepare_pace(run, fail);
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_responder_role_prepare(run, exchange_in(run), fail);
}

/* Of a point's time the closed loop has the first fifth where it decides the rate, the open one the rest. */
static uint64_t closed_ns(const struct drv_role_run *run)
{
	return ((const struct parameters *)run->parameters)->offered_per_s ? 0 : run->duration_ns / 5;
}

static uint64_t open_ns(const struct drv_role_run *run)
{
	return run->duration_ns - closed_ns(run);
}

/* Warms up, and then finds out what a closed loop reaches, where that decides the rate. */
static int warm_up(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	struct load *load = run->state;
	struct drv_record closed = {0};

	if (drv_requester_role_warmup(run, cap_ns, fail))
		return -1;
	if (!closed_ns(run))
		return 0;
	if (drv_requester_measure(&load->requester, closed_ns(run), &closed, fail))
		return -1;
	if (!closed.operations || !closed.elapsed_ns)
		return drv_fail_set(
			fail, DRV_DEADLINE,
			"a closed loop completed no call, so there is no rate to offer a share of");
	load->calls = closed.operations;
	load->span_ns = closed.elapsed_ns;
	drv_record_rate(run->record, CLOSED_LOOP, load->calls, load->span_ns);
	/* its samples are of no use: the histogram becomes empty */
	return drv_record_samples(run->record, RESPONSE, fail) ? 0 : -1;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	struct load *load = run->state;
	const struct parameters *parameters = run->parameters;
	struct drv_pace *pace = &load->pace;
	struct drv_record *record = run->record;
	const uint64_t span_ns = open_ns(run);

	drv_pace_start(
		pace, &run->engine->clock, (enum drv_arrival_process)parameters->arrivals, run->seed,
		parameters->offered_per_s
			? (struct drv_rate){parameters->offered_per_s, UINT64_C(1000000000)}
			: (struct drv_rate){load->calls * parameters->load_percent, load->span_ns * 100});
	if (measure_open(load, span_ns, record, fail))
		return -1;
	drv_record_rate(record, OFFERED, pace->offered, span_ns);
	drv_record_rate(record, ACHIEVED, record->operations, record->elapsed_ns);
	if (!pace->offered)
		return 0;
	drv_record_fit(record, HELD, 100.0 * (double)pace->held / (double)pace->offered);
	drv_record_count(record, GENERATOR_BOUND, drv_pace_generator_bound(pace, record, span_ns));
	return 0;
}

#define CLIENT                                                                                               \
	.measures = true, .state_bytes = sizeof(struct load), .stop = drv_requester_role_stop,               \
	.verify = drv_requester_role_verify, .warmup = warm_up, .measure = measure,                          \
	.settle = drv_requester_role_settle, .phase = drv_requester_role_phase

static const struct drv_pattern load = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, CLIENT},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_RESPONDER_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = exchange_needs,
	.negotiate = exchange_negotiate,
};
DRV_PATTERN(load);
