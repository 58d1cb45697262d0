/* SPDX-License-Identifier: BSD-3-Clause */
/* What hinders a thread is seen: another one on its processor, and nothing where it is alone. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "tap.h"
#include "usage.h"

#define STRETCH_NS UINT64_C(100000000)

static struct drv_usage spin(void)
{
	struct drv_usage before, after;

	drv_usage_read(&before);
	while (drv_now_ns() - before.wall_ns < STRETCH_NS)
		;
	drv_usage_read(&after);
	return drv_usage_since(&before, &after);
}

/* Two that spin on one processor: each waits for about half of the time. */
static void test_a_rival(void)
{
	const int cpu = sched_getcpu();
	struct drv_usage usage;
	cpu_set_t one;
	pid_t rival;

	CPU_ZERO(&one);
	CPU_SET((unsigned int)cpu, &one);
	if (cpu < 0 || sched_setaffinity(0, sizeof(one), &one)) {
		tap_ok(1, "no processor to share # SKIP");
		return;
	}
	rival = fork();
	if (rival == 0)
		for (;;)
			;
	usage = spin();
	tap_ok(usage.run_wait_ns < 0 || (uint64_t)usage.run_wait_ns > usage.wall_ns / 10,
	       "beside another on its processor, a thread waited %" PRId64 " of %" PRIu64 " ns",
	       usage.run_wait_ns, usage.wall_ns);
	if (rival > 0 && (kill(rival, SIGKILL) || waitpid(rival, NULL, 0) != rival))
		exit(1);
}

static void test_there_and_back(void)
{
	const struct drv_usage known = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
	struct drv_usage unknown = known, found;
	struct drv_fail fail;
	json_t *json = drv_usage_json(&known, 1);

	tap_ok(json && drv_usage_parse(json, &found, &fail) == 0 && found.run_wait_ns == 9 &&
		       found.stolen_ns == 10 && found.wall_ns == 8,
	       "hindrances go there and back");
	tap_ok(found.system_calls == 11 && found.cycles == 12 && found.instructions == 13,
	       "so does what was counted");
	json_decref(json);
	unknown.run_wait_ns = unknown.stolen_ns = unknown.system_calls = -1;
	json = drv_usage_json(&unknown, 1);
	tap_ok(json && json_is_null(json_object_get(json, "run_wait_ns")) &&
		       drv_usage_parse(json, &found, &fail) == 0 && found.run_wait_ns == -1 &&
		       found.stolen_ns == -1 && found.system_calls == -1,
	       "what the kernel does not tell is null");
	json_object_set_new(json, "stolen_ns", json_integer(-5));
	tap_ok(drv_usage_parse(json, &found, &fail) && fail.reason == DRV_PROTOCOL, "refused: %s", fail.text);
	json_decref(json);
	found = drv_usage_since(&unknown, &known);
	tap_ok(found.run_wait_ns == -1 && found.stolen_ns == -1, "no difference from what is not known");
	found = known;
	drv_usage_add_thread(&found, &unknown);
	tap_ok(found.run_wait_ns == -1 && found.thread_voluntary_switches == 14 && found.user_ns == 1,
	       "a thread more adds what is its own");
}

int main(void)
{
	test_there_and_back();
	test_a_rival();
	return tap_done();
}
