/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lines, which way of spinning, one copy or two: chosen by measuring, before anything counts. */
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

void memory_use_pair(struct floor_state *state, bool one_line, bool pause, uint32_t pair)
{
	state->one_line = one_line;
	state->pause = pause;
	state->pair = pair;
	state->request = memory_region(state, 0) + pair * MEMORY_PAIR_BYTES;
	state->reply = one_line ? state->request : memory_region(state, 1) + pair * MEMORY_PAIR_BYTES;
}

#define TRY_ROUNDS    160u
#define TRY_DONE      UINT32_MAX
#define TRY_BUDGET_NS (UINT64_C(400) * FLOOR_NS_PER_MS)

struct candidate {
	bool one_line, pause;
	uint32_t pair;
};

/* Number 1 and up. Which variants there are depends on the floor alone, so both sides count alike. */
static uint32_t candidates_count(const struct floor_run *run)
{
	return MEMORY_PAIRS * (run->floor == &floor_cacheline ? 4 : 2);
}

static struct candidate candidate_of(uint32_t number)
{
	const uint32_t variant = (number - 1) / MEMORY_PAIRS;

	return (struct candidate){
		.one_line = variant & 2, .pause = variant & 1, .pair = (number - 1) % MEMORY_PAIRS};
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Spins until the flag is `want`; for longer than a look around takes only when the other side is gone. */
static int spin(struct floor_run *run, const uint8_t *slot, uint64_t want, bool pause, uint64_t until_ns)
{
	uint32_t idle = 0;

	(void)run;
	while (memory_flag(slot) != want) {
		if (pause)
			memory_relax();
		if ((++idle & 4095) == 0 && drv_now_ns() > until_ns)
			return -1;
	}
	return 0;
}

static int try_one(struct floor_run *run, uint64_t until_ns, uint64_t *median_out)
{
	struct floor_state *state = run->state;
	uint64_t spans[TRY_ROUNDS], before, now;

	before = drv_clock_now(&run->clock);
	for (uint32_t i = 0; i < TRY_ROUNDS; i++) {
		const uint64_t flag = state->one_line ? 2 * i + 1 : i + 1;

		memory_flag_set(state->request, flag);
		if (spin(run, state->reply, state->one_line ? flag + 1 : flag, state->pause, until_ns))
			return -1;
		now = drv_clock_now(&run->clock);
		spans[i] = now - before;
		before = now;
	}
	qsort(spans, TRY_ROUNDS, sizeof(spans[0]), compare_u64);
	*median_out = drv_clock_to_ns(&run->clock, spans[TRY_ROUNDS / 2]);
	return 0;
}

/* Endpoint 1's part: answers on the candidate that stands in the control page. */
static int try_serve(struct floor_run *run, struct drv_fail *fail)
{
	const uint64_t until_ns = drv_now_ns() + 10 * FLOOR_NS_PER_S;
	struct floor_state *state = run->state;
	uint32_t number = 0, idle = 0, now;
	uint64_t flag = 0;

	for (;;) {
		if ((idle++ & 63) == 0) {
			now = __atomic_load_n(&state->control->candidate, __ATOMIC_ACQUIRE);
			if (now == TRY_DONE)
				return 0;
			if (now != number) {
				const struct candidate c = candidate_of(now);

				number = now;
				memory_use_pair(state, c.one_line, c.pause, c.pair);
				flag = 1;
			}
			if ((idle & 0xffff) == 1 && drv_now_ns() > until_ns)
				return drv_fail_set(fail, DRV_PEER_LOST,
						    "endpoint 0 stopped trying variants");
		}
		if (!number)
			continue;
		if (memory_flag(state->request) == flag) {
			memory_flag_set(state->reply, state->one_line ? flag + 1 : flag);
			flag += state->one_line ? 2 : 1;
		} else if (state->pause) {
			memory_relax();
		}
	}
}

static int try_all(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	const uint64_t budget_end_ns = drv_now_ns() + TRY_BUDGET_NS,
		       until_ns = drv_now_ns() + 8 * FLOOR_NS_PER_S;
	struct candidate best = candidate_of(1);
	uint64_t median_ns;

	state->median_ns = UINT64_MAX;
	for (uint32_t i = 0; i < candidates_count(run); i++) {
		/* variants in turn, so that a budget that ends early has seen some of each */
		const uint32_t variants = candidates_count(run) / MEMORY_PAIRS;
		const uint32_t number = i % variants * MEMORY_PAIRS + i / variants + 1;
		const struct candidate c = candidate_of(number);

		memory_use_pair(state, c.one_line, c.pause, c.pair);
		/* what an earlier candidate left on these lines must not look like an answer */
		memory_flag_set(state->request, 0);
		memory_flag_set(state->reply, 0);
		__atomic_store_n(&state->control->candidate, number, __ATOMIC_RELEASE);
		if (try_one(run, until_ns, &median_ns))
			return drv_fail_set(fail, DRV_PEER_LOST,
					    "endpoint 1 did not answer while variants were tried");
		state->tried++;
		if (median_ns > state->worst_median_ns)
			state->worst_median_ns = median_ns;
		if (median_ns < state->median_ns) {
			state->median_ns = median_ns;
			best = c;
		}
		if (drv_now_ns() > budget_end_ns)
			break;
	}
	__atomic_store_n(&state->control->candidate, TRY_DONE, __ATOMIC_RELEASE);
	memory_use_pair(state, best.one_line, best.pause, best.pair);
	return 0;
}

/* Tries pairs of lines and ways of spinning, and agrees on the one with the least median. */
int memory_choose(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	json_t *theirs = NULL;
	int one_line = 0, pause = 0, pair = 0;

	if (run->endpoint == 1 ? try_serve(run, fail) : try_all(run, fail))
		return -1;
	if (floor_exchange(run, "variant",
			   json_pack("{s:b, s:b, s:i}", "one_line", state->one_line, "pause", state->pause,
				     "pair", (int)state->pair),
			   &theirs, fail))
		return -1;
	if (run->endpoint == 1 &&
	    (json_unpack(theirs, "{s:b, s:b, s:i}", "one_line", &one_line, "pause", &pause, "pair", &pair) ||
	     pair < 0 || pair >= (int)MEMORY_PAIRS)) {
		json_decref(theirs);
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint 0 chose no variant");
	}
	json_decref(theirs);
	if (run->endpoint == 1)
		memory_use_pair(state, one_line, pause, (uint32_t)pair);
	return 0;
}

#define LARGE_TRY_NS (UINT64_C(25) * FLOOR_NS_PER_MS)

/* For each large size: one copy of the whole, or two copies in chunks? */
int memory_choose_large(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;

	for (uint32_t i = 0; i < state->large_count; i++) {
		struct memory_large *large = &state->large[i];
		json_t *theirs = NULL;

		large->chunks = false;
		if (floor_try(run, large->bytes, LARGE_TRY_NS, &large->whole_ns, fail))
			return -1;
		large->chunks = true;
		if (floor_try(run, large->bytes, LARGE_TRY_NS, &large->chunks_ns, fail))
			return -1;
		large->chunks = large->chunks_ns < large->whole_ns;
		if (floor_exchange(run, "large", json_pack("{s:b}", "chunks", large->chunks), &theirs, fail))
			return -1;
		if (run->endpoint == 1)
			large->chunks = json_is_true(json_object_get(theirs, "chunks"));
		json_decref(theirs);
	}
	return 0;
}

/*
 * Adds to the note of endpoint 0 which large sizes go in chunks; the others are one copy. It is a choice of
 * each launch, so it has no place in the path, which must not change from launch to launch.
 */
void memory_note_large(struct floor_run *run)
{
	const struct floor_state *state = run->state;
	bool any = false;

	for (uint32_t i = 0; i < state->large_count && run->endpoint == 0; i++) {
		const size_t used = strlen(run->path.note);

		if (!state->large[i].chunks)
			continue;
		snprintf(run->path.note + used, sizeof(run->path.note) - used, "%s%llu",
			 any               ? " "
			 : *run->path.note ? "; in chunks of 64 KiB, bytes: "
					   : "in chunks of 64 KiB, bytes: ",
			 (unsigned long long)state->large[i].bytes);
		any = true;
	}
}
