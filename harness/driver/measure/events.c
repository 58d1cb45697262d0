/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts system calls, cycles and instructions of all threads of this process, by perf_event_open. */
#include "measure/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX 1024u
#define TRACEPOINT  "events/raw_syscalls/sys_enter/id"

void drv_events_start(struct drv_events *events, bool calls, bool cycles)
{
	memset(events, 0, sizeof(*events));
	events->calls = calls;
	events->cycles = cycles;
	if (!calls)
		snprintf(events->of[DRV_SYSTEM_CALLS].how, sizeof(events->of[0].how), "%s",
			 "not in this launch: one of each point counts them");
	if (!cycles)
		snprintf(events->of[DRV_CYCLES].how, sizeof(events->of[0].how), "%s",
			 "not in block mode: counting would lengthen each switch of context");
}

/* A view of tracefs that nobody else sees and that ends with the descriptor, where it is mounted nowhere. -1: errno. */
static int private_tracefs(void)
{
	const int filesystem = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int mount = -1, why;

	if (filesystem < 0)
		return -1;
	if (!syscall(SYS_fsconfig, filesystem, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = (int)syscall(SYS_fsmount, filesystem, FSMOUNT_CLOEXEC, 0);
	why = errno;
	close(filesystem);
	errno = why;
	return mount;
}

/* The number of the tracepoint of all system calls, of which each kernel has another. -1: errno says why not. */
static int64_t tracepoint(void)
{
	char text[32] = "";
	int file = open("/sys/kernel/tracing/" TRACEPOINT, O_RDONLY | O_CLOEXEC), folder, why = 0;
	int64_t number;

	if (file < 0 && errno == ENOENT) {
		folder = private_tracefs();
		file = folder < 0 ? -1 : openat(folder, TRACEPOINT, O_RDONLY | O_CLOEXEC);
		why = errno;
		if (folder >= 0)
			close(folder);
		errno = why;
	}
	if (file < 0)
		return -1;
	if (read(file, text, sizeof(text) - 1) < 0 || sscanf(text, "%" SCNd64, &number) != 1) {
		errno = ENODATA;
		number = -1;
	}
	close(file);
	return number;
}

static int attach(enum drv_event event, int64_t number, pid_t thread)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .inherit = 1};

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.type = event == DRV_SYSTEM_CALLS ? PERF_TYPE_TRACEPOINT : PERF_TYPE_HARDWARE;
	attr.config = (uint64_t)number;
	return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void detach(struct drv_events *events, enum drv_event event)
{
	for (size_t i = 0; i < events->of[event].count; i++)
		close(events->of[event].fds[i]);
	free(events->of[event].fds);
	events->of[event].fds = NULL;
	events->of[event].count = 0;
	events->of[event].begun = 0;
}

/* To every thread there is. 0, or -1 with errno and nothing attached. */
static int attach_all(struct drv_events *events, enum drv_event event, int64_t number)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *entry;
	int why = 0;

	events->of[event].fds = calloc(THREADS_MAX, sizeof(int));
	events->of[event].begun = 0;
	if (!threads || !events->of[event].fds)
		why = ENOMEM;
	while (!why && (entry = readdir(threads))) {
		const int thread = atoi(entry->d_name);
		int fd;

		if (thread <= 0)
			continue;
		fd = attach(event, number, thread);
		if (fd >= 0 && events->of[event].count < THREADS_MAX)
			events->of[event].fds[events->of[event].count++] = fd;
		else if (fd >= 0 || errno != ESRCH) /* it may have ended meanwhile */
			why = fd >= 0 ? EMFILE : errno;
	}
	if (threads)
		closedir(threads);
	if (why)
		detach(events, event);
	errno = why;
	return why ? -1 : 0;
}

static void explain_failure(struct drv_events *events, enum drv_event event)
{
	const int why = errno;
	const bool refused = why == EPERM || why == EACCES;
	const char *hint = "";

	if (event != DRV_SYSTEM_CALLS && (why == ENOENT || why == EOPNOTSUPP)) {
		snprintf(events->of[event].how, sizeof(events->of[0].how), "%s",
			 "not to be had: this processor, or virtual machine, has no such counter");
		return;
	}
	if (refused)
		hint = event == DRV_SYSTEM_CALLS ? "; it takes root"
						 : "; see /proc/sys/kernel/perf_event_paranoid";
	snprintf(events->of[event].how, sizeof(events->of[0].how), "not to be had: %s%s", strerror(why),
		 hint);
}

void drv_events_count_calls(struct drv_events *events)
{
	int64_t number;

	if (!events->calls)
		return;
	number = tracepoint();
	if (number < 0 || attach_all(events, DRV_SYSTEM_CALLS, number)) {
		explain_failure(events, DRV_SYSTEM_CALLS);
		events->calls = false; /* nor next time */
		return;
	}
	snprintf(events->of[DRV_SYSTEM_CALLS].how, sizeof(events->of[0].how), "%s",
		 "the kernel's tracepoint raw_syscalls:sys_enter, in a loop of its own before the warm-up");
}

void drv_events_count_cycles(struct drv_events *events)
{
	if (!events->cycles)
		return;
	if (attach_all(events, DRV_CYCLES, PERF_COUNT_HW_CPU_CYCLES) ||
	    attach_all(events, DRV_INSTRUCTIONS, PERF_COUNT_HW_INSTRUCTIONS)) {
		explain_failure(events, DRV_CYCLES);
		detach(events, DRV_CYCLES);
		events->cycles = false;
		return;
	}
	snprintf(events->of[DRV_CYCLES].how, sizeof(events->of[0].how), "%s",
		 "the processor's counters, user and kernel, over the measured loop");
}

/* What was counted since it was attached, -1 where that cannot be told. */
static int64_t counted(const struct drv_events *events, enum drv_event event)
{
	double sum = 0;

	if (!events->of[event].fds)
		return -1;
	for (size_t i = 0; i < events->of[event].count; i++) {
		/* how often; for how many ns it was to count, and did: of too many counters each has its turn */
		uint64_t values[3];

		if (read(events->of[event].fds[i], values, sizeof(values)) != sizeof(values))
			return -1;
		if (values[2])
			sum += (double)values[0] * ((double)values[1] / (double)values[2]);
		else if (values[1])
			return -1;
	}
	return (int64_t)sum;
}

void drv_events_begin(struct drv_events *events)
{
	for (int event = 0; event < DRV_EVENTS; event++)
		events->of[event].begun = counted(events, (enum drv_event)event);
}

/* Since it began. */
static int64_t since(const struct drv_events *events, enum drv_event event)
{
	const int64_t now = counted(events, event), begun = events->of[event].begun;

	return now < 0 || begun < 0 ? -1 : now - begun;
}

void drv_events_read(const struct drv_events *events, struct drv_usage *usage)
{
	usage->system_calls = since(events, DRV_SYSTEM_CALLS);
	usage->cycles = since(events, DRV_CYCLES);
	usage->instructions = since(events, DRV_INSTRUCTIONS);
}

void drv_events_end(struct drv_events *events)
{
	for (int event = 0; event < DRV_EVENTS; event++)
		detach(events, (enum drv_event)event);
}

json_t *drv_events_json(const struct drv_events *events)
{
	return json_pack("{s:s, s:s}", "system_calls", events->of[DRV_SYSTEM_CALLS].how, "cycles",
			 events->of[DRV_CYCLES].how);
}
