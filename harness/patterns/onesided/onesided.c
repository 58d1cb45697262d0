/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern onesided. The target exposes a region once a launch; the origin works on it by put, get, fetch_add or
 * compare_swap.
 *
 * put: rounds of `depth` puts and a quiet. Each put gives two samples: hand-over to local completion, and hand-over to
 * the end of its round's quiet, when all of the round is visible to the target's CPU. get and the atomic ones: a closed
 * loop at `depth`; one sample each, from hand-over to the result.
 *
 * With `notify` each put tells the target, which polls and counts: it has to be told of each put once.
 *
 * With `spread` the buffers of both ends rotate over so many bytes, more than the caches hold; else over as many as are
 * outstanding.
 *
 * With `registration` warm or cold operations go one at a time, from memory that the driver maps (unregistered_buffer.h): warm
 * always from the same, which a layer with mem_reg was told of before; cold each from memory mapped anew, which such a
 * layer is told of inside the time. Mapping, writing and unmapping are outside it, and the same work in both.
 *
 * An operation is no message and has no answer, and a round of puts ends by a quiet: so the loops are its own, on progress.h,
 * and not those of requester.h.
 *
 * Verification: gets fetch what the target wrote (heads in the loop, whole bodies before and after); puts are read back
 * by the target between the phases (the last round's heads; whole bodies before and after); the values that the atomic
 * operations returned add up to what the target's counter says.
 */
#include "onesided.params.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traffic/requester.h"
#include "traffic/progress.h"
#include "onesided/unregistered_buffer.h"
#include "launch/pattern.h"

/* polls in a row without an event, after which a layer has told all it knows */
#define SILENT_POLLS 64u
#define SETTLE_NS    UINT64_C(500000000)
#define TOKEN_QUIET  (UINT64_C(1) << 62)

static bool is_atomic(uint32_t operation)
{
	return operation == OPERATION_FETCH_ADD || operation == OPERATION_COMPARE_SWAP;
}

/* How many slots a point works on in the region: a power of two, so that no loop divides. */
static uint32_t region_slots(const struct parameters *parameters)
{
	const uint64_t apart = drv_memory_stride(parameters->bytes);
	const uint64_t spread = is_atomic(parameters->operation) ? 0 : parameters->spread;
	uint32_t slots = 2;

	while (slots < parameters->depth || (slots < (1u << 30) && slots * apart < spread))
		slots *= 2;
	return slots;
}

/* ---- the target: what gets will find, what puts left, the counter of fetch_add ---- */

struct target_side {
	/* the engine's region */
	uint8_t *base;
	uint64_t seed, serial;
	uint64_t full_checked, mismatches;
	/* so many puts the layer told of */
	uint64_t notified;
};

/* What gets will find, or zeroes. */
static void fill_region(const struct target_side *target, const struct parameters *parameters,
			uint64_t serial)
{
	const size_t stride = drv_memory_stride(parameters->bytes);
	const uint32_t slots = region_slots(parameters);

	for (uint32_t slot = 0; slot < slots; slot++) {
		uint8_t *at = target->base + slot * stride;

		if (parameters->operation == OPERATION_GET) {
			drv_head_write(at, parameters->bytes, target->seed, slot);
			drv_body_fill(at, parameters->bytes, target->seed, serial, slot);
		} else {
			memset(at, 0, parameters->bytes);
		}
	}
	/* remote reads and writes do not pass through this core */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Looks into the region after a phase of puts, `puts` of them so far: heads of the slots that were written last, and
 * whole bodies when `full`. Returns the number of slots that are wrong.
 */
static uint64_t inspect_region(const struct target_side *target, const struct parameters *parameters,
			       bool full, uint64_t puts)
{
	const size_t stride = drv_memory_stride(parameters->bytes);
	const uint32_t slots = region_slots(parameters);
	const uint64_t wanted =
		full ? drv_full_messages(parameters->bytes, (uint32_t)parameters->depth) : slots;
	const uint64_t first = puts > wanted ? puts - wanted : 0;
	uint64_t wrong = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint64_t number = first; number < puts; number++) {
		const uint8_t *at = target->base + (number & (slots - 1)) * stride;

		if (!drv_head_holds(at, parameters->bytes, target->seed, number) ||
		    (full && !drv_body_holds(at, parameters->bytes, target->seed, target->serial, number)))
			wrong++;
	}
	return wrong;
}

static void target_start(struct target_side *target, const struct drv_role_run *run)
{
	*target =
		(struct target_side){.base = run->engine->region_memory.base, .seed = run->seed, .serial = 1};
	fill_region(target, run->parameters, 1);
}

/*
 * A put that is visible may be told of a little later: waits for what was put so far, and no longer than SETTLE_NS. One
 * that is told of twice may be behind others in a queue: polls on until nothing comes any more.
 */
static void await_notified(struct target_side *target, const struct drv_role_run *run, uint64_t puts,
			   struct drv_counts *counts)
{
	const struct drv_engine *engine = run->engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	unsigned int silent = 0;

	while ((target->notified < puts || (target->notified == puts && silent < SILENT_POLLS)) &&
	       !engine->down_code && drv_now_ns() < until_ns) {
		const int events = engine->layer->poll(engine->ctx, engine->sink);

		if (events < 0)
			break;
		silent = events ? 0 : silent + 1;
	}
	if (target->notified == puts)
		return;
	if (!counts->mismatches)
		snprintf(counts->mismatch, sizeof(counts->mismatch),
			 "the target was told of %" PRIu64 " puts, there were %" PRIu64, target->notified,
			 puts);
	counts->mismatches++;
}

static void target_phase(struct target_side *target, const struct drv_role_run *run,
			 const struct drv_phase *phase, uint64_t puts, struct drv_counts *counts)
{
	const struct parameters *parameters = run->parameters;
	const bool full = phase->ended == DRV_STEP_VERIFY;

	if (parameters->notify == NOTIFY_EACH && !phase->cancelled)
		await_notified(target, run, puts, counts);
	if (parameters->operation == OPERATION_PUT && !phase->cancelled && phase->ended != DRV_STEP_COUNT &&
	    phase->ended != DRV_STEP_WARMUP) {
		target->mismatches += inspect_region(target, parameters, full, puts);
		if (full)
			target->full_checked +=
				drv_full_messages(parameters->bytes, (uint32_t)parameters->depth);
	}
	counts->full_checked += target->full_checked;
	if (target->mismatches && !counts->mismatches)
		snprintf(counts->mismatch, sizeof(counts->mismatch),
			 "slots of the region that do not hold what was put: %" PRIu64, target->mismatches);
	counts->mismatches += target->mismatches;
	if (is_atomic(parameters->operation)) {
		counts->executes = counts->exact = true;
		counts->executed = __atomic_load_n((uint64_t *)(void *)target->base, __ATOMIC_SEQ_CST);
	}
	/* what gets find changes with the phase, so that stale bytes show */
	if (phase->serial != target->serial && parameters->operation == OPERATION_GET && !phase->last)
		fill_region(target, parameters, phase->serial);
	target->serial = phase->serial;
}

/* ---- the origin ---- */

struct slot {
	/* payload; for the atomic ones the word that was there before */
	uint8_t *local;
	uint64_t start, number;
	uint32_t turn; /* in its share of the memory */
	/* the layer has the payload */
	bool busy;
};

struct origin {
	/* first: callbacks get a pointer to it; it checks what comes back */
	struct drv_progress progress;
	struct cadge_chan *chan;
	struct cadge_remote *handle;
	size_t bytes;
	uint32_t depth;
	uint32_t operation;
	unsigned put_flags;
	enum drv_step step;
	bool ending, quiet_due;
	/* slots in the peer's region, less one; buffers of each slot here */
	uint32_t region_mask, share;
	uint8_t *memory;
	size_t stride;
	struct slot *slots;
	/* ring of slots that may start: power of two */
	uint32_t *ready;
	uint32_t ready_head, ready_tail, ready_mask;
	uint64_t next_number, posted, completed, limit;
	/* of what atomic operations returned */
	uint64_t before_sum;
	struct drv_samples *latency, *visible;
	struct drv_warmup warmup;
	uint64_t end, last;
	/* registration warm or cold: its buffers; whether the layer is told of them, and of which it knows now */
	uint32_t registration;
	struct drv_unregistered_buffer buffers;
	bool registers;
	uint8_t *registered;
};

static void __attribute__((cold, noinline)) note_failure(struct origin *origin, const char *what, int code)
{
	drv_progress_fail(&origin->progress, what, code);
	origin->ending = true;
}

/* What came back from the peer's memory. */
DRV_INLINE void check_result(struct origin *origin, const struct slot *slot)
{
	const size_t bytes = origin->bytes;
	const uint64_t where = slot->number & origin->region_mask;
	bool good = true;

	if (is_atomic(origin->operation)) {
		const uint64_t before = drv_load64(slot->local);

		origin->before_sum += before;
		good = origin->depth > 1 || before == slot->number;
		origin->progress.check.full_checked +=
			origin->step == DRV_STEP_VERIFY; /* it has no more bytes than these */
	} else if (origin->operation == OPERATION_GET) {
		good = drv_head_holds(slot->local, bytes, origin->progress.check.seed, where);
		if (DRV_UNLIKELY(origin->step == DRV_STEP_VERIFY)) {
			good &= drv_body_holds(slot->local, bytes, origin->progress.check.seed,
					       origin->progress.check.phase, where);
			origin->progress.check.full_checked++;
		}
	}
	if (DRV_LIKELY(good))
		origin->progress.check.checked++;
	else
		drv_check_wrong(&origin->progress.check, "operation %" PRIu64 " brought back wrong bytes",
				slot->number);
}

static void __attribute__((noinline)) complete_other(struct origin *origin, uint64_t start, uint64_t now)
{
	if (origin->step == DRV_STEP_WARMUP && drv_warmup_add(&origin->warmup, now, now - start))
		origin->ending = true;
}

/* An operation is complete here: for put the buffer, else the result. */
DRV_INLINE void complete(struct origin *origin, uint32_t index, const bool put)
{
	struct slot *slot = &origin->slots[index];
	const struct drv_engine *engine = origin->progress.port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);

	slot->busy = false;
	origin->completed++;
	origin->last = now;
	if (DRV_LIKELY(origin->step == DRV_STEP_MEASURE)) {
		drv_sample(origin->latency, drv_clock_to_ns(&engine->clock, now - slot->start));
		if (!put && DRV_UNLIKELY(now >= origin->end))
			origin->ending = true;
	} else if (!put) {
		complete_other(origin, slot->start, now);
	}
	if (put)
		return;
	check_result(origin, slot);
	slot->start = now;
	origin->ready[origin->ready_tail++ & origin->ready_mask] = index;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct origin *origin = (struct origin *)sink;

	(void)peer;
	if (token == TOKEN_QUIET && origin->quiet_due) {
		origin->quiet_due = false;
	} else if (DRV_LIKELY(token < origin->depth && origin->slots[token].busy)) {
		complete(origin, (uint32_t)token, origin->operation == OPERATION_PUT);
	} else {
		drv_check_wrong(&origin->progress.check,
				"a completion for token %" PRIx64 " that is not outstanding", token);
		return;
	}
	if (DRV_UNLIKELY(code < 0))
		note_failure(origin, "one-sided operation", code);
}

DRV_INLINE int turn(struct origin *origin, struct drv_fail *fail)
{
	return drv_progress_turn(&origin->progress, DRV_PROGRESS_WAIT_NS, fail);
}

/* Hands one operation over. 1: done; 0: the layer is busy; -1: failed. */
DRV_INLINE int issue(struct origin *origin, uint32_t index)
{
	const struct drv_engine *engine = origin->progress.port.engine;
	struct slot *slot = &origin->slots[index];
	const size_t bytes = origin->bytes;
	const uint64_t number = origin->next_number;
	const uint64_t offset = (number & origin->region_mask) * origin->stride;
	int code;

	/* each slot has a share of the memory to itself, since another may be late */
	slot->local = origin->memory + ((uint64_t)index * origin->share + slot->turn) * origin->stride;
	switch (origin->operation) {
	case OPERATION_PUT:
		drv_head_write(slot->local, bytes, origin->progress.check.seed, number);
		if (DRV_UNLIKELY(origin->step == DRV_STEP_VERIFY))
			drv_body_fill(slot->local, bytes, origin->progress.check.seed,
				      origin->progress.check.phase, number);
		code = engine->layer->put(origin->chan, slot->local, bytes, origin->handle, offset,
					  origin->put_flags, index);
		break;
	case OPERATION_GET:
		drv_store64(slot->local, ~number); /* so that a get that brings nothing shows */
		code = engine->layer->get(origin->chan, slot->local, bytes, origin->handle, offset, 0, index);
		break;
	case OPERATION_COMPARE_SWAP: /* alone under way: what it expects is what the last one left */
		drv_store64(slot->local, UINT64_MAX);
		code = engine->layer->compare_swap(origin->chan, number, number + 1,
						   (uint64_t *)(void *)slot->local, origin->handle, 0, 0,
						   index);
		break;
	default:
		drv_store64(slot->local, UINT64_MAX);
		code = engine->layer->fetch_add(origin->chan, 1, (uint64_t *)(void *)slot->local,
						origin->handle, 0, 0, index);
		break;
	}
	if (DRV_UNLIKELY(code == CADGE_BUSY))
		return 0;
	if (DRV_UNLIKELY(code != CADGE_DONE && code != CADGE_QUEUED)) {
		note_failure(origin, operation_words[origin->operation], code);
		return -1;
	}
	slot->number = number;
	slot->busy = true;
	slot->turn = slot->turn + 1 < origin->share ? slot->turn + 1 : 0;
	origin->next_number++;
	if (DRV_UNLIKELY(++origin->posted == origin->limit))
		origin->ending = true;
	if (code == CADGE_DONE)
		complete(origin, index, origin->operation == OPERATION_PUT);
	return 1;
}

/* All but put: a closed loop. */
static int __attribute__((noinline)) run_results(struct origin *origin, struct drv_fail *fail)
{
	const uint64_t depth = origin->depth;

	for (;;) {
		uint64_t accepted = 0;

		/* at most one turn of all slots: a layer that completes at once must be polled as well */
		while (origin->ready_head != origin->ready_tail && accepted < depth &&
		       DRV_LIKELY(!origin->ending)) {
			if (DRV_UNLIKELY(issue(origin,
					       origin->ready[origin->ready_head & origin->ready_mask]) <= 0))
				break;
			origin->ready_head++;
			accepted++;
		}
		if (DRV_UNLIKELY(origin->progress.failed)) {
			*fail = origin->progress.fail;
			return -1;
		}
		if (DRV_UNLIKELY(origin->ending) && origin->posted == origin->completed)
			return 0;
		if (DRV_UNLIKELY(drv_stop_signal))
			return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
		if ((origin->posted != origin->completed || accepted == 0) && turn(origin, fail))
			return -1;
	}
}

/* Waits until a round's puts are complete here and visible there. */
DRV_INLINE int make_visible(struct origin *origin, struct drv_fail *fail)
{
	struct drv_engine *engine = origin->progress.port.engine;
	int code;

	origin->quiet_due = true;
	while ((code = engine->layer->quiet(origin->chan, 0, TOKEN_QUIET)) == CADGE_BUSY)
		if (turn(origin, fail))
			return -1;
	if (code < 0)
		return drv_engine_fail("quiet", code, fail);
	if (code == CADGE_DONE)
		origin->quiet_due = false;
	while (origin->quiet_due || origin->posted != origin->completed)
		if (turn(origin, fail))
			return -1;
	return 0;
}

/* The first `puts` slots are visible there. */
DRV_INLINE uint64_t end_round(struct origin *origin, uint64_t round, uint32_t puts)
{
	const struct drv_clock *clock = &origin->progress.port.engine->clock;
	const uint64_t now = drv_clock_now(clock);

	origin->last = now;
	if (DRV_LIKELY(origin->step == DRV_STEP_MEASURE)) {
		for (uint32_t i = 0; i < puts; i++)
			drv_histogram_record(&origin->visible->histogram,
					     drv_clock_to_ns(clock, now - origin->slots[i].start));
		if (now >= origin->end)
			origin->ending = true;
	} else {
		complete_other(origin, round, now);
	}
	return now;
}

/* put: rounds. */
static int __attribute__((noinline)) run_puts(struct origin *origin, struct drv_fail *fail)
{
	struct drv_engine *engine = origin->progress.port.engine;
	uint64_t now = drv_clock_now(&engine->clock);

	while (!origin->ending) {
		const uint64_t round = now;
		uint32_t puts = 0;

		for (; puts < origin->depth && !origin->ending; puts++) {
			int status;

			origin->slots[puts].start = now;
			while ((status = issue(origin, puts)) == 0)
				if (turn(origin, fail))
					return -1;
			if (status < 0) {
				*fail = origin->progress.fail;
				return -1;
			}
			now = origin->slots[puts].busy ? drv_clock_now(&engine->clock) : origin->last;
		}
		if (make_visible(origin, fail))
			return -1;
		now = end_round(origin, round, puts);
		if (DRV_UNLIKELY(drv_stop_signal))
			return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
	}
	return 0;
}

/* ---- registration warm or cold ---- */

static int register_buffer(struct origin *origin, uint8_t *buffer, struct drv_fail *fail)
{
	const struct drv_engine *engine = origin->progress.port.engine;
	const int code = engine->layer->mem_reg(engine->ctx, buffer, origin->buffers.bytes);

	if (code < 0)
		return drv_engine_fail("mem_reg", code, fail);
	origin->registered = buffer;
	return 0;
}

static int take_back(struct origin *origin, struct drv_fail *fail)
{
	const struct drv_engine *engine = origin->progress.port.engine;
	const int code = engine->layer->mem_dereg(engine->ctx, origin->registered, origin->buffers.bytes);

	origin->registered = NULL;
	return code < 0 ? drv_engine_fail("mem_dereg", code, fail) : 0;
}

/* Hands the one operation over and waits for its end. */
static int work_alone(struct origin *origin, struct drv_fail *fail)
{
	int status;

	while ((status = issue(origin, 0)) == 0)
		if (turn(origin, fail))
			return -1;
	if (status < 0) {
		*fail = origin->progress.fail;
		return -1;
	}
	if (origin->operation == OPERATION_PUT)
		return make_visible(origin, fail);
	while (origin->posted != origin->completed)
		if (turn(origin, fail))
			return -1;
	return 0;
}

/* One operation after the other, each with its buffer prepared before its time begins. */
static int __attribute__((noinline)) run_prepared(struct origin *origin, struct drv_fail *fail)
{
	const struct drv_clock *clock = &origin->progress.port.engine->clock;
	const bool cold = origin->registration == REGISTRATION_COLD;

	while (!origin->ending) {
		if (drv_unregistered_buffer_renew(&origin->buffers, cold, fail))
			return -1;
		origin->memory = cold ? origin->buffers.cold : origin->buffers.warm;
		origin->slots[0].start = drv_clock_now(clock);
		if (cold && origin->registers && register_buffer(origin, origin->memory, fail))
			return -1;
		if (work_alone(origin, fail))
			return -1;
		if (origin->operation == OPERATION_PUT)
			end_round(origin, origin->slots[0].start, 1);
		if (cold && origin->registers && take_back(origin, fail))
			return -1;
		if (DRV_UNLIKELY(drv_stop_signal))
			return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
	}
	return 0;
}

static int start_buffers(struct origin *origin, struct drv_fail *fail)
{
	const struct drv_engine *engine = origin->progress.port.engine;

	origin->share = 1;
	origin->registers = engine->offer.both.caps & CADGE_CAP_MEM_REG;
	/* a get of less than a word marks a whole one */
	if (drv_unregistered_buffer_start(&origin->buffers, origin->stride, fail))
		return -1;
	if (origin->registration == REGISTRATION_WARM && origin->registers)
		return register_buffer(origin, origin->buffers.warm, fail);
	return 0;
}

/* What the layer never gave back stays mapped: it may still read it. */
static void end_buffers(struct origin *origin)
{
	struct drv_fail fail;

	if (origin->posted != origin->completed)
		return;
	if (origin->registered && take_back(origin, &fail))
		fprintf(stderr, "cadge: %s\n", fail.text);
	drv_unregistered_buffer_end(&origin->buffers);
}

static int operate(struct origin *origin, struct drv_fail *fail)
{
	const struct drv_engine *engine = origin->progress.port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);
	int status;

	origin->ready_head = origin->ready_tail = 0;
	origin->ending = false;
	origin->last = now;
	if (origin->operation == OPERATION_PUT && origin->registration == REGISTRATION_LIBRARY)
		return run_puts(origin, fail);
	for (uint32_t index = 0; index < origin->depth; index++) {
		origin->slots[index].start = now;
		origin->ready[origin->ready_tail++ & origin->ready_mask] = index;
	}
	status = origin->registration == REGISTRATION_LIBRARY ? run_results(origin, fail)
							      : run_prepared(origin, fail);
	/* each value below the count was fetched exactly once: their sum says so */
	if (!status && is_atomic(origin->operation)) {
		const uint64_t n = origin->posted;
		const uint64_t sum = n % 2 ? (n - 1) / 2 * n : n / 2 * (n - 1);

		if (n > 0 && origin->before_sum != sum)
			drv_check_wrong(&origin->progress.check,
					"the values fetched are not those of %" PRIu64 " operations", n);
	}
	return status;
}

static int origin_verify(struct origin *origin, uint64_t phase, struct drv_fail *fail)
{
	origin->step = DRV_STEP_VERIFY;
	origin->progress.check.phase = phase;
	origin->limit = origin->posted + drv_full_messages(origin->bytes, origin->depth);
	return operate(origin, fail);
}

/* Of launches that count operations: after how many this phase ends. */
static uint64_t limit_of(const struct origin *origin)
{
	const uint64_t operations = drv_engine_operations(origin->progress.port.engine);

	return operations == UINT64_MAX ? UINT64_MAX : origin->posted + operations;
}

static int origin_warmup(struct origin *origin, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &origin->progress.port.engine->clock;

	origin->step = DRV_STEP_WARMUP;
	origin->limit = limit_of(origin);
	drv_warmup_begin(&origin->warmup, clock, cap_ns);
	return operate(origin, fail);
}

static int origin_measure(struct origin *origin, uint64_t duration_ns, struct drv_record *record,
			  struct drv_fail *fail)
{
	const struct drv_clock *clock = &origin->progress.port.engine->clock;
	const uint64_t completed = origin->completed;
	uint64_t started;
	int status;

	origin->step = DRV_STEP_MEASURE;
	origin->limit = limit_of(origin);
	started = drv_clock_now(clock);
	origin->end = drv_engine_end(origin->progress.port.engine, started, duration_ns);
	status = operate(origin, fail);
	record->elapsed_ns = drv_clock_to_ns(clock, origin->last - started);
	record->operations = origin->completed - completed;
	record->bytes = record->operations * origin->bytes;
	return status;
}

static bool waits(void *arg)
{
	const struct origin *origin = arg;

	return origin->posted != origin->completed || origin->quiet_due;
}

static bool origin_settle(struct origin *origin)
{
	origin->step = DRV_STEP_WARMUP; /* nothing is recorded any more */
	origin->warmup.over = true;
	origin->ending = true;
	return drv_progress_settle(&origin->progress, waits, origin);
}

static int origin_start(struct origin *origin, const struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct drv_engine *engine = run->engine;

	drv_progress_start(&origin->progress, engine, NULL, NULL, 0);
	origin->progress.port.sink.sent = on_sent;
	origin->chan = engine->channels[0].chan;
	origin->handle = engine->channels[0].remote;
	origin->bytes = parameters->bytes;
	origin->depth = (uint32_t)parameters->depth;
	origin->operation = parameters->operation;
	origin->put_flags = parameters->notify == NOTIFY_EACH ? CADGE_NOTIFY : 0;
	origin->registration = parameters->registration;
	origin->progress.check.seed = run->seed;
	origin->stride = drv_memory_stride(parameters->bytes);
	origin->region_mask = region_slots(parameters) - 1;
	origin->share = (origin->region_mask + 1) / origin->depth;
	while (origin->ready_mask + 1 < origin->depth)
		origin->ready_mask = 2 * origin->ready_mask + 1;
	origin->latency = drv_record_samples(run->record, LATENCY, fail);
	if (!origin->latency)
		return -1;
	if (origin->operation == OPERATION_PUT &&
	    !(origin->visible = drv_record_samples(run->record, VISIBLE, fail)))
		return -1;
	origin->ready = calloc(origin->ready_mask + 1u, sizeof(*origin->ready));
	origin->slots = calloc(origin->depth, sizeof(*origin->slots));
	if (!origin->ready || !origin->slots)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the slots");
	if (origin->registration != REGISTRATION_LIBRARY)
		return start_buffers(origin, fail);
	origin->memory = drv_pool_take(engine, DRV_POOL_REQUESTER,
				       (origin->region_mask + UINT64_C(1)) * origin->stride, fail);
	return origin->memory ? 0 : -1;
}

/* ---- the roles ---- */

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct origin *origin = run->state;

	if (origin_start(origin, run, fail))
		return -1;
	run->engine->sink = &origin->progress.port.sink;
	run->sleep = parameters->depth == 1 ? DRV_SLEEP_IF_WAITED : DRV_SLEEP_FREE;
	return 0;
}

struct target_role {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct target_side target;
};

static void on_notified(struct cadge_sink *sink, uint32_t peer, struct cadge_region *region,
			uint64_t offset_bytes, uint64_t bytes)
{
	struct target_role *role = (struct target_role *)sink;

	(void)peer, (void)region, (void)offset_bytes, (void)bytes;
	role->target.notified++;
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct target_role *role = run->state;

	(void)fail;
	drv_port_start(&role->port, run->engine);
	role->port.sink.notified = on_notified;
	run->engine->sink = &role->port.sink;
	run->sleep = parameters->target == TARGET_PASSIVE ? DRV_SLEEP_UNJUDGED : DRV_SLEEP_FREE;
	target_start(&role->target, run);
	return 0;
}

static void stop_client(struct drv_role_run *run)
{
	struct origin *origin = run->state;

	free(origin->ready);
	free(origin->slots);
	origin->ready = NULL;
	origin->slots = NULL;
	end_buffers(origin);
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	return origin_verify(run->state, serial, fail);
}

static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	struct origin *origin = run->state;
	const int status = origin_warmup(origin, cap_ns, fail);

	drv_record_warmup(run->record, &origin->warmup);
	return status;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	return origin_measure(run->state, run->duration_ns, run->record, fail);
}

static bool settle(struct drv_role_run *run)
{
	return origin_settle(run->state);
}

/* A passive target does not look at its library while it waits. */
static int serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	const bool passive = ((const struct parameters *)run->parameters)->target == TARGET_PASSIVE;
	const struct drv_idle *idle = drv_engine_idle(run->engine);

	return drv_oob_receive(run->engine->oob, passive ? NULL : idle, run->engine->deadline_ns, message_out,
			       fail);
}

static void phase_client(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	const struct origin *origin = run->state;

	(void)phase;
	counts_out->posts = true;
	counts_out->posted = origin->posted;
	drv_check_counts(&origin->progress.check, counts_out);
}

static void phase_server(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	struct target_role *role = run->state;

	target_phase(&role->target, run, phase, phase->control, counts_out);
}

/* How many puts there were: the target has to know where to look. */
static uint64_t control(const struct drv_role_run *run)
{
	return ((const struct origin *)run->state)->next_number;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->depth = (uint32_t)parameters->depth;
	needs_out->region_bytes = drv_memory_stride(parameters->bytes) * region_slots(parameters);
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	const struct parameters *parameters = at;
	const struct drv_ability *both = &offer->both;
	const enum cadge_progress progress[] = {both->put, both->get, both->fetch_add, both->compare_swap};
	const char *name = operation_words[parameters->operation];

	if (parameters->depth > DRV_REQUESTER_DEPTH_MAX)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %" PRIu64 " operations outstanding, the driver keeps at most %u",
				    parameters->depth, DRV_REQUESTER_DEPTH_MAX);
	if (parameters->bytes == 0)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted a %s of 0 bytes, which moves nothing that could be seen", name);
	if (is_atomic(parameters->operation) && parameters->bytes != 8)
		return drv_fail_set(fail, DRV_NO_CAP, "wanted a %s of %" PRIu64 " bytes, a word has 8", name,
				    parameters->bytes);
	if (parameters->operation == OPERATION_COMPARE_SWAP && parameters->depth > 1)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %" PRIu64
				    " compare_swap outstanding, but what each expects is what "
				    "the last one left",
				    parameters->depth);
	if (parameters->registration != REGISTRATION_LIBRARY && parameters->depth > 1)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %" PRIu64
				    " operations outstanding with registration %s, which takes "
				    "one: to prepare a buffer would fall into another's time",
				    parameters->depth, registration_words[parameters->registration]);
	if (parameters->registration != REGISTRATION_LIBRARY && parameters->spread)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted buffers over %" PRIu64
				    " bytes with registration %s, which has one at a time",
				    parameters->spread, registration_words[parameters->registration]);
	if (drv_negotiate_spread(parameters->spread, both, fail))
		return -1;
	if (!is_atomic(parameters->operation) && parameters->bytes > both->rma_bytes_max)
		return drv_fail_set(fail, DRV_MSG_TOO_LARGE,
				    "wanted a %s of %" PRIu64 " bytes, the largest here has %" PRIu64, name,
				    parameters->bytes, both->rma_bytes_max);
	if (parameters->notify == NOTIFY_EACH && parameters->operation != OPERATION_PUT)
		return drv_fail_set(fail, DRV_NO_CAP, "wanted a %s that tells its target; only put does",
				    name);
	if (parameters->notify == NOTIFY_EACH && parameters->target == TARGET_PASSIVE)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted a passive target to be told of puts: who does "
				    "not poll hears nothing");
	if (parameters->target == TARGET_PASSIVE && offer->place == DRV_PLACE_SELF)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted a passive target, but at place self the target is the caller");
	if (parameters->target == TARGET_PASSIVE && progress[parameters->operation] != CADGE_PROGRESS_DIRECT)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted a passive target, which needs %s to be direct; here it is %s",
				    name, drv_progress_name(progress[parameters->operation]));
	return 0;
}

#define ORIGIN_ROLE                                                                                          \
	.measures = true, .attaches = true, .state_bytes = sizeof(struct origin), .stop = stop_client,       \
	.verify = verify, .warmup = warmup, .measure = measure, .settle = settle, .phase = phase_client,     \
	.control = control

static const struct drv_pattern onesided = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, ORIGIN_ROLE},
			{.name = "server",
			 .exposes = true,
			 .state_bytes = sizeof(struct target_role),
			 .prepare = prepare_server,
			 .channels_most = 1,
			 .serve = serve,
			 .phase = phase_server},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(onesided);
