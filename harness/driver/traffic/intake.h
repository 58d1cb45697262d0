/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving end of a pattern: checks each message that arrives and counts it. Compiled into each callback. */
#ifndef DRV_INTAKE_H
#define DRV_INTAKE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "traffic/verify.h"

struct drv_intake {
	uint64_t seed;
	/* messages must come in the order of their numbers */
	bool by_number;
	bool reliable;
	/* messages are written anew by whoever sends them, and read whole here */
	bool touch;
	/* this phase compares whole payloads */
	bool full;
	/* bodies are read: `touch` or `full` */
	bool reads;
	/* tells the full phases apart */
	uint64_t phase;
	uint64_t next_number;
	/* since the attempt began */
	uint64_t executions, key_sum;
	uint64_t checked, full_checked, mismatches;
	/* the first one, in words */
	char mismatch[160];
};

/* Counts a mismatch and keeps the words of the first. */
void drv_intake_mismatch(struct drv_intake *intake, const char *format, ...)
	__attribute__((cold, noinline, format(printf, 2, 3)));

/*
 * A message below 16 bytes that is not the next one. Over an unreliable layer some may be missing: a search ahead.
 * False when it is nothing that was sent.
 */
bool drv_intake_search(struct drv_intake *intake, const void *data, size_t bytes)
	__attribute__((cold, noinline));

/* Reads the body of a message; whether it is what its sender wrote. */
bool drv_intake_read(struct drv_intake *intake, const void *data, size_t bytes, uint64_t key)
	__attribute__((noinline));

/* Enters a phase: full comparison or not, and which. */
void drv_intake_phase(struct drv_intake *intake, bool full, uint64_t phase);

/* Whether the body of a message is what its sender wrote. Reads it; to be called by any thread within a phase. */
bool drv_intake_holds(const struct drv_intake *intake, const void *data, size_t bytes, uint64_t key);

/* Checks the head of one arrival and counts it as executed; whether it is what it must be. */
DRV_INLINE bool drv_intake_head(struct drv_intake *intake, const void *data, size_t bytes, uint64_t *key_out)
{
	const uint64_t key = drv_head_key(data, bytes);
	bool good;

	if (DRV_LIKELY(bytes >= DRV_HEAD_BYTES)) {
		good = drv_load64((const uint8_t *)data + 8) == intake->seed;
		if (intake->by_number) {
			good &= intake->reliable ? key == intake->next_number : key >= intake->next_number;
			intake->next_number = key + 1;
		}
	} else {
		good = !intake->by_number ||
		       DRV_LIKELY(drv_head_holds(data, bytes, intake->seed, intake->next_number)) ||
		       drv_intake_search(intake, data, bytes);
		intake->next_number++;
	}
	intake->executions++;
	intake->key_sum += key;
	*key_out = key;
	return good;
}

/* Counts what was found of a message. */
DRV_INLINE void drv_intake_judge(struct drv_intake *intake, bool good, uint64_t key, size_t bytes)
{
	if (DRV_LIKELY(good))
		intake->checked++;
	else
		drv_intake_mismatch(intake, "message %" PRIu64 " of %zu bytes begins with %016" PRIx64,
				    intake->executions, bytes, key);
}

/* All of it: checks one arrival, counts it, and returns its key. */
DRV_INLINE uint64_t drv_intake_take(struct drv_intake *intake, const void *data, size_t bytes)
{
	uint64_t key;
	bool good = drv_intake_head(intake, data, bytes, &key);

	if (DRV_UNLIKELY(intake->reads))
		good &= drv_intake_read(intake, data, bytes, key);
	drv_intake_judge(intake, good, key, bytes);
	return key;
}

struct drv_counts;

/* Adds what was taken in to the counts of a phase. */
void drv_intake_counts(const struct drv_intake *intake, struct drv_counts *counts);

#endif
