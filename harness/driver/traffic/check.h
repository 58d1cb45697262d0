/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one checker of what arrives: heads always, bodies where they are written. It counts what was compared and keeps
 * the words of the first mismatch. Compiled into each callback.
 */
#ifndef DRV_CHECK_H
#define DRV_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "traffic/payload.h"

struct drv_check {
	/* of what arrives: requests; of replies, the complement of theirs */
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
	/* distinguishes the full phases */
	uint64_t phase;
	uint64_t next_number;
	/* since the attempt began */
	uint64_t executions, key_sum;
	uint64_t checked, full_checked, mismatches;
	/* the first one, in words */
	char mismatch[160];
};

/* Counts a mismatch and keeps the words of the first. */
void drv_check_wrong(struct drv_check *check, const char *format, ...)
	__attribute__((cold, noinline, format(printf, 2, 3)));

/*
 * A message below 16 bytes that is not the next one. Over an unreliable layer some may be missing: a search ahead.
 * False when it is nothing that was sent.
 */
bool drv_check_search(struct drv_check *check, const void *data, size_t bytes)
	__attribute__((cold, noinline));

/*
 * Whether a head's second word that is not the seed is that of a phase that compares whole messages (see payload.h). Over
 * a layer that may lose messages, one of an earlier phase is no mistake.
 */
bool drv_check_phased(const struct drv_check *check, uint64_t word) __attribute__((cold, noinline));

/* Whether a request was lost in an earlier phase, and comes late: nobody knows its body now. */
DRV_INLINE bool drv_check_late(const struct drv_check *check, const void *data, size_t bytes)
{
	return DRV_UNLIKELY(!check->reliable) && bytes >= DRV_HEAD_BYTES &&
	       drv_load64((const uint8_t *)data + 8) != check->seed + (check->full ? check->phase : 0);
}

/* Reads the body of a message; whether it is what its sender wrote. */
bool drv_check_read(struct drv_check *check, const void *data, size_t bytes, uint64_t key)
	__attribute__((noinline));

/* The same of a request, unless it is late. */
bool drv_check_read_request(struct drv_check *check, const void *data, size_t bytes, uint64_t key)
	__attribute__((noinline));

/* Whether the body of a message is what its sender wrote, where bodies are written: else it is not looked at. */
DRV_INLINE bool drv_check_body(struct drv_check *check, const void *data, size_t bytes, uint64_t key)
{
	if (DRV_LIKELY(!check->reads))
		return true;
	return DRV_LIKELY(!check->full) ? drv_touch_read(data, bytes, check->seed, key)
					: drv_check_read(check, data, bytes, key);
}

/* Enters a phase: full comparison or not, and which. */
void drv_check_phase(struct drv_check *check, bool full, uint64_t phase);

/* Whether the body of a message is what its sender wrote. Reads it; to be called by any thread within a phase. */
bool drv_check_holds(const struct drv_check *check, const void *data, size_t bytes, uint64_t key);

/* Checks the head of one arrival and counts it as executed; whether it is what it must be. */
DRV_INLINE bool drv_check_head(struct drv_check *check, const void *data, size_t bytes, uint64_t *key_out)
{
	const uint64_t key = drv_head_key(data, bytes);
	bool good;

	if (DRV_LIKELY(bytes >= DRV_HEAD_BYTES)) {
		const uint64_t word = drv_load64((const uint8_t *)data + 8);

		good = DRV_LIKELY(word == check->seed) || drv_check_phased(check, word);
		if (check->by_number) {
			good &= check->reliable ? key == check->next_number : key >= check->next_number;
			check->next_number = key + 1;
		}
	} else {
		good = !check->by_number ||
		       DRV_LIKELY(drv_head_holds(data, bytes, check->seed, check->next_number)) ||
		       drv_check_search(check, data, bytes);
		check->next_number++;
	}
	check->executions++;
	check->key_sum += key;
	*key_out = key;
	return good;
}

/* Counts what was found of a message. */
DRV_INLINE void drv_check_judge(struct drv_check *check, bool good, uint64_t key, size_t bytes)
{
	if (DRV_LIKELY(good))
		check->checked++;
	else
		drv_check_wrong(check, "message %" PRIu64 " of %zu bytes begins with %016" PRIx64,
				check->executions, bytes, key);
}

/* All of it: checks one arrival, counts it, and returns its key. */
DRV_INLINE uint64_t drv_check_take(struct drv_check *check, const void *data, size_t bytes)
{
	uint64_t key;
	bool good = drv_check_head(check, data, bytes, &key);

	if (DRV_UNLIKELY(check->reads))
		good &= DRV_LIKELY(check->reliable && !check->full)
				? drv_touch_read(data, bytes, check->seed, key)
				: drv_check_read_request(check, data, bytes, key);
	drv_check_judge(check, good, key, bytes);
	return key;
}

struct drv_counts;

/* Adds what was compared, and what was wrong, to the counts of a phase. */
void drv_check_counts(const struct drv_check *check, struct drv_counts *counts);
/* The same of who carries out what arrives. */
void drv_check_executed(const struct drv_check *check, struct drv_counts *counts);

#endif
