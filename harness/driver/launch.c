/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"

#define FILE_BYTES_MAX (UINT32_C(64) << 20)
#define POINTS_MAX     100000u
#define SHIMS_MAX      8u
#define MS_MAX         (INT64_C(24) * 3600 * 1000)
#define NS_PER_MS      UINT64_C(1000000)

static const char *const place_names[] = {"self", "within", "between"};
static const char *const wait_names[] = {"poll", "block"};
static const char *const pattern_names[] = {"pingpong", "rpc", "stream", "onesided"};
static const char *const operation_names[] = {NULL, "put", "get", "fetch_add"};
static const char *const target_names[] = {"active", "passive"};
static const char *const kind_names[] = {"layer", "floor"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *drv_place_name(enum drv_place place)
{
	return place_names[place];
}

const char *drv_wait_name(enum drv_wait wait)
{
	return wait_names[wait];
}

const char *drv_pattern_name(enum drv_pattern pattern)
{
	return pattern_names[pattern];
}

const char *drv_operation_name(enum drv_operation operation)
{
	return operation_names[operation];
}

const char *drv_target_name(enum drv_target target)
{
	return target_names[target];
}

/* One object under examination: `where` is its path for messages, "" at the top. */
struct object {
	const json_t *json;
	char where[64];
	struct drv_fail *fail;
};

static int wrong(const struct object *object, const char *key, const char *what)
{
	return drv_fail_set(object->fail, DRV_ARGUMENT, "launch file: %s%s%s %s", object->where,
			    object->where[0] && key[0] ? "." : "", key, what);
}

/* Every key of the object must stand in the NULL-terminated list. */
static int check_keys(const struct object *object, const char *const *known)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object->json, key, value)
	{
		size_t i = 0;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (!known[i]) {
			char shown[64];
			size_t length = 0;

			for (; key[length] && length < sizeof(shown) - 1; length++)
				shown[length] = isprint((unsigned char)key[length]) ? key[length] : '?';
			shown[length] = '\0';
			return wrong(object, shown, "is not a key that this version knows");
		}
	}
	return 0;
}

static int get_text(const struct object *object, const char *key, bool may_be_empty, char **out)
{
	const json_t *value = json_object_get(object->json, key);

	if (!value)
		return wrong(object, key, "is missing");
	if (!json_is_string(value))
		return wrong(object, key, "must be a string");
	if (!may_be_empty && json_string_length(value) == 0)
		return wrong(object, key, "must not be empty");
	if (json_string_length(value) > 1024)
		return wrong(object, key, "is longer than 1024 bytes");
	*out = strdup(json_string_value(value));
	return *out ? 0 : drv_fail_set(object->fail, DRV_MEMORY, "no memory for the launch file");
}

static int get_integer(const struct object *object, const char *key, int64_t least, int64_t most,
		       int64_t *out)
{
	const json_t *value = json_object_get(object->json, key);
	char text[96];

	if (!value)
		return wrong(object, key, "is missing");
	if (!json_is_integer(value))
		return wrong(object, key, "must be an integer");
	if (json_integer_value(value) < least || json_integer_value(value) > most) {
		snprintf(text, sizeof(text), "must be between %" PRId64 " and %" PRId64, least, most);
		return wrong(object, key, text);
	}
	*out = json_integer_value(value);
	return 0;
}

/* One of some words. A NULL in the list is no word. */
static int get_word(const struct object *object, const char *key, const char *const *words,
		    size_t words_count, int *out)
{
	const json_t *value = json_object_get(object->json, key);
	char text[128] = "must be one of";

	if (!value)
		return wrong(object, key, "is missing");
	for (size_t i = 0; i < words_count; i++) {
		const size_t used = strlen(text);

		if (!words[i])
			continue;
		if (json_is_string(value) && !strcmp(json_string_value(value), words[i])) {
			*out = (int)i;
			return 0;
		}
		snprintf(text + used, sizeof(text) - used, " %s", words[i]);
	}
	return wrong(object, key, text);
}

/* A name that becomes part of a file name. */
static int check_name(const struct object *object, const char *key, const char *name)
{
	if (!islower((unsigned char)name[0]) && !isdigit((unsigned char)name[0]))
		return wrong(object, key, "must start with a lower-case letter or a digit");
	for (const char *at = name; *at; at++)
		if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) && *at != '-' && *at != '_')
			return wrong(object, key, "may hold lower-case letters, digits, '-' and '_' only");
	return 0;
}

static int read_shims(const struct object *top, struct drv_launch *launch)
{
	const json_t *list = json_object_get(top->json, "shims");
	const size_t count = json_array_size(list);

	if (!json_is_array(list))
		return wrong(top, "shims", list ? "must be a list" : "is missing");
	if (count > SHIMS_MAX)
		return wrong(top, "shims", "has more than 8 entries");
	launch->shims = calloc(count + 1, sizeof(*launch->shims));
	if (!launch->shims)
		return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
	for (size_t i = 0; i < count; i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (!name)
			return wrong(top, "shims", "must hold strings only");
		if (check_name(top, "shims", name))
			return -1;
		launch->shims[i] = strdup(name);
		if (!launch->shims[i])
			return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
		launch->shims_count++;
	}
	return 0;
}

/* "shim.option" must name a shim of this launch. */
static int check_setting_owner(const struct object *top, const struct drv_launch *launch, const char *name)
{
	const char *dot = strchr(name, '.');

	if (!dot)
		return 0;
	for (size_t i = 0; i < launch->shims_count; i++)
		if (strlen(launch->shims[i]) == (size_t)(dot - name) &&
		    !strncmp(launch->shims[i], name, (size_t)(dot - name)))
			return 0;
	return wrong(top, "settings", "has a setting for a shim that is not in shims");
}

static int compare_settings(const void *left, const void *right)
{
	return strcmp(((const struct drv_name_value *)left)->name,
		      ((const struct drv_name_value *)right)->name);
}

static int read_settings(const struct object *top, struct drv_launch *launch)
{
	json_t *object = json_object_get(top->json, "settings");
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return wrong(top, "settings", object ? "must be an object" : "is missing");
	launch->settings = calloc(json_object_size(object) + 1, sizeof(*launch->settings));
	if (!launch->settings)
		return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
	json_object_foreach(object, key, value)
	{
		struct drv_name_value *setting = &launch->settings[launch->settings_count];

		if (!key[0] || strlen(key) > 128)
			return wrong(top, "settings", "has a name that is empty or too long");
		if (!json_is_string(value))
			return wrong(top, "settings", "must hold strings only, numbers included");
		if (check_setting_owner(top, launch, key))
			return -1;
		setting->name = strdup(key);
		setting->value = strdup(json_string_value(value));
		launch->settings_count++;
		if (!setting->name || !setting->value)
			return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
	}
	qsort(launch->settings, launch->settings_count, sizeof(*launch->settings), compare_settings);
	return 0;
}

static int read_ports(const struct object *top, struct drv_launch *launch)
{
	const json_t *list = json_object_get(top->json, "ports");
	json_int_t ends[2];

	if (!json_is_array(list) || json_array_size(list) != 2)
		return wrong(top, "ports", list ? "must be a list of two ports" : "is missing");
	for (size_t i = 0; i < 2; i++) {
		const json_t *port = json_array_get(list, i);

		ends[i] = json_integer_value(port);
		if (!json_is_integer(port) || ends[i] < 0 || ends[i] > 65535)
			return wrong(top, "ports", "must hold ports between 0 and 65535");
	}
	if (ends[0] > ends[1])
		return wrong(top, "ports", "must hold the lower port first");
	launch->port_first = (uint16_t)ends[0];
	launch->port_last = (uint16_t)ends[1];
	return 0;
}

static int read_endpoints(const struct object *top, struct drv_launch *launch)
{
	static const char *const keys[] = {"host", "cpu", "device", "address", "raw_device", NULL};
	const json_t *list = json_object_get(top->json, "endpoints");
	const size_t wanted = launch->place == DRV_PLACE_SELF ? 1 : 2;

	if (!json_is_array(list))
		return wrong(top, "endpoints", list ? "must be a list" : "is missing");
	if (json_array_size(list) != wanted)
		return wrong(top, "endpoints",
			     wanted == 1 ? "must hold one entry for place self" : "must hold two entries");
	launch->endpoints_count = wanted;
	for (size_t i = 0; i < wanted; i++) {
		struct drv_endpoint *endpoint = &launch->endpoints[i];
		struct object object = {.json = json_array_get(list, i), .fail = top->fail};
		int64_t cpu;

		snprintf(object.where, sizeof(object.where), "endpoints[%zu]", i);
		if (!json_is_object(object.json))
			return wrong(&object, "", "must be an object");
		if (check_keys(&object, keys) || get_text(&object, "host", false, &endpoint->host) ||
		    get_integer(&object, "cpu", -1, 8191, &cpu) ||
		    get_text(&object, "device", false, &endpoint->device) ||
		    get_text(&object, "address", false, &endpoint->address) ||
		    get_text(&object, "raw_device", true, &endpoint->raw_device))
			return -1;
		endpoint->cpu = (int)cpu;
	}
	return 0;
}

/* Whether an optional key is there with a value: null counts as absent. */
static bool has(const struct object *object, const char *key)
{
	const json_t *value = json_object_get(object->json, key);

	return value && !json_is_null(value);
}

static int check_pattern(const struct object *object, const struct drv_point *point)
{
	switch (point->pattern) {
	case DRV_PINGPONG:
		if (point->request_bytes != point->reply_bytes)
			return wrong(object, "reply_bytes", "must equal request_bytes for pingpong");
		if (point->depth != 1)
			return wrong(object, "depth", "must be 1 for pingpong");
		break;
	case DRV_RPC: break;
	case DRV_STREAM:
		if (point->reply_bytes)
			return wrong(object, "reply_bytes", "must be 0 for stream");
		break;
	case DRV_ONESIDED:
		if (point->reply_bytes)
			return wrong(object, "reply_bytes", "must be 0 for onesided");
		if (point->operation == DRV_FETCH_ADD && point->request_bytes != 8)
			return wrong(object, "request_bytes", "must be 8 for fetch_add");
		break;
	}
	return 0;
}

static int read_point(const struct object *object, struct drv_point *point)
{
	static const char *const keys[] = {"attempt_id",  "point_id",    "pattern",   "request_bytes",
					   "reply_bytes", "depth",       "operation", "target",
					   "duration_ms", "deadline_ms", NULL};
	int64_t request, reply = 0, depth, duration, deadline;
	int word;

	if (!json_is_object(object->json))
		return wrong(object, "", "must be an object");
	if (check_keys(object, keys) || get_text(object, "attempt_id", false, &point->attempt_id) ||
	    get_text(object, "point_id", false, &point->point_id) ||
	    get_word(object, "pattern", pattern_names, COUNT(pattern_names), &word))
		return -1;
	point->pattern = (enum drv_pattern)word;
	if (get_integer(object, "request_bytes", 0, (int64_t)DRV_MESSAGE_BYTES_MAX, &request) ||
	    get_integer(object, "depth", 1, DRV_DEPTH_MAX, &depth) ||
	    get_integer(object, "duration_ms", 1, MS_MAX, &duration) ||
	    get_integer(object, "deadline_ms", 1, MS_MAX, &deadline))
		return -1;
	if ((point->pattern == DRV_PINGPONG || point->pattern == DRV_RPC || has(object, "reply_bytes")) &&
	    get_integer(object, "reply_bytes", 0, (int64_t)DRV_MESSAGE_BYTES_MAX, &reply))
		return -1;
	if (deadline <= duration)
		return wrong(object, "deadline_ms", "must be greater than duration_ms");
	if (point->pattern == DRV_ONESIDED) {
		if (get_word(object, "operation", operation_names, COUNT(operation_names), &word))
			return -1;
		point->operation = (enum drv_operation)word;
		if (has(object, "target")) {
			if (get_word(object, "target", target_names, COUNT(target_names), &word))
				return -1;
			point->target = (enum drv_target)word;
		}
	} else if (has(object, "operation") || has(object, "target")) {
		return wrong(object, has(object, "operation") ? "operation" : "target",
			     "belongs to onesided only");
	}
	point->request_bytes = (uint64_t)request;
	point->reply_bytes = (uint64_t)reply;
	point->depth = (uint32_t)depth;
	point->duration_ns = (uint64_t)duration * NS_PER_MS;
	point->deadline_ns = (uint64_t)deadline * NS_PER_MS;
	return check_pattern(object, point);
}

static int read_points(const struct object *top, struct drv_launch *launch)
{
	const json_t *list = json_object_get(top->json, "points");
	const size_t count = json_array_size(list);

	if (!json_is_array(list))
		return wrong(top, "points", list ? "must be a list" : "is missing");
	if (count == 0 || count > POINTS_MAX)
		return wrong(top, "points", "must hold between 1 and 100000 entries");
	launch->points = calloc(count, sizeof(*launch->points));
	if (!launch->points)
		return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
	for (size_t i = 0; i < count; i++) {
		struct object object = {.json = json_array_get(list, i), .fail = top->fail};

		snprintf(object.where, sizeof(object.where), "points[%zu]", i);
		launch->points_count = i + 1;
		if (read_point(&object, &launch->points[i]))
			return -1;
	}
	return 0;
}

static int read_top(const struct object *top, struct drv_launch *launch)
{
	static const char *const keys[] = {"schema", "launch_id", "campaign_id", "kind",
					   "layer",  "shims",     "launcher",    "place",
					   "wait",   "settings",  "seed",        "deadline_ms",
					   "ports",  "endpoints", "points",      NULL};
	static const char *const schemas[] = {DRV_LAUNCH_SCHEMA};
	static const char *const launchers[] = {"direct", "mpirun"};
	int64_t seed, deadline;
	int word;

	if (get_word(top, "schema", schemas, COUNT(schemas), &word) || check_keys(top, keys) ||
	    get_text(top, "launch_id", false, &launch->launch_id) ||
	    get_text(top, "campaign_id", false, &launch->campaign_id) ||
	    get_word(top, "kind", kind_names, COUNT(kind_names), &word))
		return -1;
	launch->kind = (enum drv_kind)word;
	if (get_text(top, "layer", false, &launch->layer) || check_name(top, "layer", launch->layer) ||
	    read_shims(top, launch) || get_word(top, "launcher", launchers, COUNT(launchers), &word) ||
	    get_text(top, "launcher", false, &launch->launcher) ||
	    get_word(top, "place", place_names, COUNT(place_names), &word))
		return -1;
	launch->place = (enum drv_place)word;
	if (get_word(top, "wait", wait_names, COUNT(wait_names), &word))
		return -1;
	launch->wait = (enum drv_wait)word;
	if (read_settings(top, launch) || get_integer(top, "seed", 0, INT64_MAX, &seed) ||
	    get_integer(top, "deadline_ms", 1, MS_MAX, &deadline) || read_ports(top, launch) ||
	    read_endpoints(top, launch) || read_points(top, launch))
		return -1;
	launch->seed = (uint64_t)seed;
	launch->deadline_ns = (uint64_t)deadline * NS_PER_MS;
	return 0;
}

static int make_digest(const json_t *document, struct drv_launch *launch, struct drv_fail *fail)
{
	char *text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);

	if (!text)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the launch file");
	drv_digest(text, strlen(text), launch->digest);
	free(text);
	return 0;
}

int drv_launch_parse(const char *text, size_t text_bytes, struct drv_launch *launch_out,
		     struct drv_fail *fail)
{
	struct drv_launch launch = {0};
	struct object top = {.fail = fail};
	json_error_t error;
	json_t *document = json_loadb(text, text_bytes, JSON_REJECT_DUPLICATES, &error);
	int status;

	if (!document)
		return drv_fail_set(fail, DRV_ARGUMENT, "launch file: not JSON: %s at line %d, column %d",
				    error.text, error.line, error.column);
	top.json = document;
	if (!json_is_object(document))
		status = wrong(&top, "document", "must be an object");
	else
		status = read_top(&top, &launch);
	if (!status)
		status = make_digest(document, &launch, fail);
	json_decref(document);
	if (status) {
		drv_launch_free(&launch);
		return -1;
	}
	*launch_out = launch;
	return 0;
}

int drv_launch_read(const char *path, struct drv_launch *launch_out, struct drv_fail *fail)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0, used = 0;
	int status = -1;

	if (!file)
		return drv_fail_set(fail, DRV_ARGUMENT, "launch file %s: %s", path, strerror(errno));
	for (;;) {
		if (used == room) {
			char *larger = room < FILE_BYTES_MAX ? realloc(text, room + 65536) : NULL;

			if (!larger) {
				drv_fail_set(fail, DRV_ARGUMENT, "launch file %s: larger than 64 MiB", path);
				goto done;
			}
			text = larger;
			room += 65536;
		}
		const size_t count = fread(text + used, 1, room - used, file);

		if (count == 0)
			break;
		used += count;
	}
	if (ferror(file))
		drv_fail_set(fail, DRV_ARGUMENT, "launch file %s: %s", path, strerror(errno));
	else
		status = drv_launch_parse(text, used, launch_out, fail);
done:
	free(text);
	fclose(file);
	return status;
}

void drv_launch_free(struct drv_launch *launch)
{
	for (size_t i = 0; i < launch->points_count; i++) {
		free(launch->points[i].attempt_id);
		free(launch->points[i].point_id);
	}
	for (size_t i = 0; i < launch->endpoints_count; i++) {
		free(launch->endpoints[i].host);
		free(launch->endpoints[i].device);
		free(launch->endpoints[i].address);
		free(launch->endpoints[i].raw_device);
	}
	for (size_t i = 0; i < launch->settings_count; i++) {
		free(launch->settings[i].name);
		free(launch->settings[i].value);
	}
	for (size_t i = 0; i < launch->shims_count; i++)
		free(launch->shims[i]);
	free(launch->points);
	free(launch->settings);
	free(launch->shims);
	free(launch->launch_id);
	free(launch->campaign_id);
	free(launch->layer);
	free(launch->launcher);
	memset(launch, 0, sizeof(*launch));
}
