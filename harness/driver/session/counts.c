/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts and phases to and from messages. */
#include "session/counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* 64 bits do not fit a JSON integer */
static json_t *bits(uint64_t value)
{
	char text[20];

	snprintf(text, sizeof(text), "%" PRIx64, value);
	return json_string(text);
}

static int parse_bits(const json_t *object, const char *key, uint64_t *out)
{
	const char *text = json_string_value(json_object_get(object, key));
	char end;

	return text && sscanf(text, "%" SCNx64 "%c", out, &end) == 1 ? 0 : -1;
}

static int parse_count(const json_t *object, const char *key, uint64_t *out)
{
	const json_t *value = json_object_get(object, key);

	*out = (uint64_t)json_integer_value(value);
	return json_is_integer(value) && json_integer_value(value) >= 0 ? 0 : -1;
}

/* Each as a list, by sort. */
static json_t *stamps_json(const struct drv_stamps *stamps)
{
	return json_pack("{s:[o, o], s:[o, o]}", "count", drv_json_count(stamps->count[0]),
			 drv_json_count(stamps->count[1]), "sum", bits(stamps->sum[0]), bits(stamps->sum[1]));
}

static int parse_stamps(const json_t *object, struct drv_stamps *out)
{
	json_int_t count[2];
	const char *sum[2];
	char end;

	if (json_unpack((json_t *)(uintptr_t)object, "{s:[I, I], s:[s, s]}", "count", &count[0], &count[1],
			"sum", &sum[0], &sum[1]))
		return -1;
	for (int i = 0; i < 2; i++) {
		if (count[i] < 0 || sscanf(sum[i], "%" SCNx64 "%c", &out->sum[i], &end) != 1)
			return -1;
		out->count[i] = (uint64_t)count[i];
	}
	return 0;
}

json_t *drv_counts_json(const struct drv_counts *counts)
{
	return json_pack(
		"{s:s, s:b, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "m",
		"counts", "posts", counts->posts, "posted", drv_json_count(counts->posted), "posted_keys",
		bits(counts->posted_keys), "executes", counts->executes, "exact", counts->exact, "executed",
		drv_json_count(counts->executed), "executed_keys", bits(counts->executed_keys), "checked",
		drv_json_count(counts->checked), "full_checked", drv_json_count(counts->full_checked),
		"mismatches", drv_json_count(counts->mismatches), "waits", drv_json_count(counts->waits),
		"mismatch", drv_json_text(counts->mismatch), "usage", drv_usage_json(&counts->usage, 1),
		"layer", drv_counters_json(&counts->layer), "stamps", stamps_json(&counts->stamps));
}

int drv_counts_parse(const json_t *object, struct drv_counts *counts_out, struct drv_fail *fail)
{
	const char *mismatch = json_string_value(json_object_get(object, "mismatch"));
	struct drv_counts counts = {0};

	if (parse_count(object, "posted", &counts.posted) ||
	    parse_bits(object, "posted_keys", &counts.posted_keys) ||
	    parse_count(object, "executed", &counts.executed) ||
	    parse_bits(object, "executed_keys", &counts.executed_keys) ||
	    parse_count(object, "checked", &counts.checked) ||
	    parse_count(object, "full_checked", &counts.full_checked) ||
	    parse_count(object, "mismatches", &counts.mismatches) ||
	    parse_count(object, "waits", &counts.waits) || !mismatch ||
	    drv_counters_parse(json_object_get(object, "layer"), &counts.layer) ||
	    parse_stamps(json_object_get(object, "stamps"), &counts.stamps))
		return drv_fail_set(fail, DRV_PROTOCOL, "an endpoint sent invalid counts");
	counts.posts = json_is_true(json_object_get(object, "posts"));
	counts.executes = json_is_true(json_object_get(object, "executes"));
	counts.exact = json_is_true(json_object_get(object, "exact"));
	snprintf(counts.mismatch, sizeof(counts.mismatch), "%s", mismatch);
	if (drv_usage_parse(json_object_get(object, "usage"), &counts.usage, fail))
		return -1;
	*counts_out = counts;
	return 0;
}

json_t *drv_phase_json(const char *name, const struct drv_phase *phase)
{
	return json_pack("{s:s, s:i, s:b, s:I, s:o}", "m", name, "ended", (int)phase->ended, "full",
			 phase->full, "serial", (json_int_t)phase->serial, "told", bits(phase->control));
}

int drv_phase_parse(const json_t *object, struct drv_phase *phase_out, struct drv_fail *fail)
{
	const char *name = json_string_value(json_object_get(object, "m"));
	const json_int_t ended = json_integer_value(json_object_get(object, "ended"));
	struct drv_phase phase = {0};

	if (!name || !json_is_integer(json_object_get(object, "ended")) || ended < DRV_STEP_VERIFY ||
	    ended > DRV_STEP_MEASURE || parse_count(object, "serial", &phase.serial) ||
	    parse_bits(object, "told", &phase.control))
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint 0 sent an invalid phase");
	phase.ended = (enum drv_step)ended;
	phase.full = json_is_true(json_object_get(object, "full"));
	phase.cancelled = !strcmp(name, "cancel");
	phase.last = phase.cancelled || !strcmp(name, "finish");
	*phase_out = phase;
	return 0;
}
