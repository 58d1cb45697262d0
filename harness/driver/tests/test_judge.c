/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is to sleep and does not is found out; whose messages come early is not blamed for it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "session/judge.h"
#include "tap.h"

#define MS UINT64_C(1000000)

struct end {
	const char *what;
	uint64_t switches, operations;
	/* of 100 ms */
	uint64_t cpu_ns;
	int64_t run_wait_ns, stolen_ns;
	bool block, sound;
	/* calls of wait, and how often it was sent off its processor */
	uint64_t waits, preemptions;
};

static const struct end ENDS[] = {
	{"one that sleeps each time", 2000, 1900, 40 * MS, 0, 0, true, true, 0, 0},
	{"one that sleeps every other time", 1000, 2000, 90 * MS, 0, 0, true, true, 0, 0},
	/* seen of peregrine-xdp's server, calls of 32 KiB between hosts in one kernel */
	{"one that is still sending when the next call comes", 466, 1584, 86 * MS, 30000, 0, true, true, 0,
	 0},
	{"one that spins", 9, 2000, 100 * MS, 0, 0, true, false, 0, 0},
	{"one that spins and is preempted", 9, 2000, 50 * MS, 50 * MS, 0, true, false, 0, 0},
	{"one that spins long before it sleeps", 700, 2000, 97 * MS, 0, 0, true, false, 0, 0},
	{"one that spins while the host takes its processor", 700, 2000, 60 * MS, 0, 38 * MS, true, false, 0,
	 0},
	{"one that sleeps seldom, for long", 100, 2000, 40 * MS, 0, 0, true, false, 0, 0},
	{"one that spins where the kernel tells nothing", 9, 2000, 100 * MS, -1, -1, true, false, 0, 0},
	/* seen of sockets-udp's server, on the core of its client */
	{"one that finds its message when it is back on its core", 11, 1918, 52 * MS, 43 * MS, 0, true, true,
	 13, 1910},
	{"one that spins in wait on a core of two", 11, 1918, 52 * MS, 43 * MS, 0, true, false, 1918, 1910},
	{"one that spins before it waits", 11, 1918, 100 * MS, 0, 0, true, false, 13, 20},
	{"one that polls", 2, 2000, 100 * MS, 0, 0, false, true, 0, 0},
	{"one that should poll and sleeps", 1500, 2000, 40 * MS, 0, 0, false, false, 0, 0},
};

static void check(const struct end *end)
{
	struct drv_usage usage = {0};
	struct drv_attempt attempt = {0};
	const struct drv_account account = {
		.role = "server",
		.measures = true,
		.sleep = DRV_SLEEP_EACH,
		.usage =
			{
				.user_ns = end->cpu_ns / 4,
				.system_ns = end->cpu_ns - end->cpu_ns / 4,
				.thread_voluntary_switches = end->switches,
				.involuntary_switches = end->preemptions,
				.wall_ns = 100 * MS,
				.run_wait_ns = end->run_wait_ns,
				.stolen_ns = end->stolen_ns,
			},
		.operations = end->operations,
		.counts[DRV_AFTER].waits = end->waits,
	};

	attempt.cpu = &usage;
	attempt.record.operations = end->operations;
	drv_judge(&attempt, &account, 1, true, end->block);
	tap_ok((attempt.status == DRV_DONE) == end->sound, "%s is %s: %s", end->what,
	       end->sound ? "sound" : "unsound", attempt.fail.text);
	json_decref(attempt.counters);
}

struct executed {
	const char *what;
	uint64_t posted, executed, operations;
	bool reliable, sound;
};

static const struct executed EXECUTED[] = {
	{"all are executed", 10, 10, 10, true, true},
	{"one is not", 10, 9, 9, true, false},
	{"one is executed twice", 10, 11, 10, true, false},
	{"some are lost", 10, 9, 8, false, true},
	{"more are executed than were handed over", 10, 11, 10, false, false},
	{"more are completed than were executed", 10, 8, 9, false, false},
};

static void check_executed(const struct executed *executed)
{
	struct drv_usage usage = {.wall_ns = MS};
	struct drv_attempt attempt = {.cpu = &usage, .record.operations = executed->operations};
	const struct drv_account account = {.role = "server",
					    .sleep = DRV_SLEEP_FREE,
					    .usage = usage,
					    .counts[DRV_AFTER] = {.executes = true,
								  .posted = executed->posted,
								  .executed = executed->executed}};

	drv_judge(&attempt, &account, 1, executed->reliable, false);
	tap_ok((attempt.status == DRV_DONE) == executed->sound, "%s: %s", executed->what, attempt.fail.text);
	json_decref(attempt.counters);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(EXECUTED) / sizeof(EXECUTED[0]); i++)
		check_executed(&EXECUTED[i]);
	for (size_t i = 0; i < sizeof(ENDS) / sizeof(ENDS[0]); i++)
		check(&ENDS[i]);
	return tap_done();
}
