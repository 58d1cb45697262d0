/* SPDX-License-Identifier: BSD-3-Clause */
/* What hinders a thread is seen: another one on its processor, and nothing where it is alone. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "measure/clock.h"
#include "tap.h"
#include "measure/usage.h"

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

/* Works for a stretch of its own time whenever it is told to, and says so. */
static _Noreturn void be_child(int in, int out)
{
	char go;

	while (read(in, &go, 1) == 1) {
		struct timespec ran;
		uint64_t until_ns = 0;

		do {
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ran);
			if (!until_ns)
				until_ns = (uint64_t)ran.tv_nsec + STRETCH_NS;
		} while ((uint64_t)ran.tv_sec * UINT64_C(1000000000) + (uint64_t)ran.tv_nsec < until_ns);
		if (write(out, &go, 1) != 1)
			break;
	}
	_exit(0);
}

static struct drv_usage used_while_it_works(int out, int in)
{
	struct drv_usage before, after;
	char go = 0;

	drv_usage_read(&before);
	if (write(out, &go, 1) != 1 || read(in, &go, 1) != 1)
		exit(1);
	drv_usage_read(&after);
	return drv_usage_since(&before, &after);
}

/* A child that works in our place counts to the nanosecond while it is followed, and stays counted afterwards. */
static void test_a_child(void)
{
	struct drv_usage usage, before, after;
	uint64_t busy_ns;
	int there[2], back[2];
	pid_t child;

	if (pipe(there) || pipe(back) || (child = fork()) < 0) {
		tap_ok(1, "no child # SKIP");
		return;
	}
	if (child == 0) {
		close(there[1]); /* it ends with us, and when it is told */
		be_child(there[0], back[1]);
	}
	usage = used_while_it_works(there[1], back[0]);
	tap_ok(usage.user_ns + usage.system_ns < STRETCH_NS / 2, "of a child nothing counts");
	tap_ok(!drv_usage_follow(child) && drv_usage_follows(), "unless it is followed");
	usage = used_while_it_works(there[1], back[0]);
	busy_ns = usage.user_ns + usage.system_ns;
	tap_ok(busy_ns >= STRETCH_NS && busy_ns < STRETCH_NS + STRETCH_NS / 2,
	       "%" PRIu64 " of %" PRIu64 " ns", busy_ns, STRETCH_NS);
	tap_ok(usage.voluntary_switches > 0, "so do its switches");
	drv_usage_read(&before);
	drv_usage_leave();
	if (kill(child, SIGKILL) || waitpid(child, NULL, 0) != child)
		exit(1);
	drv_usage_read(&after);
	after = drv_usage_since(&before, &after);
	tap_ok(!drv_usage_follows() && after.user_ns < STRETCH_NS && after.system_ns < STRETCH_NS,
	       "what it has used stays counted");
	tap_ok(drv_usage_follow(child) < 0, "one that is no more is not followed");
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

int main(void)
{
	test_there_and_back();
	test_a_rival();
	test_a_child();
	return tap_done();
}
