/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables that the linker collected: every pattern, form and floor is whole. */
#include <string.h>

#include "measure/arrivals.h"
#include "traffic/floor.h"
#include "traffic/responder.h"
#include "measure/service.h"
#include "launch/patterns.h"
#include "session/plugins.h"
#include "tap.h"

static int role_whole(const struct drv_role *role)
{
	return role->name && role->prepare && role->phase && role->state_bytes &&
	       role->measures == (role->verify && role->warmup && role->measure);
}

static void check_pattern(const char *name, bool form)
{
	const struct drv_pattern *pattern = drv_pattern_find(name, form);
	int parameters = 0, quantities = 0, roles = 0, requester = 0, whole = 1;

	if (!tap_ok(pattern != NULL, "%s is there", name))
		return;
	for (const struct drv_parameter *parameter = pattern->parameters; parameter->name;
	     parameter++, parameters++) {
		const size_t bytes = parameter->type == DRV_CHOICE ? sizeof(uint32_t) : sizeof(uint64_t);

		whole &= parameter->offset + bytes <= pattern->parameters_bytes;
		whole &= (parameter->type == DRV_CHOICE) == (parameter->words != NULL);
	}
	for (const struct drv_quantity *quantity = pattern->quantities; quantity->name; quantity++)
		quantities++;
	for (const struct drv_role *role = pattern->roles; role->name; role++, roles++) {
		whole &= role_whole(role) && drv_role_find(pattern, role->name) == role;
		requester += role->measures;
	}
	/* the other role of one process has a state of its own, and no threads */
	if (pattern->self && drv_role_responder(pattern))
		whole &= drv_role_requester(pattern)->measures && !drv_role_responder(pattern)->shared_bytes;
	tap_ok(whole && requester > 0 && parameters <= DRV_PARAMETERS_MAX && quantities > 0 &&
		       quantities <= DRV_QUANTITIES_MAX && roles <= DRV_ROLES_MAX && pattern->needs &&
		       strlen(pattern->digest) == 64 && (pattern->offered != NULL) == form,
	       "%s: %d parameters, %d quantities, %d roles", name, parameters, quantities, roles);
}

/* Choices that the driver knows by an enum of its own: their words stand in its order, whichever pattern has them. */
static void check_words(const struct drv_pattern *pattern)
{
	static const struct {
		const char *name;
		const char *const *words;
	} known[] = {
		{"touch", drv_touch_words},           {"stamp", drv_touch_words},
		{"arrivals", drv_arrivals_words},     {"payload", drv_payload_words},
		{"reply", drv_reply_words},           {"work", drv_service_work_words},
		{"spread", drv_service_spread_words},
	};

	for (const struct drv_parameter *parameter = pattern->parameters; parameter->name; parameter++)
		for (size_t i = 0; parameter->words && i < sizeof(known) / sizeof(known[0]); i++) {
			size_t word = 0;

			if (strcmp(parameter->name, known[i].name) != 0)
				continue;
			while (parameter->words[word] && known[i].words[word] &&
			       !strcmp(parameter->words[word], known[i].words[word]))
				word++;
			tap_ok(!parameter->words[word] && !known[i].words[word],
			       "the words of %s's %s are the driver's", pattern->name, parameter->name);
		}
}

int main(void)
{
	json_t *said = drv_patterns_json();
	const char *name;
	json_t *value;

	tap_ok(said != NULL, "the tables are printed");
	json_object_foreach(json_object_get(said, "patterns"), name, value)
	{
		check_pattern(name, false);
		check_words(drv_pattern_find(name, false));
	}
	json_object_foreach(json_object_get(said, "forms"), name, value)
	{
		check_pattern(name, true);
		check_words(drv_pattern_find(name, true));
	}
	json_object_foreach(json_object_get(said, "floors"), name, value)
	{
		const struct drv_floor *floor = drv_floor_find(name);

		tap_ok(floor && floor->open && floor->connect && floor->begin && floor->close &&
			       floor->exchange.client && floor->exchange.server &&
			       !floor->flow.client == !floor->flow.server && (floor->poll || floor->block) &&
			       (floor->within || floor->between) &&
			       json_array_size(json_object_get(value, "forms")) ==
				       1u + (floor->flow.client != NULL),
		       "%s is whole", name);
	}
	tap_ok(json_object_size(json_object_get(said, "patterns")) >= 4 &&
		       json_object_size(json_object_get(said, "floors")) >= 6,
	       "none is missing");
	tap_ok(json_array_size(json_object_get(said, "reasons")) == DRV_REASONS - 1,
	       "all reasons are listed");
	for (int reason = DRV_OK; reason < DRV_REASONS; reason++)
		if (reason &&
		    drv_reason_from_name(drv_reason_name((enum drv_reason)reason)) != (enum drv_reason)reason)
			tap_ok(0, "reason %d is not found by its name", reason);
	tap_ok(!drv_pattern_find("", false) && !drv_pattern_find("none", true) && !drv_floor_find("none"),
	       "what is not there is not found");
	json_decref(said);
	return tap_done();
}
