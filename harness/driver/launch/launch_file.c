/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a launch file: its head here, endpoints and points in files of their own. */
#include "launch/launch_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "launch/parts.h"
#include "launch/trace.h"

#define FILE_BYTES_MAX (UINT32_C(64) << 20)
#define SHIMS_MAX      8u

static const char *const kind_names[] = {"layer", "floor"};

static int read_shims(const struct drv_reader *top, struct drv_launch *launch)
{
	const json_t *list = json_object_get(top->json, "shims");
	const size_t count = json_array_size(list);

	if (!json_is_array(list))
		return drv_read_wrong(top, "shims", list ? "must be a list" : "is missing");
	if (count > SHIMS_MAX)
		return drv_read_wrong(top, "shims", "has more than 8 entries");
	launch->shims = calloc(count + 1, sizeof(*launch->shims));
	if (!launch->shims)
		return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
	for (size_t i = 0; i < count; i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (!name)
			return drv_read_wrong(top, "shims", "must hold strings only");
		if (drv_read_name(top, "shims", name))
			return -1;
		launch->shims[i] = strdup(name);
		if (!launch->shims[i])
			return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
		launch->shims_count++;
	}
	return 0;
}

/* "shim.option" must name a shim of this launch. */
static int check_setting_owner(const struct drv_reader *top, const struct drv_launch *launch,
			       const char *name)
{
	const char *dot = strchr(name, '.');

	if (!dot)
		return 0;
	for (size_t i = 0; i < launch->shims_count; i++)
		if (strlen(launch->shims[i]) == (size_t)(dot - name) &&
		    !strncmp(launch->shims[i], name, (size_t)(dot - name)))
			return 0;
	return drv_read_wrong(top, "settings", "has a setting for a shim that is not in shims");
}

static int compare_settings(const void *left, const void *right)
{
	return strcmp(((const struct drv_name_value *)left)->name,
		      ((const struct drv_name_value *)right)->name);
}

static int read_settings(const struct drv_reader *top, struct drv_launch *launch)
{
	json_t *object = json_object_get(top->json, "settings");
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return drv_read_wrong(top, "settings", object ? "must be an object" : "is missing");
	launch->settings = calloc(json_object_size(object) + 1, sizeof(*launch->settings));
	if (!launch->settings)
		return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
	json_object_foreach(object, key, value)
	{
		struct drv_name_value *setting = &launch->settings[launch->settings_count];

		if (!key[0] || strlen(key) > 128)
			return drv_read_wrong(top, "settings", "has a name that is empty or too long");
		if (!json_is_string(value))
			return drv_read_wrong(top, "settings", "must hold strings only, numbers included");
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

static int read_ports(const struct drv_reader *top, struct drv_launch *launch)
{
	const json_t *list = json_object_get(top->json, "ports");
	json_int_t ends[2];

	if (!json_is_array(list) || json_array_size(list) != 2)
		return drv_read_wrong(top, "ports", list ? "must be a list of two ports" : "is missing");
	for (size_t i = 0; i < 2; i++) {
		const json_t *port = json_array_get(list, i);

		ends[i] = json_integer_value(port);
		if (!json_is_integer(port) || ends[i] < 0 || ends[i] > 65535)
			return drv_read_wrong(top, "ports", "must hold ports between 0 and 65535");
	}
	if (ends[0] > ends[1])
		return drv_read_wrong(top, "ports", "must hold the lower port first");
	launch->port_first = (uint16_t)ends[0];
	launch->port_last = (uint16_t)ends[1];
	return 0;
}

/* A plain name: the file lies beside the launch file, and nowhere else. */
static bool is_plain(const char *name)
{
	return name[0] != '.' && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.") == strlen(name);
}

static int read_trace(const struct drv_reader *top, struct drv_launch *launch)
{
	static const char *const keys[] = {"file", "sha256", NULL};
	struct drv_reader trace = {.where = "trace", .fail = top->fail};
	char *sha256;
	int status;

	if (!json_object_get(top->json, "trace"))
		return 0;
	if (drv_read_object(top, "trace", &trace.json) || drv_read_keys(&trace, keys) ||
	    drv_read_text(&trace, "file", false, &launch->trace.file) ||
	    drv_read_text(&trace, "sha256", false, &sha256))
		return -1;
	if (!is_plain(launch->trace.file))
		status = drv_read_wrong(&trace, "file", "must be a name without a folder");
	else if (strlen(sha256) != 64 || strspn(sha256, "0123456789abcdef") != 64)
		status = drv_read_wrong(&trace, "sha256", "must be 64 hexadecimal digits");
	else
		status = 0;
	if (!status)
		memcpy(launch->trace.sha256, sha256, sizeof(launch->trace.sha256));
	free(sha256);
	return status;
}

static int read_top(const struct drv_reader *top, struct drv_launch *launch)
{
	static const char *const keys[] = {
		"schema",   "launch_id", "campaign_id",  "kind",  "layer",       "shims",   "launcher",
		"place",    "wait",      "settings",     "seed",  "deadline_ms", "ports",   "endpoints",
		"patterns", "points",    "system_calls", "trace", "operations",  "digests", NULL};
	static const char *const schemas[] = {DRV_LAUNCH_SCHEMA};
	static const char *const launchers[] = {"direct", "mpirun"};
	const char *schema = json_string_value(json_object_get(top->json, "schema"));
	const json_t *calls = json_object_get(top->json, "system_calls");
	int64_t seed, deadline, operations;
	int word;

	if (schema && !strcmp(schema, "cadge.launch/1"))
		return drv_read_wrong(
			top, "schema",
			"is cadge.launch/1, which cadge 0.1 reads; this version reads " DRV_LAUNCH_SCHEMA);
	if (drv_read_word(top, "schema", schemas, DRV_COUNT(schemas), &word) || drv_read_keys(top, keys) ||
	    drv_read_text(top, "launch_id", false, &launch->launch_id) ||
	    drv_read_text(top, "campaign_id", false, &launch->campaign_id) ||
	    drv_read_word(top, "kind", kind_names, DRV_COUNT(kind_names), &word))
		return -1;
	launch->kind = (enum drv_kind)word;
	if (drv_read_text(top, "layer", false, &launch->layer) ||
	    drv_read_layer_name(top, "layer", launch->layer) || read_shims(top, launch) ||
	    drv_read_word(top, "launcher", launchers, DRV_COUNT(launchers), &word) ||
	    drv_read_text(top, "launcher", false, &launch->launcher) ||
	    drv_read_word(top, "place", drv_place_names, DRV_COUNT(drv_place_names), &word))
		return -1;
	launch->place = (enum drv_place)word;
	if (drv_read_word(top, "wait", drv_wait_names, DRV_COUNT(drv_wait_names), &word))
		return -1;
	launch->wait = (enum drv_wait)word;
	if (calls && !json_is_boolean(calls))
		return drv_read_wrong(top, "system_calls", "must be true or false");
	launch->system_calls = json_is_true(calls);
	if (json_object_get(top->json, "operations")) {
		if (launch->kind == DRV_KIND_FLOOR)
			return drv_read_wrong(top, "operations", "is for launches of layers, not of floors");
		if (drv_read_integer(top, "operations", 1, DRV_LAUNCH_OPERATIONS_MAX, &operations))
			return -1;
		launch->operations = (uint64_t)operations;
	}
	if (read_trace(top, launch) || read_settings(top, launch) ||
	    drv_read_integer(top, "seed", 0, INT64_MAX, &seed) ||
	    drv_read_integer(top, "deadline_ms", 1, DRV_LAUNCH_MS_MAX, &deadline) ||
	    read_ports(top, launch) || drv_launch_endpoints(top, launch) || drv_launch_points(top, launch))
		return -1;
	launch->seed = (uint64_t)seed;
	launch->deadline_ns = (uint64_t)deadline * DRV_NS_PER_MS;
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
	struct drv_reader top = {.fail = fail};
	json_error_t error;
	json_t *document = json_loadb(text, text_bytes, JSON_REJECT_DUPLICATES, &error);
	int status;

	if (!document)
		return drv_fail_set(fail, DRV_ARGUMENT, "launch file: not JSON: %s at line %d, column %d",
				    error.text, error.line, error.column);
	top.json = document;
	if (!json_is_object(document))
		status = drv_read_wrong(&top, "document", "must be an object");
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

int drv_launch_trace_read(struct drv_launch *launch, const char *launch_path, struct drv_fail *fail)
{
	const char *slash = strrchr(launch_path, '/');
	char *path;
	int status;

	if (!launch->trace.file)
		return 0;
	if (asprintf(&path, "%.*s%s", slash ? (int)(slash - launch_path) + 1 : 0, launch_path,
		     launch->trace.file) < 0)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the name of the trace");
	status = drv_trace_read(path, launch->trace.sha256, &launch->trace.read, fail);
	free(path);
	return status;
}
