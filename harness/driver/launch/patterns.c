/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds patterns and forms of floors in the lists that the linker made. */
#include "launch/patterns.h"

#include <string.h>

/* A section whose name is a C identifier has these two symbols; weak, because it may be empty. */
extern const struct drv_pattern *const __start_cadge_patterns[] __attribute__((weak));
extern const struct drv_pattern *const __stop_cadge_patterns[] __attribute__((weak));
extern const struct drv_pattern *const __start_cadge_forms[] __attribute__((weak));
extern const struct drv_pattern *const __stop_cadge_forms[] __attribute__((weak));

const struct drv_role *drv_role_find(const struct drv_pattern *pattern, const char *name)
{
	for (const struct drv_role *role = pattern->roles; role->name; role++)
		if (!strcmp(role->name, name))
			return role;
	return NULL;
}

const struct drv_role *drv_role_acting(const struct drv_pattern *pattern)
{
	const struct drv_role *role = pattern->roles;

	while (!role->acts)
		role++;
	return role;
}

const struct drv_role *drv_role_passive(const struct drv_pattern *pattern)
{
	const struct drv_role *acting = drv_role_acting(pattern), *role = pattern->roles;

	if (role == acting)
		role++;
	return role->name ? role : NULL;
}

struct drv_role drv_role_self(const struct drv_pattern *pattern)
{
	const struct drv_role *acting = drv_role_acting(pattern), *passive = drv_role_passive(pattern);

	if (!passive)
		return *acting;
	return (struct drv_role){.name = "both",
				 .acts = true,
				 .exposes = acting->exposes || passive->exposes,
				 .attaches = acting->attaches || passive->attaches,
				 .workers = acting->workers || passive->workers};
}

const struct drv_pattern *drv_pattern_find(const char *name, bool form)
{
	const struct drv_pattern *const *at = form ? __start_cadge_forms : __start_cadge_patterns;
	const struct drv_pattern *const *end = form ? __stop_cadge_forms : __stop_cadge_patterns;

	for (; at < end; at++)
		if (!strcmp((*at)->name, name))
			return *at;
	return NULL;
}
