/* SPDX-License-Identifier: BSD-3-Clause */
/* What the loops of all floors share outside of their hot path, and the steps of their forms. */
#include "traffic/floor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SWAP_NS         (5 * DRV_FLOOR_NS_PER_S)
#define FULL_BYTES_MAX  (UINT64_C(16) << 20)
#define FULL_MAX        4u
#define BUFFER_SPARE    4096u
#define HUGE_FROM_BYTES ((size_t)64 << 10)

void drv_floor_mismatch(struct drv_floor_loop *loop, const char *format, ...)
{
	va_list arguments;

	if (loop->mismatches++)
		return;
	va_start(arguments, format);
	if (vsnprintf(loop->mismatch, sizeof(loop->mismatch), format, arguments) < 0)
		loop->mismatch[0] = '\0';
	va_end(arguments);
}

void drv_floor_note_broke(struct drv_floor_loop *loop, const char *what)
{
	drv_fail_set(&loop->fail, DRV_SYSTEM, "%s: %s failed: %s", loop->run->floor->name, what,
		     strerror(errno));
}

void drv_floor_write(struct drv_floor_loop *loop, uint8_t *message, uint64_t seed, uint64_t number)
{
	if (loop->full)
		drv_body_fill(message, loop->bytes, seed, loop->phase, number);
	else
		drv_touch_write(message, loop->bytes, seed, number);
}

void drv_floor_read(struct drv_floor_loop *loop, const uint8_t *message, uint64_t seed, uint64_t number,
		    const char *what)
{
	loop->full_checked += loop->full;
	if (!(loop->full ? drv_body_holds(message, loop->bytes, seed, loop->phase, number)
			 : drv_touch_read(message, loop->bytes, seed, number)))
		drv_floor_mismatch(loop, "%s has a wrong body", what);
}

int drv_floor_poll_oob(struct drv_floor_loop *loop)
{
	/* who wakes up for nothing has the time for a look; it also lets a few messages of a flow gather */
	if (loop->run->block)
		loop->run->engine->oob_next = 0;
	return drv_engine_poll_oob(loop->run->engine, drv_clock_now(&loop->run->clock),
				   loop->run->endpoint == 0 ? NULL : &loop->message, &loop->fail);
}

int drv_floor_swap(struct drv_floor_run *run, const char *name, json_t *mine, json_t **theirs_out,
		   struct drv_fail *fail)
{
	json_t *all;
	const int status =
		drv_oob_gather(run->engine->oob, name, mine, NULL, drv_now_ns() + SWAP_NS, &all, fail);

	json_decref(mine);
	if (status)
		return -1;
	if (theirs_out)
		*theirs_out = json_incref(json_array_get(all, (size_t)(1 - run->endpoint)));
	json_decref(all);
	return 0;
}

/* Aligned to a huge page; the kernel is asked for such before the first byte is touched. */
static void *huge_memory(size_t bytes)
{
	const size_t whole = drv_floor_huge(bytes);
	uint8_t *base = mmap(NULL, whole + DRV_HUGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (base == MAP_FAILED)
		return NULL;
	before = drv_floor_huge((uintptr_t)base) - (uintptr_t)base;
	if (before)
		munmap(base, before);
	if (before < DRV_HUGE_BYTES)
		munmap(base + before + whole, DRV_HUGE_BYTES - before);
	/* advice, which a kernel without huge pages does not take */
	(void)madvise(base + before, whole, MADV_HUGEPAGE);
	memset(base + before, 0, bytes);
	return base + before;
}

void *drv_floor_memory(size_t bytes, bool huge)
{
	void *base;

	if (huge)
		return huge_memory(bytes);
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return base == MAP_FAILED ? NULL : base;
}

void drv_floor_memory_free(void *base, size_t bytes, bool huge)
{
	if (base)
		munmap(base, huge ? drv_floor_huge(bytes) : bytes);
}

struct drv_floor_point drv_floor_point(const struct drv_launch *launch, size_t index)
{
	const struct drv_point *point = &launch->points[index];
	const struct drv_needs needs = drv_point_needs(point);

	/* a form in one direction gives a rate, one there and back gives latencies */
	return (struct drv_floor_point){.flow = point->pattern->quantities[0].kind == DRV_RATE,
					.bytes = needs.message_bytes,
					.depth = needs.depth};
}

uint32_t drv_floor_choice(const struct drv_floor_run *run, const char *name)
{
	const struct drv_floor_setting *setting = run->floor->settings;
	const char *value = NULL;
	uint32_t word = 0;

	while (strcmp(setting->name, name) != 0)
		setting++;
	for (size_t i = 0; i < run->launch->settings_count; i++)
		if (!strcmp(run->launch->settings[i].name, name))
			value = run->launch->settings[i].value;
	if (!value)
		return 0;
	if (!setting->words)
		return (uint32_t)strtoul(value, NULL, 10);
	while (strcmp(setting->words[word], value) != 0)
		word++;
	return word;
}

static size_t buffer_bytes(const struct drv_floor_loop *loop)
{
	return loop->bytes + BUFFER_SPARE;
}

/* Small messages lie in one page as they are, and need not wait for the kernel to clear a huge one. */
static bool huge_buffers(const struct drv_floor_loop *loop)
{
	return loop->run->huge_pages && loop->bytes >= HUGE_FROM_BYTES;
}

/* Full comparisons come in a step of the client's and in phases of the server's. */
static void compare_fully(struct drv_floor_loop *loop, bool full, uint64_t phase)
{
	loop->full = full;
	loop->phase = phase;
	loop->bodies = full || loop->touch;
}

int drv_form_prepare(struct drv_role_run *run, size_t bytes, uint32_t depth, bool flow, enum drv_touch touch,
		     struct drv_fail *fail)
{
	struct drv_floor_loop *loop = run->state;

	loop->run = run->engine->floor_run;
	loop->bytes = bytes;
	loop->depth = depth;
	loop->flow = flow;
	loop->seed = run->seed;
	loop->touch = touch != DRV_TOUCH_NONE;
	compare_fully(loop, true, 1);
	loop->op_deadline = drv_clock_to_ticks(&loop->run->clock, DRV_LOSS_MAX_NS);
	loop->out = drv_floor_memory(buffer_bytes(loop), huge_buffers(loop));
	loop->in = drv_floor_memory(buffer_bytes(loop), huge_buffers(loop));
	loop->made_at = loop->out;
	if (!loop->out || !loop->in)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for messages of %zu bytes", bytes);
	if (run->role->measures && !flow && !(loop->samples = drv_record_samples(run->record, 0, fail)))
		return -1;
	run->sleep = flow ? DRV_SLEEP_FREE : DRV_SLEEP_EACH;
	return loop->run->floor->begin(loop, fail);
}

void drv_form_stop(struct drv_role_run *run)
{
	struct drv_floor_loop *loop = run->state;

	drv_floor_memory_free(loop->out, buffer_bytes(loop), huge_buffers(loop));
	drv_floor_memory_free(loop->in, buffer_bytes(loop), huge_buffers(loop));
	loop->out = loop->in = NULL;
	json_decref(loop->message);
	loop->message = NULL;
}

int drv_form_negotiate(uint64_t bytes, bool offered, const char *form, const struct drv_offer *offer,
		       struct drv_fail *fail)
{
	const struct drv_floor *floor = offer->floor;

	if (!offered)
		return drv_fail_set(fail, DRV_NO_CAP, "wanted %s, which %s does not have", form, floor->name);
	if (bytes < floor->bytes_min)
		return drv_fail_set(fail, DRV_NO_CAP, "wanted %" PRIu64 " bytes: %s", bytes,
				    floor->bytes_min_reason);
	return drv_negotiate_message(bytes, "message", &offer->both, fail);
}

static const struct drv_floor_pair *pair_of(const struct drv_floor_loop *loop)
{
	return loop->flow ? &loop->run->floor->flow : &loop->run->floor->exchange;
}

/* One step of the client. */
static int step(struct drv_floor_loop *loop, enum drv_step mode, struct drv_fail *fail)
{
	const uint64_t lost = loop->lost;
	int status;

	loop->mode = mode;
	compare_fully(loop, mode == DRV_STEP_VERIFY, loop->phase);
	loop->done = 0;
	status = pair_of(loop)->client(loop);
	loop->posted += loop->done + loop->lost - lost;
	if (status)
		*fail = loop->fail;
	return status;
}

int drv_form_verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	struct drv_floor_loop *loop = run->state;
	const uint64_t fit = loop->bytes ? FULL_BYTES_MAX / loop->bytes : FULL_MAX;

	loop->phase = serial;
	loop->limit = fit < 1 ? 1 : fit < FULL_MAX ? fit : FULL_MAX;
	return step(loop, DRV_STEP_VERIFY, fail);
}

int drv_form_warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_floor_loop *loop = run->state;
	const struct drv_clock *clock = &loop->run->clock;
	int status;

	drv_warmup_begin(&loop->warmup, clock, cap_ns);
	status = step(loop, DRV_STEP_WARMUP, fail);
	drv_record_warmup(run->record, &loop->warmup);
	run->record->warmup_operations = loop->done;
	loop->op_deadline = drv_warmup_patience(&loop->warmup, clock);
	return status;
}

int drv_form_measure(struct drv_role_run *run, struct drv_fail *fail)
{
	struct drv_floor_loop *loop = run->state;
	const struct drv_clock *clock = &loop->run->clock;
	const uint64_t lost = loop->lost, late = loop->late;
	struct drv_record *record = run->record;
	int status;

	loop->end = drv_clock_now(clock) + drv_clock_to_ticks(clock, run->duration_ns);
	status = step(loop, DRV_STEP_MEASURE, fail);
	record->elapsed_ns = drv_clock_to_ns(clock, loop->ended - loop->started);
	record->operations = loop->done;
	record->bytes = loop->done * loop->bytes * (loop->flow ? 1 : 2);
	record->lost = loop->lost - lost;
	record->late = loop->late - late;
	if (loop->flow)
		drv_record_rate(record, 0, record->bytes, record->elapsed_ns);
	return status;
}

uint64_t drv_form_control(const struct drv_role_run *run)
{
	const struct drv_floor_loop *loop = run->state;

	return loop->next_number;
}

bool drv_form_settle(struct drv_role_run *run)
{
	struct drv_floor_loop *loop = run->state;

	return !loop->run->floor->settle || loop->run->floor->settle(loop);
}

int drv_form_serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct drv_floor_loop *loop = run->state;

	if (pair_of(loop)->server(loop)) {
		*fail = loop->fail;
		return -1;
	}
	*message_out = loop->message;
	loop->message = NULL;
	return 0;
}

void drv_form_phase(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct drv_floor_loop *loop = run->state;

	counts_out->posts = run->role->measures;
	counts_out->posted = loop->posted;
	counts_out->executes = !run->role->measures;
	counts_out->executed = loop->executions;
	counts_out->checked = loop->checked;
	counts_out->full_checked = loop->full_checked;
	counts_out->mismatches = loop->mismatches;
	snprintf(counts_out->mismatch, sizeof(counts_out->mismatch), "%.158s", loop->mismatch);
	if (run->role->measures)
		return;
	compare_fully(loop, phase->full, phase->serial);
	loop->first_number = phase->control;
	loop->phase_executions = 0;
}
