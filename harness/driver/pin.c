/* SPDX-License-Identifier: BSD-3-Clause */
#include "pin.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define CPUS_MAX 8192

void drv_pin_set(struct drv_pin *pin, int cpu)
{
	cpu_set_t *set;

	memset(pin, 0, sizeof(*pin));
	pin->asked = cpu;
	if (cpu < 0)
		return;
	if (cpu >= CPUS_MAX) {
		snprintf(pin->detail, sizeof(pin->detail), "core %d is beyond what this program can name",
			 cpu);
		return;
	}
	set = CPU_ALLOC(CPUS_MAX);
	if (!set) {
		snprintf(pin->detail, sizeof(pin->detail), "no memory for a set of cores");
		return;
	}
	CPU_ZERO_S(CPU_ALLOC_SIZE(CPUS_MAX), set);
	CPU_SET_S((size_t)cpu, CPU_ALLOC_SIZE(CPUS_MAX), set);
	if (sched_setaffinity(0, CPU_ALLOC_SIZE(CPUS_MAX), set))
		snprintf(pin->detail, sizeof(pin->detail), "binding to core %d failed: %s", cpu,
			 strerror(errno));
	CPU_FREE(set);
}

void drv_pin_check(struct drv_pin *pin)
{
	const int running_on = sched_getcpu();
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	int allowed = 0;

	pin->actual_count = 0;
	pin->ok = false;
	if (!set) {
		snprintf(pin->detail, sizeof(pin->detail), "no memory for a set of cores");
		return;
	}
	CPU_ZERO_S(CPU_ALLOC_SIZE(CPUS_MAX), set);
	if (sched_getaffinity(0, CPU_ALLOC_SIZE(CPUS_MAX), set)) {
		snprintf(pin->detail, sizeof(pin->detail), "reading the affinity back failed: %s",
			 strerror(errno));
		CPU_FREE(set);
		return;
	}
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!CPU_ISSET_S((size_t)cpu, CPU_ALLOC_SIZE(CPUS_MAX), set))
			continue;
		allowed++;
		if (pin->actual_count < DRV_PIN_CPUS_MAX)
			pin->actual[pin->actual_count++] = cpu;
	}
	CPU_FREE(set);
	if (pin->asked < 0) {
		pin->ok = true;
		snprintf(pin->detail, sizeof(pin->detail), "not to be bound");
	} else if (allowed == 1 && pin->actual[0] == pin->asked && running_on == pin->asked) {
		pin->ok = true;
		pin->detail[0] = '\0';
	} else if (!pin->detail[0]) {
		snprintf(pin->detail, sizeof(pin->detail), "asked for core %d, runs on %d, %d cores allowed",
			 pin->asked, running_on, allowed);
	}
}

json_t *drv_pin_json(const struct drv_pin *pin)
{
	json_t *actual = json_array();

	for (int i = 0; actual && i < pin->actual_count; i++)
		if (json_array_append_new(actual, json_integer(pin->actual[i]))) {
			json_decref(actual);
			return NULL;
		}
	return json_pack("{s:i, s:o, s:b}", "asked", pin->asked, "actual", actual, "ok", pin->ok);
}
