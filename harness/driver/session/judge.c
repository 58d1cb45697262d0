/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of an attempt: payload, executions, way of waiting, range, samples. */
#include "session/judge.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * What is asked of an end that is to sleep: every second operation; or, where the others find their message there, every
 * eighth, and that it was off its processor of its own accord for a twentieth of the time.
 */
enum { OPERATIONS_PER_SLEEP = 2, OPERATIONS_PER_SLEEP_MOST = 8, SLEEP_SHARE = 20 };

struct sums {
	uint64_t posted[DRV_BOUNDARIES], executed[DRV_BOUNDARIES];
	uint64_t posted_keys, executed_keys;
	bool executes, exact;
};

static struct sums sum_up(const struct drv_account *accounts, size_t count)
{
	struct sums sums = {0};

	for (size_t e = 0; e < count; e++) {
		for (int b = 0; b < DRV_BOUNDARIES; b++) {
			sums.posted[b] += accounts[e].counts[b].posted;
			sums.executed[b] += accounts[e].counts[b].executed;
		}
		sums.posted_keys += accounts[e].counts[DRV_AFTER].posted_keys;
		sums.executed_keys += accounts[e].counts[DRV_AFTER].executed_keys;
		sums.executes |= accounts[e].counts[DRV_AFTER].executes;
		sums.exact |= accounts[e].counts[DRV_AFTER].exact;
	}
	return sums;
}

static void check_payload(struct drv_attempt *attempt, const struct drv_account *accounts, size_t count)
{
	attempt->mismatches = 0;
	for (size_t e = 0; e < count; e++) {
		const struct drv_counts *last = &accounts[e].counts[DRV_LAST];

		attempt->mismatches += last->mismatches;
		drv_check_add(&attempt->checks, "payload", last->mismatches == 0, "endpoint %zu (%s): %s", e,
			      accounts[e].role, last->mismatches ? last->mismatch : "");
	}
}

static void check_executions(struct drv_attempt *attempt, const struct sums *sums, bool reliable)
{
	const uint64_t expected = sums->posted[DRV_AFTER] - sums->posted[DRV_BEFORE];
	const uint64_t executed = sums->executed[DRV_AFTER] - sums->executed[DRV_BEFORE];
	bool ok;

	if (!sums->executes)
		return;
	if (reliable || sums->exact)
		ok = executed == expected && sums->posted_keys == sums->executed_keys;
	else
		ok = executed <= expected && attempt->record.operations <= executed;
	attempt->executions_known = true;
	attempt->executions_expected = expected;
	attempt->executions_server = executed;
	drv_check_add(&attempt->checks, "executions", ok, "%s%" PRIu64 " handed over, %" PRIu64 " executed",
		      executed == expected && !ok ? "counts agree, contents do not: " : "", expected,
		      executed);
}

/* Off the processor, without having waited for one. */
static uint64_t asleep_ns(const struct drv_usage *usage)
{
	const uint64_t awake_ns = usage->user_ns + usage->system_ns +
				  (usage->run_wait_ns > 0 ? (uint64_t)usage->run_wait_ns : 0) +
				  (usage->stolen_ns > 0 ? (uint64_t)usage->stolen_ns : 0);

	return usage->wall_ns > awake_ns ? usage->wall_ns - awake_ns : 0;
}

/*
 * A message may be there before its receiver has gone to sleep: that is seldom, except where an end still works at what
 * it sent when the answer comes. Between two hosts in one kernel a sender's own system call receives its packets for the
 * other one: of messages of 16 to 64 KiB in many frames, three in ten put the answering end of peregrine-xdp to sleep.
 * An end that spins instead of sleeping never leaves its processor.
 */
static bool slept(const struct drv_usage *usage, uint64_t operations)
{
	const uint64_t sleeps = usage->thread_voluntary_switches;

	return sleeps * OPERATIONS_PER_SLEEP >= operations ||
	       (sleeps * OPERATIONS_PER_SLEEP_MOST >= operations &&
		asleep_ns(usage) * SLEEP_SHARE >= usage->wall_ns);
}

/*
 * One that shares its core with whom it wakes is sent off it with each answer, and finds the next message there when it
 * comes back: it found something to do each time, and never came to wait. One that spins in wait is asked to wait each time.
 */
static bool was_preempted(const struct drv_usage *usage, uint64_t waits, uint64_t operations)
{
	return waits * OPERATIONS_PER_SLEEP < operations &&
	       usage->involuntary_switches * OPERATIONS_PER_SLEEP >= operations;
}

/* One end's proof that it waited as asked; one that only looks never sleeps. */
static void check_wait(struct drv_attempt *attempt, const char *role, bool block,
		       const struct drv_usage *usage, uint64_t waits, uint64_t operations, bool sleep_due)
{
	const uint64_t switches = usage->thread_voluntary_switches;

	if (!block)
		/* a handful may be page faults or the kernel's own work: too few to be a way of waiting */
		drv_check_add(&attempt->checks, "wait_mode", switches < 4 || switches * 100 < operations,
			      "%s should poll but slept in %" PRIu64 " of %" PRIu64 " operations", role,
			      switches, operations);
	else if (sleep_due)
		drv_check_add(&attempt->checks, "wait_mode",
			      slept(usage, operations) || was_preempted(usage, waits, operations),
			      "%s should block but slept in only %" PRIu64 " of %" PRIu64
			      " operations, for %" PRIu64 " of %" PRIu64 " us",
			      role, switches, operations, asleep_ns(usage) / 1000, usage->wall_ns / 1000);
}

static void check_waits(struct drv_attempt *attempt, const struct drv_account *accounts, size_t count,
			bool block)
{
	drv_check_add(&attempt->checks, "wait_mode", true, "%s", "");
	for (size_t e = 0; e < count; e++) {
		const struct drv_account *account = &accounts[e];
		const struct drv_counts *before = &account->counts[DRV_BEFORE],
					*after = &account->counts[DRV_AFTER];
		const uint64_t waits = after->waits - before->waits;
		uint64_t operations = attempt->record.operations;

		if (account->measures)
			operations = account->operations;
		else if (after->executes)
			operations = after->executed - before->executed;
		if (account->sleep != DRV_SLEEP_UNJUDGED)
			check_wait(
				attempt, account->role, block, &attempt->cpu[e], waits, operations,
				account->sleep == DRV_SLEEP_EACH ||
					(account->sleep == DRV_SLEEP_IF_WAITED && waits * 2 >= operations));
	}
}

/* What an end used over the measured loop, and the system calls that were counted before. */
static struct drv_usage usage_of(const struct drv_account *account)
{
	const struct drv_usage *before = &account->counts[DRV_BEFORE].usage,
			       *after = &account->counts[DRV_AFTER].usage;
	struct drv_usage usage = account->measures ? account->usage : drv_usage_since(before, after);

	usage.system_calls = account->system_calls;
	if (!account->measures) {
		usage.cycles = after->cycles;
		usage.instructions = after->instructions;
	}
	return usage;
}

void drv_judge(struct drv_attempt *attempt, const struct drv_account *accounts, size_t count, bool reliable,
	       bool block)
{
	const struct sums sums = sum_up(accounts, count);
	const uint64_t overflows = drv_record_overflows(&attempt->record) + attempt->overflows;

	attempt->cpu_count = count;
	attempt->counters = json_array();
	for (size_t e = 0; e < count; e++) {
		const struct drv_counts *counts = accounts[e].counts;

		attempt->cpu[e] = usage_of(&accounts[e]);
		if (json_array_append_new(
			    attempt->counters,
			    drv_counters_since_json(&counts[DRV_BEFORE].layer, &counts[DRV_AFTER].layer))) {
			/* without memory they are not told at all */
			json_decref(attempt->counters);
			attempt->counters = NULL;
		}
		attempt->verified_before += counts[DRV_AFTER_VERIFY].full_checked;
		attempt->verified_in_loop += counts[DRV_AFTER].checked - counts[DRV_BEFORE].checked;
		attempt->verified_after += counts[DRV_LAST].full_checked - counts[DRV_AFTER].full_checked;
	}
	check_payload(attempt, accounts, count);
	check_executions(attempt, &sums, reliable);
	check_waits(attempt, accounts, count, block);
	drv_check_add(&attempt->checks, "range", overflows == 0, "samples above 100 s: %" PRIu64, overflows);
	drv_check_add(&attempt->checks, "samples", attempt->record.operations > 0, "operations: %" PRIu64,
		      attempt->record.operations);
	attempt->status = DRV_DONE;
	for (size_t i = 0; i < attempt->checks.count; i++)
		if (!attempt->checks.list[i].ok && attempt->status == DRV_DONE) {
			attempt->status = DRV_UNSOUND;
			drv_fail_set(&attempt->fail, DRV_CHECK, "check %s failed: %s",
				     attempt->checks.list[i].name, attempt->checks.list[i].detail);
		}
}
