/* SPDX-License-Identifier: BSD-3-Clause */
/* kit/sleeper: no wake is lost, however arming and waking cross; nobody who is awake is woken by a system call. */
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "kit/sleeper.h"
#include "tests/unit/support/tap.h"

enum { ROUNDS = 20000, LONG_MS = 20000 };

static struct cadge_sleeper sleeper;
static atomic_int work;

static bool is_readable(void)
{
	struct pollfd pollfd = {.fd = sleeper.fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 1;
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void alone(void)
{
	const uint64_t began_ns = now_ns();

	cadge_sleeper_wake(&sleeper);
	ok(!is_readable(), "whoever is awake is not woken");
	cadge_sleeper_arm(&sleeper);
	cadge_sleeper_wake(&sleeper);
	cadge_sleeper_wake(&sleeper);
	ok(cadge_sleeper_sleep(&sleeper, LONG_MS * UINT64_C(1000000)) == CADGE_DONE &&
		   now_ns() - began_ns < UINT64_C(10000000000),
	   "a wake between arming and sleeping ends the sleep");
	cadge_sleeper_arm(&sleeper);
	ok(!is_readable(), "two wakes are one, and the next sleep is a new one");
	cadge_sleeper_arm(&sleeper);
	ok(!is_readable() && cadge_sleeper_sleep(&sleeper, 1000000) == CADGE_DONE, "it may be armed twice");
}

/* Each round's work comes once that of the round before was taken: a wake that is lost stops both threads. */
static void *produce(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (atomic_load_explicit(&work, memory_order_acquire))
			if (i % 64 == 0)
				sched_yield();
		atomic_store_explicit(&work, 1, memory_order_release);
		cadge_sleeper_wake(&sleeper);
	}
	return arg;
}

static void together(void)
{
	int taken = 0, overslept = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, produce, NULL)) {
		ok(false, "a thread");
		return;
	}
	while (taken < ROUNDS && !overslept) {
		const uint64_t began_ns = now_ns();

		cadge_sleeper_arm(&sleeper);
		if (!atomic_load_explicit(&work, memory_order_acquire))
			cadge_sleeper_sleep(&sleeper, LONG_MS * UINT64_C(1000000));
		overslept = now_ns() - began_ns >= LONG_MS * UINT64_C(1000000);
		if (atomic_exchange_explicit(&work, 0, memory_order_acq_rel))
			taken++;
	}
	ok(taken == ROUNDS && !overslept, "wakes that cross with arming: %d of %d, none lost", taken, ROUNDS);
	if (!overslept)
		pthread_join(thread, NULL);
}

/* Without work: whoever only wants the sleep to end. */
static void *nudge(void *arg)
{
	while (!atomic_load_explicit(&work, memory_order_relaxed))
		cadge_sleeper_wake(&sleeper);
	return arg;
}

static void nudged(void)
{
	int slept = 0;
	bool overslept = false;
	pthread_t thread;

	if (pthread_create(&thread, NULL, nudge, NULL)) {
		ok(false, "a thread");
		return;
	}
	for (; slept < ROUNDS && !overslept; slept++) {
		const uint64_t began_ns = now_ns();

		cadge_sleeper_arm(&sleeper);
		cadge_sleeper_sleep(&sleeper, LONG_MS * UINT64_C(1000000));
		overslept = now_ns() - began_ns >= LONG_MS * UINT64_C(1000000);
	}
	ok(!overslept, "a wake without work ends the sleep too: %d of %d", slept - overslept, ROUNDS);
	atomic_store(&work, 1);
	pthread_join(thread, NULL);
}

int main(void)
{
	ok(cadge_sleeper_open(&sleeper) == CADGE_DONE && sleeper.fd >= 0, "opened");
	alone();
	together();
	nudged();
	cadge_sleeper_close(&sleeper);
	cadge_sleeper_close(&sleeper);
	ok(sleeper.fd == -1, "closed, twice");
	return tap_done();
}
