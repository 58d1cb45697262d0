/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls of all threads are counted exactly, where root is; where something cannot be counted the reason is told. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure/events.h"
#include "tap.h"

#define CALLS 10000

static const char *how(const struct drv_events *events, const char *key)
{
	static char text[sizeof(events->of[0].how)];
	json_t *said = drv_events_json(events);

	snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(said, key)));
	json_decref(said);
	return text;
}

static void call(void)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
}

/* A thread that was there before counting began. */
static atomic_int turn;

static void *other(void *arg)
{
	while (atomic_load(&turn) == 0)
		; /* without a system call */
	call();
	atomic_store(&turn, 2);
	while (atomic_load(&turn) == 2)
		;
	return arg;
}

static void test_calls(void)
{
	struct drv_events events;
	struct drv_usage usage;
	pthread_t thread;

	drv_events_start(&events, true, false);
	if (pthread_create(&thread, NULL, other, NULL)) {
		tap_ok(0, "a thread");
		return;
	}
	drv_events_count_calls(&events);
	for (int i = 0; i < 99; i++)
		syscall(SYS_getppid); /* attached, and not yet begun */
	drv_events_begin(&events);
	call();
	atomic_store(&turn, 1);
	while (atomic_load(&turn) == 1)
		;
	drv_events_read(&events, &usage);
	drv_events_end(&events);
	atomic_store(&turn, 3);
	pthread_join(thread, NULL);
	if (usage.system_calls < 0) {
		tap_ok(geteuid() != 0 || strstr(how(&events, "system_calls"), "not to be had"),
		       "system calls are not counted, and the reason is told # SKIP %s",
		       how(&events, "system_calls"));
		return;
	}
	/* a few more are those that begin and end it */
	tap_ok(usage.system_calls >= 2 * CALLS && usage.system_calls < 2 * CALLS + 50,
	       "%lld of %d system calls of two threads were counted", (long long)usage.system_calls,
	       2 * CALLS);
	tap_ok(strstr(how(&events, "system_calls"), "raw_syscalls:sys_enter") != NULL, "how they were: %s",
	       how(&events, "system_calls"));
}

static void test_cycles(void)
{
	struct drv_events events;
	struct drv_usage usage;

	drv_events_start(&events, false, true);
	drv_events_count_cycles(&events);
	call();
	drv_events_read(&events, &usage);
	drv_events_end(&events);
	if (usage.cycles < 0) {
		tap_ok(usage.instructions < 0 && !strncmp(how(&events, "cycles"), "not to be had: ", 15),
		       "cycles are not counted: %s", how(&events, "cycles"));
		return;
	}
	/* a system call takes some hundred of each */
	tap_ok(usage.cycles > 50 * CALLS, "%lld cycles", (long long)usage.cycles);
	tap_ok(usage.instructions > 50 * CALLS, "%lld instructions", (long long)usage.instructions);
}

static void test_not_asked(void)
{
	struct drv_events events;
	struct drv_usage usage;

	drv_events_start(&events, false, false);
	drv_events_count_calls(&events);
	drv_events_count_cycles(&events);
	drv_events_read(&events, &usage);
	drv_events_end(&events);
	tap_ok(usage.system_calls == -1 && usage.cycles == -1 && usage.instructions == -1,
	       "nothing is counted where nobody asks");
	tap_ok(!strncmp(how(&events, "system_calls"), "not in this launch", 18), "system calls: %s",
	       how(&events, "system_calls"));
	tap_ok(!strncmp(how(&events, "cycles"), "not in block mode", 17), "cycles: %s",
	       how(&events, "cycles"));
}

int main(void)
{
	test_calls();
	test_cycles();
	test_not_asked();
	return tap_done();
}
