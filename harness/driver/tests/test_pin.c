/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinning: the caller alone, before and after a library has started threads. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "measure/pin.h"
#include "tap.h"

/* How many cores a thread is allowed that was started now, and whether `core` is among them. */
struct look {
	int count, core;
	bool has;
};

static void *look_around(void *arg)
{
	struct look *look = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	look->count = sched_getaffinity(0, sizeof(set), &set) ? -1 : CPU_COUNT(&set);
	look->has = CPU_ISSET((size_t)look->core, &set);
	return NULL;
}

static struct look started_now(int core)
{
	struct look look = {.core = core};
	pthread_t thread;

	if (pthread_create(&thread, NULL, look_around, &look) || pthread_join(thread, NULL))
		look.count = -1;
	return look;
}

static void *wait_for_end(void *arg)
{
	int *end = arg;
	char byte;

	while (read(*end, &byte, 1) < 0)
		;
	return NULL;
}

/* One number for this thread and one for each other. */
static void threads(int core)
{
	json_t *cores = drv_pin_threads_json();
	pthread_t thread;
	int ends[2];

	tap_ok(json_array_size(cores) == 1 && json_integer_value(json_array_get(cores, 0)) == core,
	       "one thread, on its core");
	json_decref(cores);
	if (pipe(ends) || pthread_create(&thread, NULL, wait_for_end, &ends[0])) {
		tap_ok(false, "no second thread");
		return;
	}
	cores = drv_pin_threads_json();
	tap_ok(json_array_size(cores) == 2 && json_integer_value(json_array_get(cores, 0)) == core &&
		       json_is_integer(json_array_get(cores, 1)),
	       "two threads, this one first");
	json_decref(cores);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
}

int main(void)
{
	struct drv_pin pin, none;
	cpu_set_t all;
	int core = 0, count;

	CPU_ZERO(&all);
	sched_getaffinity(0, sizeof(all), &all);
	count = CPU_COUNT(&all);
	while (!CPU_ISSET((size_t)core, &all))
		core++;

	drv_pin_set(&none, -1);
	drv_pin_lift(&none, &core, 1);
	drv_pin_restore(&none);
	tap_ok(started_now(core).count == count, "who is not to be pinned is left alone");
	drv_pin_free(&none);

	drv_pin_set(&pin, core);
	drv_pin_check(&pin);
	tap_ok(pin.ok && started_now(core).count == 1, "pinned: a thread that is started inherits it");
	drv_pin_lift(&pin, &core, 1);
	if (count > 1)
		tap_ok(started_now(core).count == count - 1 && !started_now(core).has,
		       "lifted: it gets the cores that are not the caller's");
	else
		tap_ok(started_now(core).count == 1, "lifted: there is one core for all");
	drv_pin_restore(&pin);
	drv_pin_check(&pin);
	tap_ok(pin.ok && pin.actual_count == 1, "pinned again");

	int callers[CPU_SETSIZE];

	for (int i = 0; i < CPU_SETSIZE; i++)
		callers[i] = i;
	drv_pin_lift(&pin, callers, CPU_SETSIZE);
	tap_ok(started_now(core).count == count, "where the callers have every core, it gets all of them");
	drv_pin_restore(&pin);
	drv_pin_check(&pin);
	tap_ok(pin.ok, "pinned again");
	threads(core);
	drv_pin_free(&pin);
	return tap_done();
}
