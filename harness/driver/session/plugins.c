/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds floors in the list that the linker made, and prints what is in the tables of patterns, forms and floors. */
#include "session/plugins.h"

#include <string.h>

#include "base/text.h"
#include "launch/pattern.h"
#include "traffic/floor.h"

/* A section whose name is a C identifier has these two symbols; weak, because it may be empty. */
extern const struct drv_pattern *const __start_cadge_patterns[] __attribute__((weak));
extern const struct drv_pattern *const __stop_cadge_patterns[] __attribute__((weak));
extern const struct drv_pattern *const __start_cadge_forms[] __attribute__((weak));
extern const struct drv_pattern *const __stop_cadge_forms[] __attribute__((weak));
extern const struct drv_floor *const __start_cadge_floors[] __attribute__((weak));
extern const struct drv_floor *const __stop_cadge_floors[] __attribute__((weak));

const struct drv_floor *drv_floor_find(const char *name)
{
	for (const struct drv_floor *const *at = __start_cadge_floors; at < __stop_cadge_floors; at++)
		if (!strcmp((*at)->name, name))
			return *at;
	return NULL;
}

static json_t *pattern_json(const struct drv_pattern *pattern)
{
	json_t *roles = json_array();

	for (const struct drv_role *role = pattern->roles; role->name; role++)
		if (json_array_append_new(roles, json_string(role->name)))
			return NULL;
	return json_pack("{s:s, s:o}", "digest", pattern->digest, "roles", roles);
}

static json_t *tables_json(const struct drv_pattern *const *at, const struct drv_pattern *const *end)
{
	json_t *object = json_object();

	for (; at < end; at++)
		if (drv_json_set(object, (*at)->name, pattern_json(*at)))
			return NULL;
	return object;
}

static json_t *floors_json(void)
{
	json_t *object = json_object();

	for (const struct drv_floor *const *at = __start_cadge_floors; at < __stop_cadge_floors; at++) {
		json_t *forms = json_array();

		for (const struct drv_pattern *const *form = __start_cadge_forms; form < __stop_cadge_forms;
		     form++)
			if ((*form)->offered(*at) && json_array_append_new(forms, json_string((*form)->name)))
				return NULL;
		if (drv_json_set(object, (*at)->name, json_pack("{s:o}", "forms", forms)))
			return NULL;
	}
	return object;
}

json_t *drv_patterns_json(void)
{
	json_t *reasons = json_array();

	for (int reason = DRV_OK + 1; reason < DRV_REASONS; reason++)
		if (json_array_append_new(reasons, json_string(drv_reason_name((enum drv_reason)reason))))
			return NULL;
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "schema", "cadge.driver-patterns/2", "patterns",
			 tables_json(__start_cadge_patterns, __stop_cadge_patterns), "forms",
			 tables_json(__start_cadge_forms, __stop_cadge_forms), "floors", floors_json(),
			 "reasons", reasons);
}
