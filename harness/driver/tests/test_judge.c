/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is to sleep and does not is found out; whose messages come early is not blamed for it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "tap.h"

#define MS UINT64_C(1000000)

struct end {
	const char *what;
	uint64_t switches, operations;
	/* of 100 ms */
	uint64_t cpu_ns;
	int64_t run_wait_ns, stolen_ns;
	bool block, sound;
};

static const struct end ENDS[] = {
	{"one that sleeps each time", 2000, 1900, 40 * MS, 0, 0, true, true},
	{"one that sleeps every other time", 1000, 2000, 90 * MS, 0, 0, true, true},
	/* seen of peregrine-xdp's server, calls of 32 KiB between hosts in one kernel */
	{"one that is still sending when the next call comes", 466, 1584, 86 * MS, 30000, 0, true, true},
	{"one that spins", 9, 2000, 100 * MS, 0, 0, true, false},
	{"one that spins and is preempted", 9, 2000, 50 * MS, 50 * MS, 0, true, false},
	{"one that spins long before it sleeps", 700, 2000, 97 * MS, 0, 0, true, false},
	{"one that spins while the host takes its processor", 700, 2000, 60 * MS, 0, 38 * MS, true, false},
	{"one that sleeps seldom, for long", 100, 2000, 40 * MS, 0, 0, true, false},
	{"one that spins where the kernel tells nothing", 9, 2000, 100 * MS, -1, -1, true, false},
	{"one that polls", 2, 2000, 100 * MS, 0, 0, false, true},
	{"one that should poll and sleeps", 1500, 2000, 40 * MS, 0, 0, false, false},
};

static void check(const struct end *end)
{
	struct drv_usage usage = {0};
	struct drv_attempt attempt = {0};
	const struct drv_account account = {
		.role = "server",
		.acts = true,
		.sleep = DRV_SLEEP_EACH,
		.usage =
			{
				.user_ns = end->cpu_ns / 4,
				.system_ns = end->cpu_ns - end->cpu_ns / 4,
				.thread_voluntary_switches = end->switches,
				.wall_ns = 100 * MS,
				.run_wait_ns = end->run_wait_ns,
				.stolen_ns = end->stolen_ns,
			},
		.operations = end->operations,
	};

	attempt.cpu = &usage;
	attempt.record.operations = end->operations;
	drv_judge(&attempt, &account, 1, true, end->block);
	tap_ok((attempt.status == DRV_DONE) == end->sound, "%s is %s: %s", end->what,
	       end->sound ? "sound" : "unsound", attempt.fail.text);
	json_decref(attempt.counters);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(ENDS) / sizeof(ENDS[0]); i++)
		check(&ENDS[i]);
	return tap_done();
}
