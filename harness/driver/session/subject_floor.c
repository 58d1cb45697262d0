/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's subject is a floor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "engine/facts.h"
#include "traffic/floor.h"
#include "session/plugins.h"
#include "session/rights.h"
#include "session/subject.h"
#include "base/text.h"

/* The floor's setting called `name`; NULL when it has none. */
static const struct drv_floor_setting *setting_of(const struct drv_floor *floor, const char *name)
{
	for (const struct drv_floor_setting *setting = floor->settings; setting && setting->name; setting++)
		if (!strcmp(setting->name, name))
			return setting;
	return NULL;
}

static int check_setting(const struct drv_floor *floor, const struct drv_name_value *given,
			 struct drv_fail *fail)
{
	const struct drv_floor_setting *setting = setting_of(floor, given->name);
	char known[200] = "";
	char *end;

	if (!setting)
		return drv_fail_set(fail, DRV_ARGUMENT, "%s has no setting '%s'", floor->name, given->name);
	if (!setting->words) {
		const unsigned long value = strtoul(given->value, &end, 10);

		if (given->value[0] < '0' || given->value[0] > '9' || *end || value > setting->max)
			return drv_fail_set(fail, DRV_ARGUMENT,
					    "%s: setting %s must be a number from 0 to %u, is '%s'",
					    floor->name, given->name, setting->max, given->value);
		return 0;
	}
	for (const char *const *word = setting->words; *word; word++) {
		const size_t used = strlen(known);

		if (!strcmp(*word, given->value))
			return 0;
		snprintf(known + used, sizeof(known) - used, " %s", *word);
	}
	return drv_fail_set(fail, DRV_ARGUMENT, "%s: setting %s must be one of%s, is '%s'", floor->name,
			    given->name, known, given->value);
}

/* What can be said from the launch file alone. */
static int suits(const struct drv_launch *launch, const struct drv_floor *floor, struct drv_fail *fail)
{
	if (launch->place == DRV_PLACE_SELF || (launch->place == DRV_PLACE_WITHIN && !floor->within) ||
	    (launch->place == DRV_PLACE_BETWEEN && !floor->between))
		return drv_fail_set(fail, DRV_NO_CAP, "wanted place %s, where %s is not measured",
				    drv_place_names[launch->place], floor->name);
	if (launch->wait == DRV_WAIT_BLOCK ? !floor->block : !floor->poll)
		return drv_fail_set(fail, DRV_NO_WAIT, "wanted wait %s, but %s can only %s",
				    drv_wait_names[launch->wait], floor->name,
				    floor->block ? "block" : "poll");
	if (launch->endpoints_count != 2)
		return drv_fail_set(fail, DRV_NO_CAP, "wanted %zu endpoints, a floor joins 2",
				    launch->endpoints_count);
	/* a floor's roles are not played by threads: the launch file's reader saw to that */
	if (!drv_role_find(launch->points[0].pattern, launch->endpoints[0].role)->measures ||
	    drv_role_find(launch->points[0].pattern, launch->endpoints[1].role)->measures)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted other roles: of a floor endpoint 0 measures, 1 answers");
	for (size_t i = 0; i < launch->settings_count; i++)
		if (check_setting(floor, &launch->settings[i], fail))
			return -1;
	return 0;
}

static json_t *library_json(void)
{
	struct utsname system;

	return json_pack("{s:s, s:o, s:n, s:n}", "name", "Linux", "stated_version",
			 json_string(uname(&system) ? "unknown" : system.release), "file", "build_id");
}

static json_t *adapter_json(const struct drv_floor *floor)
{
	/* cadge: another rpc, that of a layer, which a floor does not have */
	return json_pack("{s:s, s:s, s:s, s:n, s:n, s:n, s:[], s:{}, s:{}}", "name", floor->name, "style",
			 "floor", "substrate", floor->substrate, "file", "build_id", "rpc", "caps", "traits",
			 "semantics");
}

static json_t *limits_json(const struct drv_floor_run *run)
{
	return json_pack("{s:o, s:i, s:i, s:o, s:s, s:s, s:i}", "message_bytes_max",
			 drv_json_count(run->bytes_max), "depth_max", 1, "iov_max", 1, "short_bytes_max",
			 drv_json_count(run->bytes_max), "short_path", run->path.used, "long_path",
			 run->path.used, "wire_overhead_bytes", 0);
}

static int load(struct drv_engine *engine, const char *modules, struct drv_result *result,
		struct drv_fail *fail)
{
	const struct drv_floor *floor = drv_floor_find(engine->launch->layer);
	struct drv_floor_run *run;

	(void)modules;
	if (!floor)
		return drv_fail_set(fail, DRV_BUILD_ABSENT, "there is no floor '%s' in this program",
				    engine->launch->layer);
	run = calloc(1, sizeof(*run));
	if (!run)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the floor");
	run->floor = floor;
	run->engine = engine;
	run->launch = engine->launch;
	run->endpoint = engine->endpoint;
	run->block = engine->block;
	run->clock = engine->clock;
	engine->floor_run = run;
	engine->offer.floor = floor;
	result->adapter = adapter_json(floor);
	result->library = library_json();
	return suits(engine->launch, floor, fail);
}

static int open_floor(struct drv_engine *engine, struct drv_result *result, struct drv_ability *ability_out,
		      struct drv_fail *fail)
{
	struct drv_floor_run *run = engine->floor_run;

	(void)result;
	if (run->floor->open(run, fail))
		return -1;
	*ability_out = (struct drv_ability){.caps = run->floor->lossy ? 0 : CADGE_CAP_RELIABLE,
					    .message_bytes_max = run->bytes_max,
					    .depth_max = UINT32_MAX};
	return 0;
}

static int connect_floor(struct drv_engine *engine, struct drv_result *result, uint64_t deadline_ns,
			 struct drv_fail *fail)
{
	struct drv_floor_run *run = engine->floor_run;

	/* from here on it sends and receives, which takes no rights */
	if (run->floor->connect(run, fail) || drv_rights_drop(fail))
		return -1;
	/* what is used is known only now */
	result->limits = limits_json(run);
	return drv_oob_barrier(engine->oob, "connected", NULL, deadline_ns, fail);
}

static json_t *paths(struct drv_engine *engine, struct drv_fail *fail)
{
	const struct drv_floor_run *run = engine->floor_run;
	json_t *entry = drv_facts_path(&run->path);

	if (drv_json_set(entry, "endpoint", json_integer(engine->endpoint)) ||
	    drv_json_set(entry, "peer", json_integer(1 - engine->endpoint))) {
		drv_fail_set(fail, DRV_MEMORY, "no memory for the path");
		json_decref(entry);
		return NULL;
	}
	return json_pack("[o]", entry);
}

static void close_floor(struct drv_engine *engine)
{
	if (engine->floor_run)
		engine->floor_run->floor->close(engine->floor_run);
	free(engine->floor_run);
	engine->floor_run = NULL;
}

const struct drv_subject drv_subject_floor = {load, open_floor, connect_floor, paths, close_floor};
