/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/launch.h"

#include <stdlib.h>
#include <string.h>

#include "launch/trace.h"

const char *const drv_place_names[3] = {"self", "within", "between"};
const char *const drv_wait_names[2] = {"poll", "block"};

void drv_launch_free(struct drv_launch *launch)
{
	for (size_t i = 0; i < launch->points_count; i++) {
		free(launch->points[i].attempt_id);
		free(launch->points[i].point_id);
		free(launch->points[i].parameters);
		json_decref(launch->points[i].workload);
	}
	for (size_t i = 0; i < launch->endpoints_count; i++) {
		free(launch->endpoints[i].role);
		free(launch->endpoints[i].host);
		free(launch->endpoints[i].device);
		free(launch->endpoints[i].address);
		free(launch->endpoints[i].raw_device);
		free(launch->endpoints[i].management_address);
	}
	for (size_t i = 0; i < launch->settings_count; i++) {
		free(launch->settings[i].name);
		free(launch->settings[i].value);
	}
	for (size_t i = 0; i < launch->shims_count; i++)
		free(launch->shims[i]);
	free(launch->points);
	drv_trace_free(launch->trace.read);
	free(launch->trace.file);
	free(launch->endpoints);
	free(launch->settings);
	free(launch->shims);
	free(launch->launch_id);
	free(launch->campaign_id);
	free(launch->layer);
	free(launch->launcher);
	memset(launch, 0, sizeof(*launch));
}
