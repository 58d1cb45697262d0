/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "tests/styles/frame.h"

enum { BEFORE = 77, WRITTEN = 78, FORBIDDEN = 79 }; /* seeds */

static int by_length(const void *a, const void *b)
{
	const size_t left = *(const size_t *)a, right = *(const size_t *)b;

	return (left > right) - (left < right);
}

unsigned int guard_lengths(const struct guard *guard, size_t lengths[GUARD_LENGTHS_MAX])
{
	const size_t unit = guard->unit ? guard->unit : 1;
	unsigned int count = 0, kept = 0;

	lengths[count++] = unit;
	lengths[count++] = guard->bytes;
	for (const size_t *at = guard->switches; *at; at++)
		for (size_t bytes = *at - unit; bytes <= *at + unit; bytes += unit) {
			EXPECT(self, count < GUARD_LENGTHS_MAX, "too many lengths");
			if (bytes && bytes <= guard->bytes)
				lengths[count++] = bytes;
		}
	qsort(lengths, count, sizeof(*lengths), by_length);
	for (unsigned int i = 0; i < count; i++)
		if (!kept || lengths[kept - 1] != lengths[i])
			lengths[kept++] = lengths[i];
	return kept;
}

/* Rank 0: the memory holds `written` bytes of an attempt, and behind them what it held before. */
static void expect_memory(const struct guard *guard, const uint8_t *before, size_t written, const char *name,
			  size_t bytes)
{
	size_t changed = 0;

	EXPECT(self, is_filled(guard->memory, written, WRITTEN),
	       "%s: %zu bytes that may be written are not there", name, bytes);
	if (memcmp(guard->memory + written, before + written, guard->bytes - written) == 0)
		return;
	for (size_t i = written; i < guard->bytes; i++)
		changed += guard->memory[i] != before[i];
	rank_fail(self, "%s: %zu bytes were %s, and %zu of %zu bytes of the memory changed", name, bytes,
		  written ? "written" : "refused", changed, guard->bytes - written);
}

static void call(void (*step)(size_t bytes), size_t bytes)
{
	if (step)
		step(bytes);
}

static void own(const struct guard *guard, const struct guard_case *one, size_t bytes, uint8_t *before)
{
	fill(before, guard->bytes, BEFORE);
	memcpy(guard->memory, before, guard->bytes);
	call(one->allow, bytes);
	barrier_all();
	call(one->arrived, bytes);
	barrier_all();
	expect_memory(guard, before, bytes, one->name, bytes);
	memcpy(guard->memory, before, guard->bytes);
	call(one->forbid, bytes);
	barrier_all();
	barrier_all();
	expect_memory(guard, before, 0, one->name, bytes);
	call(one->after, bytes);
	barrier_all();
}

static void attempt(const struct guard_case *one, size_t bytes)
{
	call(one->learn, bytes);
	barrier_all();
	one->write(bytes, WRITTEN);
	barrier_all();
	barrier_all();
	one->attempt(bytes, FORBIDDEN);
	barrier_all();
	barrier_all();
}

void guard_try(const struct guard *guard, const struct guard_case *cases, unsigned int count)
{
	uint8_t *before = malloc(guard->bytes);
	size_t lengths[GUARD_LENGTHS_MAX];
	const unsigned int lengths_count = guard_lengths(guard, lengths);

	EXPECT(self, before, "no memory");
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; j < lengths_count; j++)
			if (self->number == 0)
				own(guard, &cases[i], lengths[j], before);
			else
				attempt(&cases[i], lengths[j]);
	free(before);
}
