/* SPDX-License-Identifier: BSD-3-Clause */
/* Binds the process to a core and proves that it stayed there. */
#include "measure/pin.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX 8192

/* A set of cores, as large as this program can name. */
struct drv_cpus {
	cpu_set_t set[CPUS_MAX / CPU_SETSIZE];
};

static void bind_to(struct drv_pin *pin, const struct drv_cpus *cpus, const char *what)
{
	if (sched_setaffinity(0, sizeof(cpus->set), cpus->set))
		snprintf(pin->detail, sizeof(pin->detail), "binding to %s failed: %s", what, strerror(errno));
}

void drv_pin_restore(struct drv_pin *pin)
{
	struct drv_cpus cpus;
	char what[32];

	if (pin->asked < 0 || pin->asked >= CPUS_MAX)
		return;
	CPU_ZERO_S(sizeof(cpus.set), cpus.set);
	CPU_SET_S((size_t)pin->asked, sizeof(cpus.set), cpus.set);
	snprintf(what, sizeof(what), "core %d", pin->asked);
	bind_to(pin, &cpus, what);
}

void drv_pin_set(struct drv_pin *pin, int cpu)
{
	memset(pin, 0, sizeof(*pin));
	pin->asked = cpu;
	if (cpu < 0)
		return;
	if (cpu >= CPUS_MAX) {
		snprintf(pin->detail, sizeof(pin->detail),
			 "core %d is above the highest that this program knows", cpu);
		return;
	}
	pin->before = calloc(1, sizeof(*pin->before));
	if (pin->before && sched_getaffinity(0, sizeof(pin->before->set), pin->before->set)) {
		free(pin->before);
		pin->before = NULL;
	}
	drv_pin_restore(pin);
}

void drv_pin_lift(struct drv_pin *pin, const int *callers, size_t callers_count)
{
	struct drv_cpus cpus;

	if (!pin->before)
		return;
	cpus = *pin->before;
	for (size_t i = 0; i < callers_count; i++)
		if (callers[i] >= 0 && callers[i] < CPUS_MAX)
			CPU_CLR_S((size_t)callers[i], sizeof(cpus.set), cpus.set);
	bind_to(pin, CPU_COUNT_S(sizeof(cpus.set), cpus.set) ? &cpus : pin->before,
		"the cores for a library's threads");
}

void drv_pin_free(struct drv_pin *pin)
{
	free(pin->before);
	pin->before = NULL;
}

/* The 39th field of /proc/self/task/TID/stat; -1: the thread has ended. */
static int core_of(const char *tid)
{
	char path[80], line[1024];
	FILE *file;
	char *at;
	int field = 2, core = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%.32s/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return -1;
	/* the second field is the thread's name, in brackets, and may hold anything */
	at = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	for (; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	if (at && sscanf(at, "%d", &core) != 1)
		core = -1;
	return core;
}

json_t *drv_pin_threads_json(void)
{
	DIR *tasks = opendir("/proc/self/task");
	json_t *cores = json_array();
	const int own = (int)syscall(SYS_gettid);
	const struct dirent *task;

	if (cores && json_array_append_new(cores, json_integer(sched_getcpu()))) {
		json_decref(cores);
		cores = NULL;
	}
	while (cores && tasks && (task = readdir(tasks))) {
		const int core =
			task->d_name[0] == '.' || atoi(task->d_name) == own ? -1 : core_of(task->d_name);

		if (core >= 0 && json_array_append_new(cores, json_integer(core))) {
			json_decref(cores);
			cores = NULL;
		}
	}
	if (tasks)
		closedir(tasks);
	return cores;
}

void drv_pin_check(struct drv_pin *pin)
{
	const int running_on = sched_getcpu();
	struct drv_cpus cpus;
	int allowed = 0;

	pin->actual_count = 0;
	pin->ok = false;
	CPU_ZERO_S(sizeof(cpus.set), cpus.set);
	if (sched_getaffinity(0, sizeof(cpus.set), cpus.set)) {
		snprintf(pin->detail, sizeof(pin->detail), "reading the affinity back failed: %s",
			 strerror(errno));
		return;
	}
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!CPU_ISSET_S((size_t)cpu, sizeof(cpus.set), cpus.set))
			continue;
		allowed++;
		if (pin->actual_count < DRV_PIN_CPUS_MAX)
			pin->actual[pin->actual_count++] = cpu;
	}
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
