/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the points of a launch file. Names, types and limits of parameters are those of the pattern's table; "patterns"
 * of the launch file says which patterns there are, and to people what their limits were where it was planned.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/parts.h"
#include "launch/patterns.h"

#define POINTS_MAX 100000u

/* Whether endpoint `e` can have a role at all, and then with the channels that it has. */
static int check_role(const struct drv_reader *declaration, const struct drv_launch *launch,
		      const struct drv_role *role, size_t e, bool channels_too)
{
	const size_t channels = drv_launch_channels(launch, e, 0, NULL, 0);
	const size_t threads = drv_endpoint_threads(&launch->endpoints[e]);
	char text[200];

	if (role->control && e > 0)
		snprintf(text, sizeof(text),
			 "gives endpoint %zu the role '%.60s', which must be endpoint 0's", e, role->name);
	else if (threads > 1 && !role->threads)
		snprintf(text, sizeof(text),
			 "gives endpoint %zu the role '%.60s', which is played by one thread, not %zu", e,
			 role->name, threads);
	else if (launch->endpoints[e].worker_cpus_count && !role->workers)
		snprintf(text, sizeof(text),
			 "gives endpoint %zu the role '%.60s', which has no hands, and %zu of them", e,
			 role->name, launch->endpoints[e].worker_cpus_count);
	else if (channels_too && (!channels || (role->channels_most && channels > role->channels_most)))
		snprintf(text, sizeof(text),
			 "gives endpoint %zu the role '%.60s', which cannot be played on %zu channels", e,
			 role->name, channels);
	else
		return 0;
	return drv_read_wrong(declaration, "", text);
}

static int check_self(const struct drv_reader *declaration, const struct drv_launch *launch,
		      const struct drv_pattern *pattern)
{
	struct drv_role role;

	if (!pattern->self)
		return 0;
	role = drv_role_self(pattern);
	return check_role(declaration, launch, &role, 0, true);
}

/* Every endpoint's role must be one of the pattern's, and somebody must act. */
static int check_roles(const struct drv_reader *declaration, const struct drv_pattern *pattern,
		       const struct drv_launch *launch)
{
	bool measures = false;
	char text[200];

	if (launch->place == DRV_PLACE_SELF)
		return check_self(declaration, launch, pattern);
	for (size_t e = 0; e < launch->endpoints_count; e++) {
		const struct drv_role *role = drv_role_find(pattern, launch->endpoints[e].role);

		if (!role) {
			snprintf(text, sizeof(text), "has no role '%.60s', which endpoint %zu is given",
				 launch->endpoints[e].role, e);
			return drv_read_wrong(declaration, "", text);
		}
		if (check_role(declaration, launch, role, e, false))
			return -1;
		measures |= role->measures;
	}
	for (size_t e = 0; e < launch->endpoints_count; e++)
		if (check_role(declaration, launch, drv_role_find(pattern, launch->endpoints[e].role), e,
			       true))
			return -1;
	return measures ? 0 : drv_read_wrong(declaration, "", "gives no endpoint a role that measures");
}

/*
 * Whoever planned the launch and this program must mean the same pattern: an older build may lie on a host, and a campaign
 * that goes on may be older. A launch file that somebody wrote by hand may name no digests.
 */
static int check_digest(const struct drv_reader *top, const struct drv_pattern *pattern)
{
	const json_t *digests = json_object_get(top->json, "digests");
	const char *digest = json_string_value(json_object_get(digests, pattern->name));
	struct drv_reader reader = {.where = "digests", .fail = top->fail};

	if (digests && !json_is_object(digests))
		return drv_read_wrong(top, "digests", "must be an object");
	if (digests && !digest)
		return drv_read_wrong(&reader, pattern->name, "is missing");
	if (digest && strcmp(digest, pattern->digest) != 0)
		return drv_read_wrong(
			&reader, pattern->name,
			"is of another version of this pattern than this program was built with; "
			"build both from one checkout");
	return 0;
}

static int check_patterns(const struct drv_reader *top, const struct drv_reader *patterns,
			  const struct drv_launch *launch)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)patterns->json, name, value)
	{
		const struct drv_pattern *pattern = drv_pattern_find(name, launch->kind == DRV_KIND_FLOOR);
		struct drv_reader reader = {.json = value, .fail = patterns->fail};

		if (!pattern)
			return drv_read_wrong(patterns, name,
					      launch->kind == DRV_KIND_FLOOR
						      ? "is not a form of floors that this program knows"
						      : "is not a pattern that this program was built with");
		snprintf(reader.where, sizeof(reader.where), "patterns.%.60s", name);
		if (!json_is_object(value))
			return drv_read_wrong(&reader, "", "must be an object");
		if (check_digest(top, pattern) || check_roles(&reader, pattern, launch))
			return -1;
	}
	return 0;
}

static size_t words_of(const struct drv_parameter *parameter)
{
	size_t count = 0;

	while (parameter->words[count])
		count++;
	return count;
}

static int read_parameters(const struct drv_reader *reader, const struct drv_pattern *pattern,
			   uint8_t *parameters)
{
	const char *known[DRV_PARAMETERS_MAX + 1];
	size_t count = 0;

	for (const struct drv_parameter *parameter = pattern->parameters; parameter->name; parameter++)
		known[count++] = parameter->name;
	known[count] = NULL;
	if (drv_read_keys(reader, known))
		return -1;
	for (const struct drv_parameter *parameter = pattern->parameters; parameter->name; parameter++) {
		uint8_t *to = parameters + parameter->offset;
		int64_t value;
		int word;

		if (parameter->type == DRV_CHOICE) {
			if (drv_read_word(reader, parameter->name, parameter->words, words_of(parameter),
					  &word))
				return -1;
			memcpy(to, &(uint32_t){(uint32_t)word}, sizeof(uint32_t));
			continue;
		}
		if (drv_read_integer(reader, parameter->name, parameter->least, parameter->most, &value))
			return -1;
		memcpy(to, &(uint64_t){(uint64_t)value}, sizeof(uint64_t));
	}
	return 0;
}

static int read_workload(const struct drv_reader *point_reader, const struct drv_reader *patterns,
			 const struct drv_launch *launch, struct drv_point *point)
{
	static const char *const keys[] = {"pattern", "parameters", NULL};
	struct drv_reader reader = {.fail = point_reader->fail}, parameters = {.fail = point_reader->fail};
	const char *name;

	if (drv_read_object(point_reader, "workload", &reader.json))
		return -1;
	snprintf(reader.where, sizeof(reader.where), "%.90s.workload", point_reader->where);
	if (drv_read_keys(&reader, keys))
		return -1;
	name = json_string_value(json_object_get(reader.json, "pattern"));
	if (!name || !json_object_get(patterns->json, name))
		return drv_read_wrong(&reader, "pattern", "must name one of the launch's patterns");
	point->pattern = drv_pattern_find(name, launch->kind == DRV_KIND_FLOOR);
	if (drv_read_object(&reader, "parameters", &parameters.json))
		return -1;
	snprintf(parameters.where, sizeof(parameters.where), "%.90s.parameters", reader.where);
	point->parameters = calloc(1, point->pattern->parameters_bytes + 1);
	point->workload = json_incref((json_t *)(uintptr_t)reader.json);
	if (!point->parameters)
		return drv_fail_set(reader.fail, DRV_MEMORY, "no memory for the launch file");
	return read_parameters(&parameters, point->pattern, point->parameters);
}

static int read_point(const struct drv_reader *reader, const struct drv_reader *patterns,
		      const struct drv_launch *launch, struct drv_point *point)
{
	static const char *const keys[] = {"attempt_id",  "point_id",    "workload",
					   "duration_ms", "deadline_ms", NULL};
	int64_t duration, deadline;

	if (!json_is_object(reader->json))
		return drv_read_wrong(reader, "", "must be an object");
	if (drv_read_keys(reader, keys) || drv_read_text(reader, "attempt_id", false, &point->attempt_id) ||
	    drv_read_text(reader, "point_id", false, &point->point_id) ||
	    drv_read_integer(reader, "duration_ms", 1, DRV_LAUNCH_MS_MAX, &duration) ||
	    drv_read_integer(reader, "deadline_ms", 1, DRV_LAUNCH_MS_MAX, &deadline))
		return -1;
	if (deadline <= duration)
		return drv_read_wrong(reader, "deadline_ms", "must be greater than duration_ms");
	point->duration_ns = (uint64_t)duration * DRV_NS_PER_MS;
	point->deadline_ns = (uint64_t)deadline * DRV_NS_PER_MS;
	return read_workload(reader, patterns, launch, point);
}

int drv_launch_points(const struct drv_reader *top, struct drv_launch *launch)
{
	struct drv_reader patterns = {.where = "patterns", .fail = top->fail};
	const json_t *list;

	if (drv_read_object(top, "patterns", &patterns.json) || check_patterns(top, &patterns, launch) ||
	    drv_read_list(top, "points", 1, POINTS_MAX, &list))
		return -1;
	launch->points = calloc(json_array_size(list), sizeof(*launch->points));
	if (!launch->points)
		return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct drv_reader reader = {.json = json_array_get(list, i), .fail = top->fail};

		snprintf(reader.where, sizeof(reader.where), "points[%zu]", i);
		launch->points_count = i + 1;
		if (read_point(&reader, &patterns, launch, &launch->points[i]))
			return -1;
	}
	return 0;
}
