/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer's own counters, by name. */
#include "measure/counters.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* A name of lower-case letters, dots and underscores that does not end as a state's does: see layer.h. */
static bool is_count(const char *name)
{
	const size_t bytes = strlen(name);

	if (!bytes || bytes >= DRV_COUNTER_NAME_BYTES ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz._") != bytes)
		return false;
	return !(bytes > 4 && !strcmp(name + bytes - 4, "_now")) &&
	       !(bytes > 5 && !strcmp(name + bytes - 5, "_most"));
}

static uint64_t *find(struct drv_counters *counters, const char *name)
{
	for (uint32_t i = 0; i < counters->count; i++)
		if (!strcmp(counters->list[i].name, name))
			return &counters->list[i].value;
	return NULL;
}

/* A shim and the layer under it may both count something of one name: both are meant. */
static void take(void *arg, const char *name, uint64_t value)
{
	struct drv_counters *counters = arg;
	uint64_t *known;

	if (!is_count(name))
		return;
	known = find(counters, name);
	if (known) {
		*known += value;
		return;
	}
	if (counters->count == DRV_COUNTERS_MAX)
		return;
	snprintf(counters->list[counters->count].name, DRV_COUNTER_NAME_BYTES, "%s", name);
	counters->list[counters->count++].value = value;
}

void drv_counters_read(const struct cadge_layer *layer, const struct cadge_ctx *ctx,
		       struct drv_counters *counters_out)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	counters_out->count = 0;
	if (!layer || !ctx)
		return;
	layer->limits(ctx, &limits);
	if (limits.caps & CADGE_CAP_COUNTERS)
		layer->counters(ctx, take, counters_out);
}

void drv_counters_add(struct drv_counters *sum, const struct drv_counters *more)
{
	for (uint32_t i = 0; i < more->count; i++)
		take(sum, more->list[i].name, more->list[i].value);
}

json_t *drv_counters_since_json(const struct drv_counters *earlier, const struct drv_counters *later)
{
	struct drv_counters before = *earlier;
	json_t *object = json_object();

	for (uint32_t i = 0; object && i < later->count; i++) {
		const uint64_t *from = find(&before, later->list[i].name);

		if (from && later->list[i].value > *from &&
		    drv_json_set(object, later->list[i].name, drv_json_count(later->list[i].value - *from))) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

json_t *drv_counters_json(const struct drv_counters *counters)
{
	json_t *object = json_object();

	for (uint32_t i = 0; object && i < counters->count; i++)
		if (drv_json_set(object, counters->list[i].name, drv_json_count(counters->list[i].value))) {
			json_decref(object);
			return NULL;
		}
	return object;
}

int drv_counters_parse(const json_t *object, struct drv_counters *counters_out)
{
	const char *name;
	json_t *value;

	counters_out->count = 0;
	if (!json_is_object(object) || json_object_size(object) > DRV_COUNTERS_MAX)
		return -1;
	json_object_foreach((json_t *)(uintptr_t)object, name, value)
	{
		if (!is_count(name) || !json_is_integer(value) || json_integer_value(value) < 0)
			return -1;
		take(counters_out, name, (uint64_t)json_integer_value(value));
	}
	return 0;
}
