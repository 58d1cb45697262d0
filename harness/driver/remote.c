/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS     UINT64_C(10000000)
#define SETTLE_NS   UINT64_C(500000000)
#define TOKEN_QUIET (UINT64_C(1) << 62)

static void __attribute__((cold, noinline, format(printf, 2, 3))) note_mismatch(struct drv_remote *remote,
										const char *format, ...)
{
	va_list arguments;

	if (remote->mismatches++)
		return;
	va_start(arguments, format);
	if (vsnprintf(remote->mismatch, sizeof(remote->mismatch), format, arguments) < 0)
		remote->mismatch[0] = '\0';
	va_end(arguments);
}

static void __attribute__((cold, noinline)) note_failure(struct drv_remote *remote, const char *what,
							 int code)
{
	if (!remote->failed)
		drv_engine_fail(what, code, &remote->fail);
	remote->failed = true;
	remote->ending = true;
}

/* What came back from the peer's memory. */
DRV_INLINE void check_result(struct drv_remote *remote, const struct drv_remote_slot *slot)
{
	const size_t bytes = (size_t)remote->point->request_bytes;
	const uint64_t where = slot->number & remote->region_mask;
	bool good = true;

	if (remote->point->operation == DRV_FETCH_ADD) {
		const uint64_t before = drv_load64(slot->local);

		remote->before_sum += before;
		good = remote->point->depth > 1 || before == slot->number;
		remote->full_checked += remote->mode == DRV_MODE_VERIFY; /* it has no more bytes than these */
	} else if (remote->point->operation == DRV_GET) {
		good = drv_head_holds(slot->local, bytes, remote->seed, where);
		if (DRV_UNLIKELY(remote->mode == DRV_MODE_VERIFY)) {
			good &= drv_body_holds(slot->local, bytes, remote->seed, remote->phase, where);
			remote->full_checked++;
		}
	}
	if (DRV_LIKELY(good))
		remote->checked++;
	else
		note_mismatch(remote, "client: operation %" PRIu64 " brought back wrong bytes", slot->number);
}

static void __attribute__((noinline)) complete_other(struct drv_remote *remote, uint64_t start, uint64_t now)
{
	if (remote->mode == DRV_MODE_WARMUP && drv_warmup_add(&remote->warmup, now, now - start))
		remote->ending = true;
}

/* An operation is complete here: for get and fetch_add the result, for put the buffer. */
DRV_INLINE void complete(struct drv_remote *remote, uint32_t index, const bool put)
{
	struct drv_remote_slot *slot = &remote->slots[index];
	const struct drv_engine *engine = remote->port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);

	slot->busy = false;
	remote->completed++;
	remote->last = now;
	if (DRV_LIKELY(remote->mode == DRV_MODE_MEASURE)) {
		drv_attempt_sample(remote->attempt, drv_clock_to_ns(&engine->clock, now - slot->start));
		if (!put && DRV_UNLIKELY(now >= remote->end))
			remote->ending = true;
	} else if (!put) {
		complete_other(remote, slot->start, now);
	}
	if (put)
		return;
	check_result(remote, slot);
	slot->start = now;
	remote->ready[remote->ready_tail++ & remote->ready_mask] = index;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_remote *remote = (struct drv_remote *)sink;

	(void)peer;
	if (token == TOKEN_QUIET && remote->quiet_due) {
		remote->quiet_due = false;
	} else if (DRV_LIKELY(token < remote->point->depth && remote->slots[token].busy)) {
		complete(remote, (uint32_t)token, remote->point->operation == DRV_PUT);
	} else {
		note_mismatch(remote, "client: a completion for token %" PRIx64 " that is not outstanding",
			      token);
		return;
	}
	if (DRV_UNLIKELY(code < 0))
		note_failure(remote, "one-sided operation", code);
}

/* Polls once; sleeps or looks around when nothing came of it. */
DRV_INLINE int turn(struct drv_remote *remote, struct drv_fail *fail)
{
	struct drv_engine *engine = remote->port.engine;
	const int events = engine->layer->poll(engine->ctx, &remote->port.sink);

	if (DRV_UNLIKELY(remote->failed)) {
		*fail = remote->fail;
		return -1;
	}
	if (DRV_UNLIKELY(events < 0))
		return drv_engine_fail("poll", events, fail);
	if (engine->block && events == 0) {
		remote->waits++;
		if (drv_engine_wait(engine, WAIT_NS, fail))
			return -1;
	} else if (DRV_LIKELY(++remote->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* Hands one operation over. 1: done; 0: the layer is busy; -1: failed. */
DRV_INLINE int issue(struct drv_remote *remote, uint32_t index)
{
	const struct drv_engine *engine = remote->port.engine;
	struct drv_remote_slot *slot = &remote->slots[index];
	const size_t bytes = (size_t)remote->point->request_bytes;
	const uint64_t number = remote->next_number;
	const uint64_t offset = (number & remote->region_mask) * remote->stride;
	int code;

	switch (remote->point->operation) {
	case DRV_PUT:
		drv_head_write(slot->local, bytes, remote->seed, number);
		if (DRV_UNLIKELY(remote->mode == DRV_MODE_VERIFY))
			drv_body_fill(slot->local, bytes, remote->seed, remote->phase, number);
		code = engine->layer->put(engine->chan, slot->local, bytes, remote->handle, offset, 0, index);
		break;
	case DRV_GET:
		drv_store64(slot->local, ~number); /* so that a get that brings nothing shows */
		code = engine->layer->get(engine->chan, slot->local, bytes, remote->handle, offset, index);
		break;
	default:
		drv_store64(slot->local, UINT64_MAX);
		code = engine->layer->fetch_add(engine->chan, 1, (uint64_t *)(void *)slot->local,
						remote->handle, 0, index);
		break;
	}
	if (DRV_UNLIKELY(code == CADGE_BUSY))
		return 0;
	if (DRV_UNLIKELY(code != CADGE_DONE && code != CADGE_QUEUED)) {
		note_failure(remote, drv_operation_name(remote->point->operation), code);
		return -1;
	}
	slot->number = number;
	slot->busy = true;
	remote->next_number++;
	if (DRV_UNLIKELY(++remote->posted == remote->limit))
		remote->ending = true;
	if (code == CADGE_DONE)
		complete(remote, index, remote->point->operation == DRV_PUT);
	return 1;
}

/* get and fetch_add: a closed loop. */
static int __attribute__((noinline)) run_results(struct drv_remote *remote, struct drv_fail *fail)
{
	const uint64_t depth = remote->point->depth;

	for (;;) {
		uint64_t accepted = 0;

		/* at most one turn of all slots: a layer that completes at once must be polled as well */
		while (remote->ready_head != remote->ready_tail && accepted < depth &&
		       DRV_LIKELY(!remote->ending)) {
			if (DRV_UNLIKELY(issue(remote,
					       remote->ready[remote->ready_head & remote->ready_mask]) <= 0))
				break;
			remote->ready_head++;
			accepted++;
		}
		if (DRV_UNLIKELY(remote->failed)) {
			*fail = remote->fail;
			return -1;
		}
		if (DRV_UNLIKELY(remote->ending) && remote->posted == remote->completed)
			return 0;
		if (DRV_UNLIKELY(drv_stop_signal))
			return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
		if ((remote->posted != remote->completed || accepted == 0) && turn(remote, fail))
			return -1;
	}
}

/* Waits until a round's puts are complete here and visible there. */
static int make_visible(struct drv_remote *remote, struct drv_fail *fail)
{
	struct drv_engine *engine = remote->port.engine;
	int code;

	remote->quiet_due = true;
	while ((code = engine->layer->quiet(engine->chan, TOKEN_QUIET)) == CADGE_BUSY)
		if (turn(remote, fail))
			return -1;
	if (code < 0)
		return drv_engine_fail("quiet", code, fail);
	if (code == CADGE_DONE)
		remote->quiet_due = false;
	while (remote->quiet_due || remote->posted != remote->completed)
		if (turn(remote, fail))
			return -1;
	return 0;
}

/* put: rounds. */
static int __attribute__((noinline)) run_puts(struct drv_remote *remote, struct drv_fail *fail)
{
	struct drv_engine *engine = remote->port.engine;
	uint64_t now = drv_clock_now(&engine->clock);

	while (!remote->ending) {
		const uint64_t round = now;
		uint32_t puts = 0;

		for (; puts < remote->point->depth && !remote->ending; puts++) {
			int status;

			remote->slots[puts].start = now;
			while ((status = issue(remote, puts)) == 0)
				if (turn(remote, fail))
					return -1;
			if (status < 0) {
				*fail = remote->fail;
				return -1;
			}
			now = remote->slots[puts].busy ? drv_clock_now(&engine->clock) : remote->last;
		}
		if (make_visible(remote, fail))
			return -1;
		now = drv_clock_now(&engine->clock);
		remote->last = now;
		if (DRV_LIKELY(remote->mode == DRV_MODE_MEASURE)) {
			for (uint32_t i = 0; i < puts; i++)
				drv_histogram_record(
					remote->attempt->remote,
					drv_clock_to_ns(&engine->clock, now - remote->slots[i].start));
			if (now >= remote->end)
				remote->ending = true;
		} else {
			complete_other(remote, round, now);
		}
		if (DRV_UNLIKELY(drv_stop_signal))
			return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
	}
	return 0;
}

static int run(struct drv_remote *remote, struct drv_fail *fail)
{
	const struct drv_engine *engine = remote->port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);
	int status;

	remote->ready_head = remote->ready_tail = 0;
	remote->ending = false;
	remote->last = now;
	if (remote->point->operation == DRV_PUT)
		return run_puts(remote, fail);
	for (uint32_t index = 0; index < remote->point->depth; index++) {
		remote->slots[index].start = now;
		remote->ready[remote->ready_tail++ & remote->ready_mask] = index;
	}
	status = run_results(remote, fail);
	/* each value below the count was fetched exactly once: their sum says so */
	if (!status && remote->point->operation == DRV_FETCH_ADD) {
		const uint64_t n = remote->posted;
		const uint64_t sum = n % 2 ? (n - 1) / 2 * n : n / 2 * (n - 1);

		if (n > 0 && remote->before_sum != sum)
			note_mismatch(remote,
				      "client: the values fetched are not those of %" PRIu64 " additions", n);
	}
	return status;
}

int drv_remote_verify(struct drv_remote *remote, uint64_t phase, struct drv_fail *fail)
{
	remote->mode = DRV_MODE_VERIFY;
	remote->phase = phase;
	remote->limit = remote->posted + drv_full_messages(remote->point);
	return run(remote, fail);
}

int drv_remote_warmup(struct drv_remote *remote, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &remote->port.engine->clock;

	remote->mode = DRV_MODE_WARMUP;
	remote->limit = UINT64_MAX;
	drv_warmup_start(&remote->warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, 100000),
			 drv_clock_to_ticks(clock, cap_ns));
	return run(remote, fail);
}

int drv_remote_measure(struct drv_remote *remote, struct drv_attempt *attempt, struct drv_fail *fail)
{
	const struct drv_clock *clock = &remote->port.engine->clock;
	const uint64_t completed = remote->completed;
	uint64_t started;
	int status;

	remote->mode = DRV_MODE_MEASURE;
	remote->limit = UINT64_MAX;
	remote->attempt = attempt;
	started = drv_clock_now(clock);
	remote->end = started + drv_clock_to_ticks(clock, remote->point->duration_ns);
	status = run(remote, fail);
	attempt->elapsed_ns = drv_clock_to_ns(clock, remote->last - started);
	attempt->operations = remote->completed - completed;
	attempt->bytes = attempt->operations * remote->point->request_bytes;
	return status;
}

bool drv_remote_settle(struct drv_remote *remote)
{
	struct drv_engine *engine = remote->port.engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;

	remote->mode = DRV_MODE_WARMUP; /* nothing is recorded any more */
	remote->warmup.over = true;
	remote->ending = true;
	while ((remote->posted != remote->completed || remote->quiet_due) && !engine->down_code &&
	       drv_now_ns() < until_ns)
		if (engine->layer->poll(engine->ctx, &remote->port.sink) < 0)
			return false;
	return remote->posted == remote->completed && !remote->quiet_due;
}

int drv_remote_start(struct drv_remote *remote, struct drv_engine *engine, const struct drv_point *point,
		     uint64_t seed, struct cadge_remote *handle, struct drv_fail *fail)
{
	memset(remote, 0, sizeof(*remote));
	drv_port_start(&remote->port, engine);
	remote->port.sink.sent = on_sent;
	remote->point = point;
	remote->seed = seed;
	remote->handle = handle;
	remote->stride = drv_memory_stride(point->request_bytes);
	remote->region_mask = drv_region_slots(point->depth) - 1;
	remote->ready_mask = remote->region_mask;
	remote->ready = calloc(remote->ready_mask + 1u, sizeof(*remote->ready));
	remote->slots = calloc(point->depth, sizeof(*remote->slots));
	if (!remote->ready || !remote->slots) {
		drv_remote_stop(remote);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the client's slots");
	}
	remote->memory = drv_pool_take(engine, DRV_POOL_CLIENT, point->depth * remote->stride, fail);
	if (!remote->memory) {
		drv_remote_stop(remote);
		return -1;
	}
	for (uint32_t index = 0; index < point->depth; index++)
		remote->slots[index].local = remote->memory + index * remote->stride;
	return 0;
}

void drv_remote_stop(struct drv_remote *remote)
{
	free(remote->ready);
	free(remote->slots);
	remote->ready = NULL;
	remote->slots = NULL;
}
