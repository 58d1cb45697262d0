/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a stretch of work cost this process: CPU time, context switches, page faults. And what disturbed it: time in which
 * its thread could have run and did not, because the kernel or the host gave the processor to others.
 */
#ifndef DRV_USAGE_H
#define DRV_USAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fail.h"

struct drv_usage {
	/* the whole process, the library's own threads included (RUSAGE_SELF) */
	uint64_t user_ns, system_ns;
	uint64_t voluntary_switches, involuntary_switches;
	uint64_t minor_faults, major_faults;
	/* the measuring thread alone (RUSAGE_THREAD): proves the wait mode */
	uint64_t thread_voluntary_switches;
	/* the monotonic clock; a stretch's length */
	uint64_t wall_ns;
	/*
	 * -1: the kernel does not say. Of the measuring threads: waiting for a processor, ready to run
	 * (/proc/thread-self/schedstat); of the processors that the thread may run on: taken by the host (steal in
	 * /proc/stat, in ticks)
	 */
	int64_t run_wait_ns, stolen_ns;
	/*
	 * -1: not counted (see events.h). Of the whole process; not read, but set where counting ends: system calls of the
	 * step COUNT, cycles and instructions of the measured loop
	 */
	int64_t system_calls, cycles, instructions;
};

/* Reads the counters now. Takes some ten microseconds, more on a machine with many processors. */
void drv_usage_read(struct drv_usage *usage_out);

/*
 * A child process that works in this one's place, one at a time: from now on all that it has used and uses counts
 * as this process's own, but for stolen time. 0, or -1 with errno. What it used stays counted
 * after drv_usage_leave, which has to come before it is waited for.
 */
int drv_usage_follow(pid_t child);
void drv_usage_leave(void);
/* Is one followed? What events.h counts is of this process alone. */
bool drv_usage_follows(void);

/* Adds what another thread of the process had to wait for. */
void drv_usage_add_thread(struct drv_usage *sum, const struct drv_usage *more);

/* later - earlier, field by field. */
struct drv_usage drv_usage_since(const struct drv_usage *earlier, const struct drv_usage *later);

/* As in a result ("cpu"); with the thread's switches when `whole`, for other endpoints. New reference or
 * NULL. */
json_t *drv_usage_json(const struct drv_usage *usage, int whole);

/* Reads the whole form that came from another endpoint. */
int drv_usage_parse(const json_t *object, struct drv_usage *usage_out, struct drv_fail *fail);

#endif
