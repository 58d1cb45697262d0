/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of quantities: kept while an attempt runs, written as the result wants them. */
#include "measure/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void drv_record_start(struct drv_record *record, const struct drv_quantity *quantities)
{
	memset(record, 0, sizeof(*record));
	record->quantities = quantities;
}

void drv_record_free(struct drv_record *record)
{
	for (unsigned i = 0; i < DRV_RECORD_MAX; i++)
		free(record->values[i].samples);
	memset(record, 0, sizeof(*record));
}

struct drv_samples *drv_record_samples(struct drv_record *record, unsigned index, struct drv_fail *fail)
{
	struct drv_value *value = &record->values[index];

	if (!value->samples)
		value->samples = malloc(sizeof(*value->samples));
	if (!value->samples) {
		drv_fail_set(fail, DRV_MEMORY, "no memory for histograms");
		return NULL;
	}
	drv_histogram_clear(&value->samples->histogram);
	memset(value->samples->first_ns, 0, sizeof(value->samples->first_ns));
	value->samples->first_count = 0;
	value->there = true;
	return value->samples;
}

struct drv_samples *drv_record_first_samples(struct drv_record *record, struct drv_fail *fail)
{
	unsigned index = 0;

	while (record->quantities[index].kind != DRV_HISTOGRAM)
		index++;
	return drv_record_samples(record, index, fail);
}

void drv_record_rate(struct drv_record *record, unsigned index, uint64_t amount, uint64_t elapsed_ns)
{
	record->values[index].there = true;
	record->values[index].amount = amount;
	record->values[index].elapsed_ns = elapsed_ns;
}

void drv_record_count(struct drv_record *record, unsigned index, uint64_t amount)
{
	record->values[index].there = true;
	record->values[index].amount = amount;
}

void drv_record_fit(struct drv_record *record, unsigned index, double value)
{
	record->values[index].there = true;
	record->values[index].real = value;
}

void drv_record_warmup(struct drv_record *record, const struct drv_warmup *warmup)
{
	record->warmup_operations = warmup->operations;
	record->warmup_steady = warmup->steady;
}

void drv_samples_add(struct drv_samples *into, const struct drv_samples *from)
{
	drv_histogram_merge(&into->histogram, &from->histogram);
	/* one thread's first samples are in time order, those of two are not */
	for (uint32_t i = 0; i < from->first_count && into->first_count < DRV_FIRST_MAX; i++)
		into->first_ns[into->first_count++] = from->first_ns[i];
}

static void add_value(struct drv_value *into, const struct drv_value *from, uint64_t into_operations,
		      uint64_t from_operations)
{
	const uint64_t operations = into_operations + from_operations;

	if (!from->there)
		return;
	if (into->samples && from->samples)
		drv_samples_add(into->samples, from->samples);
	into->amount += from->amount;
	if (from->elapsed_ns > into->elapsed_ns)
		into->elapsed_ns = from->elapsed_ns;
	if (operations)
		into->real = (into->real * (double)into_operations + from->real * (double)from_operations) /
			     (double)operations;
}

void drv_record_add(struct drv_record *into, const struct drv_record *from, bool warmup_only)
{
	if (warmup_only) {
		into->warmup_operations += from->warmup_operations;
		into->warmup_steady &= from->warmup_steady;
		return;
	}
	for (unsigned i = 0; i < DRV_RECORD_MAX; i++)
		add_value(&into->values[i], &from->values[i], into->operations, from->operations);
	into->operations += from->operations;
	into->bytes += from->bytes;
	into->lost += from->lost;
	into->late += from->late;
	if (from->elapsed_ns > into->elapsed_ns)
		into->elapsed_ns = from->elapsed_ns;
}

uint64_t drv_record_overflows(const struct drv_record *record)
{
	uint64_t overflows = 0;

	for (unsigned i = 0; i < DRV_RECORD_MAX; i++)
		if (record->values[i].samples)
			overflows += record->values[i].samples->histogram.overflows;
	return overflows;
}

static int put_samples(json_t *object, const struct drv_samples *samples)
{
	const struct drv_histogram *histogram = &samples->histogram;
	const bool any = histogram->count > 0;
	char *text = drv_histogram_base64(histogram);
	json_t *first = json_array();
	char digits[40];
	int bad = !text || !first;

	bad |= drv_json_set(object, "histogram", text ? json_string_nocheck(text) : NULL);
	bad |= drv_json_set(object, "count", drv_json_count(histogram->count));
	bad |= drv_json_set(object, "sum_ns", drv_json_count(any ? histogram->sum_ns : 0));
	bad |= drv_json_set(object, "min_ns", drv_json_count(any ? histogram->min_ns : 0));
	bad |= drv_json_set(object, "max_ns", drv_json_count(any ? histogram->max_ns : 0));
	drv_histogram_decimal(any ? histogram->sum_sq_ns2 : 0, digits);
	bad |= drv_json_set(object, "sum_sq_ns2", json_string(digits));
	for (uint32_t i = 0; first && i < samples->first_count; i++)
		bad |= json_array_append_new(first, drv_json_count(samples->first_ns[i]));
	bad |= drv_json_set(object, "first_ns", first);
	free(text);
	return bad;
}

static json_t *value_json(const struct drv_quantity *quantity, const struct drv_value *value, int endpoint)
{
	json_t *object = json_pack("{s:i}", "endpoint", endpoint);
	int bad = !object;

	switch (quantity->kind) {
	case DRV_HISTOGRAM: bad |= put_samples(object, value->samples); break;
	case DRV_RATE:
		bad |= drv_json_set(object, "amount", drv_json_count(value->amount));
		bad |= drv_json_set(object, "elapsed_ns", drv_json_count(value->elapsed_ns));
		break;
	case DRV_COUNT: bad |= drv_json_set(object, "value", drv_json_count(value->amount)); break;
	case DRV_FIT: bad |= drv_json_set(object, "value", json_real(value->real)); break;
	}
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

json_t *drv_record_json(const struct drv_record *record, int endpoint)
{
	json_t *object = json_object();

	for (unsigned i = 0; object && record->quantities && record->quantities[i].name; i++) {
		json_t *list;

		if (!record->values[i].there)
			continue;
		list = json_array();
		if (!list ||
		    json_array_append_new(list,
					  value_json(&record->quantities[i], &record->values[i], endpoint)) ||
		    json_object_set(object, record->quantities[i].name, list)) {
			json_decref(object);
			object = NULL;
		}
		json_decref(list);
	}
	return object;
}

int drv_record_merge(json_t *into, const json_t *from, const struct drv_quantity *quantities, int endpoint)
{
	if (!json_is_object(from))
		return -1;
	for (unsigned i = 0; quantities && quantities[i].name; i++) {
		json_t *theirs = json_object_get(from, quantities[i].name);
		json_t *list = json_object_get(into, quantities[i].name);
		json_t *entry = json_array_get(theirs, 0);

		if (!theirs)
			continue;
		if (!json_is_object(entry) || json_array_size(theirs) != 1 ||
		    json_object_set_new(entry, "endpoint", json_integer(endpoint)))
			return -1;
		if (!list) {
			list = json_array();
			if (!list || json_object_set_new(into, quantities[i].name, list))
				return -1;
		}
		if (json_array_append(list, entry))
			return -1;
	}
	return 0;
}
