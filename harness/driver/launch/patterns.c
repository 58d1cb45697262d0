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

const struct drv_role *drv_role_requester(const struct drv_pattern *pattern)
{
	const struct drv_role *role = pattern->roles;

	while (!role->measures)
		role++;
	return role;
}

const struct drv_role *drv_role_responder(const struct drv_pattern *pattern)
{
	const struct drv_role *requester = drv_role_requester(pattern), *role = pattern->roles;

	if (role == requester)
		role++;
	return role->name ? role : NULL;
}

struct drv_role drv_role_self(const struct drv_pattern *pattern)
{
	const struct drv_role *requester = drv_role_requester(pattern),
			      *responder = drv_role_responder(pattern);

	if (!responder)
		return *requester;
	return (struct drv_role){.name = "both",
				 .measures = true,
				 .exposes = requester->exposes || responder->exposes,
				 .attaches = requester->attaches || responder->attaches,
				 .workers = requester->workers || responder->workers};
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
