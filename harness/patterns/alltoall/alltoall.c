/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern alltoall: every endpoint sends a message to every other one, and begins the next round when it has one of each
 * and its own have left. So nobody is more than a round ahead of anybody. Endpoint 0 says in its messages which round is
 * the last one.
 *
 * Nobody answers anybody, so there is no requester (requester.h): the loop is its own, on progress.h.
 */
#include "alltoall.params.h"

#include <stdlib.h>
#include <string.h>

#include "launch/pattern.h"
#include "traffic/progress.h"
#include "measure/warmup.h"

#define VERIFY_ROUNDS 2u
/* rounds of which messages may come: of this one and of the next */
#define ROUNDS 2u

/* One of the others. */
struct other {
	uint64_t seed_there, seed_here;
	/* what goes there, in every round */
	uint8_t *buffer;
	/* by round modulo ROUNDS: its message has come */
	bool here[ROUNDS];
};

struct alltoall {
	/* first: callbacks get a pointer to it; the buffer of each channel has its number */
	struct drv_progress progress;
	struct other *others;
	uint32_t count;
	uint64_t bytes;
	/* endpoint 0 says when it is over */
	bool leads;
	/* the channel to endpoint 0 */
	uint32_t leader;
	/* of this round: its number, others whose message has been handed over, messages that are here, by round */
	uint64_t round;
	uint32_t round_posted, arrived[ROUNDS];
	/* endpoint 0 said that this round is the last of the run */
	bool last[ROUNDS];
	/* the next one to hand over is written already */
	bool written;
	uint64_t posted, posted_keys;
	struct drv_samples *samples;
	struct drv_warmup warmup;
	bool in_flight[DRV_PEERS_MAX];
};

enum stop { STOP_COUNT, STOP_WARM, STOP_TIME };

/* What a message begins with: its round, and whether that is the last one. */
static uint64_t number_of(uint64_t round, bool is_last)
{
	return round << 1 | is_last;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct alltoall *state = (struct alltoall *)sink;
	struct other *other = &state->others[peer < state->count ? peer : 0];
	struct drv_check *check = &state->progress.check;
	uint64_t number, round;
	uint32_t at;

	(void)lend;
	if (bytes != state->bytes) {
		drv_check_wrong(check, "an unexpected message of %zu bytes", bytes);
		return CADGE_TAKEN;
	}
	number = drv_load64(data);
	round = number >> 1;
	at = round % ROUNDS;
	if (round - state->round >= ROUNDS || other->here[at]) {
		drv_check_wrong(check, "an unexpected message of round %" PRIu64, round);
		return CADGE_TAKEN;
	}
	check->seed = other->seed_there;
	drv_check_take(check, data, bytes);
	other->here[at] = true;
	state->arrived[at]++;
	if (peer == state->leader && !state->leads)
		state->last[at] = number & 1;
	return CADGE_TAKEN;
}

/* Hands over what is left of this round; each endpoint begins with another one. 0: all that goes now; -1: failed. */
static int hand_over(struct alltoall *state, bool is_last, struct drv_fail *fail)
{
	const struct drv_engine *engine = state->progress.port.engine;
	const uint32_t begin = (uint32_t)engine->endpoint % state->count;
	const uint64_t number = number_of(state->round, is_last);

	for (; state->round_posted < state->count; state->round_posted++) {
		const uint32_t index = (begin + state->round_posted) % state->count;
		struct other *other = &state->others[index];
		struct drv_message message = {.at = other->buffer,
					      .bytes = (size_t)state->bytes,
					      .seed = other->seed_here,
					      .key = number,
					      .full = state->progress.check.full,
					      .touch = state->progress.check.touch,
					      .phase = state->progress.check.phase,
					      .written = state->written};
		const struct cadge_iov iov = {message.at, message.bytes};
		int code;

		drv_message_write(&message);
		code = engine->layer->post(engine->channels[index].chan, &iov, 1, 0, index);
		state->written = code == CADGE_BUSY;
		if (code == CADGE_BUSY)
			return 0;
		if (code < 0)
			return drv_engine_fail("post", code, fail);
		drv_progress_set(&state->progress, index, code);
		state->posted++;
		state->posted_keys += number;
	}
	return 0;
}

static int end_round(struct alltoall *state, uint32_t at)
{
	for (uint32_t i = 0; i < state->count; i++)
		state->others[i].here[at] = false;
	state->arrived[at] = 0;
	state->round++;
	return 0;
}

/* One round; the next one has another number. */
static int run_round(struct alltoall *state, bool is_last, struct drv_fail *fail)
{
	const uint32_t at = state->round % ROUNDS;

	state->round_posted = 0;
	while (hand_over(state, is_last, fail) == 0) {
		if (state->round_posted == state->count && state->progress.in_flight_count == 0 &&
		    state->arrived[at] == state->count)
			return end_round(state, at);
		if (drv_progress_turn(&state->progress, DRV_PROGRESS_WAIT_NS, fail))
			return -1;
	}
	return -1;
}

/* Rounds until endpoint 0 says that it was the last one; all have as many. `rounds_out`: how many. */
static int exchange(struct alltoall *state, enum stop stop, uint64_t bound, uint64_t *rounds_out,
		    uint64_t *ended_out, struct drv_fail *fail)
{
	const struct drv_clock *clock = &state->progress.port.engine->clock;
	uint64_t before = drv_clock_now(clock), rounds = 0;
	const uint64_t operations = drv_engine_operations(state->progress.port.engine);
	bool warm = false, is_last = false;

	while (!is_last) {
		const uint32_t at = state->round % ROUNDS;
		uint64_t now;

		if (state->leads)
			state->last[at] = stop == STOP_COUNT  ? rounds + 1 >= bound
					  : stop == STOP_WARM ? warm
							      : before >= bound || rounds >= operations;
		if (run_round(state, state->leads && state->last[at], fail))
			return -1;
		is_last = state->last[at];
		state->last[at] = false;
		now = drv_clock_now(clock);
		if (stop == STOP_WARM)
			warm = drv_warmup_add(&state->warmup, now, now - before) || warm;
		else if (stop == STOP_TIME)
			drv_sample(state->samples, drv_clock_to_ns(clock, now - before));
		before = now;
		rounds++;
	}
	*rounds_out = rounds;
	*ended_out = before;
	return 0;
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	uint64_t rounds, ended;

	(void)serial;
	return exchange(run->state, STOP_COUNT, VERIFY_ROUNDS, &rounds, &ended, fail);
}

static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct alltoall *state = run->state;
	uint64_t rounds, ended;

	drv_warmup_begin(&state->warmup, clock, cap_ns);
	if (exchange(state, STOP_WARM, 0, &rounds, &ended, fail))
		return -1;
	drv_record_warmup(run->record, &state->warmup);
	return 0;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct drv_record *record = run->record;
	struct alltoall *state = run->state;
	const uint64_t started = drv_clock_now(clock);
	uint64_t rounds, ended;

	if (exchange(state, STOP_TIME, drv_engine_end(run->engine, started, run->duration_ns), &rounds,
		     &ended, fail))
		return -1;
	record->elapsed_ns = drv_clock_to_ns(clock, ended - started);
	record->operations = rounds * state->count;
	record->bytes = record->operations * state->bytes;
	drv_record_rate(record, SENT, record->bytes, record->elapsed_ns);
	return 0;
}

/* Of a round that nobody has seen the end of something may be on its way. */
static bool settle(struct drv_role_run *run)
{
	drv_progress_settle(&((struct alltoall *)run->state)->progress, NULL, NULL);
	return false;
}

static int prepare(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	const size_t stride = drv_memory_stride(parameters->bytes);
	struct drv_engine *engine = run->engine;
	struct alltoall *state = run->state;
	uint8_t *memory;

	drv_progress_start(&state->progress, engine, on_recv, state->in_flight, engine->channels_count);
	state->progress.check.touch = parameters->touch != DRV_TOUCH_NONE;
	drv_check_phase(&state->progress.check, true, 1);
	state->bytes = parameters->bytes;
	state->count = engine->channels_count;
	state->leads = engine->endpoint == 0;
	state->others = calloc(state->count, sizeof(*state->others));
	if (!state->others)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u channels", state->count);
	memory = drv_pool_take(engine, DRV_POOL_REQUESTER, state->count * stride, fail);
	state->samples = drv_record_samples(run->record, LATENCY, fail);
	if (!memory || !state->samples)
		return -1;
	for (uint32_t i = 0; i < state->count; i++) {
		struct other *other = &state->others[i];
		const uint64_t here = (uint64_t)engine->endpoint,
			       there = (uint64_t)engine->channels[i].endpoint;

		/* another one for each way of each pair: what went astray is found out */
		other->seed_here = drv_mix(drv_mix(run->seed, here), there);
		other->seed_there = drv_mix(drv_mix(run->seed, there), here);
		other->buffer = memory + i * stride;
		if (there == 0)
			state->leader = i;
	}
	engine->sink = state->progress.sink;
	return 0;
}

static void stop(struct drv_role_run *run)
{
	free(((struct alltoall *)run->state)->others);
}

static void phase(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct alltoall *state = run->state;

	counts_out->posts = true;
	counts_out->posted = state->posted;
	counts_out->posted_keys = state->posted_keys;
	drv_check_executed(&state->progress.check, counts_out);
	drv_check_phase(&state->progress.check, phase->full, phase->serial);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)at)->bytes;
	needs_out->depth = 1;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	if (!(offer->both.caps & CADGE_CAP_RELIABLE))
		return drv_fail_set(
			fail, DRV_NO_CAP,
			"wanted rounds in which everybody waits for everybody, and no message may "
			"be lost");
	return drv_negotiate_message(((const struct parameters *)at)->bytes, "message", &offer->both, fail);
}

static const struct drv_pattern alltoall = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "node",
			 .measures = true,
			 .state_bytes = sizeof(struct alltoall),
			 .prepare = prepare,
			 .stop = stop,
			 .verify = verify,
			 .warmup = warmup,
			 .measure = measure,
			 .settle = settle,
			 .phase = phase},
			{.name = NULL},
		},
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(alltoall);
