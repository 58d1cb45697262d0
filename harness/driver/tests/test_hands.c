/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads beside the one that owns the context: every number comes once and in order, whoever has nothing to do sleeps
 * in block mode and is woken, and all of them end, wherever they are.
 */
#include "threads/hands.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tap.h"
#include "measure/usage.h"

enum { HANDS = 3, ROOM = 8, NUMBERS = 20000 };
/* nobody is to be left to it */
#define WAIT_NS UINT64_C(30000000000)
/* whoever got nothing for so long was not woken */
#define LOST_NS UINT64_C(10000000000)

/* A layer that never has anything to do, with a descriptor that never becomes readable. */
static struct {
	int fd;
	bool has_descriptor;
	unsigned events;
	uint64_t due_ns;
} layer_state = {.due_ns = UINT64_MAX};

static atomic_uint filled;

static void limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx;
	limits_out->caps = layer_state.has_descriptor ? CADGE_CAP_EVENT_FD | CADGE_CAP_WAIT : CADGE_CAP_WAIT;
}

static int event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	(void)ctx;
	layer_state.events++;
	*fd_out = layer_state.fd;
	*due_ns_out = layer_state.due_ns;
	return CADGE_DONE;
}

static const struct cadge_layer layer = {.limits = limits, .event = event};

/* Gives back what it was given, with a mark of its own. */
static void echo(struct drv_hand *hand, void *arg)
{
	uint64_t number;

	(void)arg;
	while (drv_hand_take(hand, &number))
		if (!drv_hand_give(hand, number * HANDS + drv_hand_index(hand)))
			return;
}

/* Gives until nobody takes any more. */
static void talk(struct drv_hand *hand, void *arg)
{
	(void)arg;
	while (drv_hand_give(hand, 7))
		;
}

/* Gives what there is room for, says so, and gives no more. */
static void fill(struct drv_hand *hand, void *arg)
{
	(void)arg;
	for (uint64_t number = 0; number < ROOM; number++)
		drv_hand_give(hand, number);
	atomic_fetch_add(&filled, 1);
	while (!drv_hand_over(hand))
		sched_yield();
}

static bool start(struct drv_engine *engine, bool block, drv_hand_fn fn)
{
	struct drv_fail fail;

	engine->block = block;
	return !drv_hands_start(engine, fn, NULL, ROOM, &fail);
}

/* Keeps ROOM numbers on their way to and from each hand. */
static void test_echo(struct drv_engine *engine, bool block)
{
	uint64_t given[HANDS] = {0}, taken[HANDS] = {0}, number, waits = 0;
	struct drv_usage before, after;
	struct drv_fail fail;
	uint32_t hand;
	bool right = true;

	if (!tap_ok(start(engine, block, echo), "%s: hands start", block ? "block" : "poll"))
		return;
	drv_usage_read(&before);
	while (taken[0] + taken[1] + taken[2] < HANDS * NUMBERS) {
		bool idle = true;

		for (uint32_t i = 0; i < HANDS; i++)
			while (given[i] < NUMBERS && given[i] - taken[i] < ROOM &&
			       drv_hands_give(engine, i, given[i])) {
				given[i]++;
				idle = false;
			}
		while (drv_hands_take(engine, &hand, &number)) {
			right &= hand < HANDS && number == taken[hand] * HANDS + hand;
			taken[hand]++;
			idle = false;
		}
		if (idle && block) {
			waits++;
			if (drv_hands_wait(engine, WAIT_NS, &fail))
				break;
		}
	}
	drv_usage_read(&after);
	drv_hands_end(engine);
	tap_ok(right && taken[0] == NUMBERS && taken[1] == NUMBERS && taken[2] == NUMBERS && !engine->hands,
	       "%s: each of %d numbers came once and in order; %llu waits in %.0f ms",
	       block ? "block" : "poll", HANDS * NUMBERS, (unsigned long long)waits,
	       (double)drv_usage_since(&before, &after).wall_ns / 1e6);
}

/* One number at a time: each makes both sides sleep, and none of them is left to its timeout. */
static void test_sleep(struct drv_engine *engine)
{
	enum { TIMES = 200 };
	struct drv_usage before, after, spent;
	struct drv_fail fail;
	uint64_t number, done = 0;
	uint32_t hand;

	if (!tap_ok(start(engine, true, echo), "block: hands start"))
		return;
	drv_usage_read(&before);
	while (done < TIMES) {
		drv_hands_give(engine, (uint32_t)(done % HANDS), done);
		while (!drv_hands_take(engine, &hand, &number))
			if (drv_hands_wait(engine, WAIT_NS, &fail))
				break;
		done++;
	}
	drv_usage_read(&after);
	spent = drv_usage_since(&before, &after);
	drv_hands_end(engine);
	tap_ok(spent.voluntary_switches >= TIMES && spent.wall_ns < WAIT_NS,
	       "%d numbers one by one: %llu voluntary switches in %.1f ms", TIMES,
	       (unsigned long long)spent.voluntary_switches, (double)spent.wall_ns / 1e6);
}

static void spin(unsigned steps)
{
	for (; steps; steps--)
		__asm__ volatile("" ::: "memory");
}

/* The owner takes a number without sleeping. False: its hand sleeps. */
static bool take_awake(struct drv_engine *engine)
{
	const uint64_t began_ns = drv_now_ns();
	uint64_t number;
	uint32_t hand;

	for (unsigned looks = 1; !drv_hands_take(engine, &hand, &number); looks++) {
		if (drv_now_ns() - began_ns > LOST_NS)
			return false;
		if (looks % 256 == 0)
			sched_yield();
	}
	return true;
}

/*
 * Store buffering: each side says that it sleeps, or gives, and then looks whether the other gave, or sleeps. Without the
 * fence between the two steps both may miss the other, on x86 as well, where both steps of both sides are nearly at the same time.
 * That is tried with all distances that matter, as often as goes into a second. One number that nobody is woken for fails.
 */
static void test_fences(struct drv_engine *engine)
{
	enum { AWAKE = 8, BURST = 2, STEPS = 400 };
	const uint64_t until_ns = drv_now_ns() + UINT64_C(1000000000);
	uint64_t number, tries = 0, given = 0, taken = 0;
	bool right = true;
	uint64_t began_ns;
	struct drv_fail fail;
	uint32_t hand;

	if (!tap_ok(start(engine, true, echo), "block: hands start"))
		return;
	for (; right && drv_now_ns() < until_ns; tries++) {
		/* a hand that goes to sleep, while it is given something: the owner stays awake */
		for (unsigned i = 0; right && i < AWAKE; i++) {
			drv_hands_give(engine, 0, given++);
			right = take_awake(engine);
			taken += right;
			spin((unsigned)(tries * AWAKE + i) % STEPS);
		}
		/* an owner that goes to sleep, while a hand that is awake gives it the last number of a few */
		for (unsigned i = 0; i < BURST; i++)
			drv_hands_give(engine, 0, given++);
		while (right && taken < given) {
			if (drv_hands_take(engine, &hand, &number)) {
				taken++;
				spin((unsigned)(tries / STEPS % STEPS));
				continue;
			}
			began_ns = drv_now_ns();
			right = !drv_hands_wait(engine, LOST_NS, &fail) && drv_now_ns() - began_ns < LOST_NS;
		}
	}
	drv_hands_end(engine);
	tap_ok(right && taken == given, "%llu tries: nobody sleeps through what it was given",
	       (unsigned long long)tries);
}

/* Each hand has numbers: they are taken in turn. And the owner sleeps no longer than until the layer is due. */
static void test_turns(struct drv_engine *engine)
{
	uint32_t hands[2 * HANDS];
	struct drv_fail fail;
	uint64_t number, began_ns;
	bool in_turn = true;

	if (!tap_ok(start(engine, true, fill), "hands that give all there is room for start"))
		return;
	while (atomic_load(&filled) < HANDS)
		sched_yield();
	for (uint32_t i = 0; i < 2 * HANDS; i++)
		in_turn &= drv_hands_take(engine, &hands[i], &number) && number == i / HANDS;
	for (uint32_t i = 1; i < 2 * HANDS; i++)
		in_turn &= hands[i] == (hands[i - 1] + 1) % HANDS;
	tap_ok(in_turn, "their numbers are taken in turn");
	while (drv_hands_take(engine, &hands[0], &number))
		;
	layer_state.due_ns = 1000000;
	began_ns = drv_now_ns();
	tap_ok(!drv_hands_wait(engine, WAIT_NS, &fail) && !drv_hands_wait(engine, WAIT_NS, &fail) &&
		       drv_now_ns() - began_ns < WAIT_NS,
	       "the owner wakes when the layer is due");
	layer_state.due_ns = UINT64_MAX;
	drv_hands_end(engine);
}

static void test_ends(struct drv_engine *engine)
{
	struct drv_fail fail;
	uint64_t number;
	uint32_t hand;
	bool given = true;

	for (int block = 0; block < 2; block++) {
		tap_ok(start(engine, block, talk), "hands that give without end start");
		while (!drv_hands_take(engine, &hand, &number))
			;
		drv_hands_end(engine);
		tap_ok(start(engine, block, echo), "and hands that were given nothing");
		drv_hands_end(engine);
	}
	engine->block = false;
	tap_ok(start(engine, false, talk), "hands that never take start");
	for (uint32_t i = 0; i < ROOM; i++)
		given &= drv_hands_give(engine, 1, i);
	tap_ok(given && !drv_hands_give(engine, 1, ROOM),
	       "a mailbox takes what it has room for, and no more");
	drv_hands_end(engine);
	layer_state.has_descriptor = false;
	engine->block = true;
	tap_ok(drv_hands_start(engine, echo, NULL, ROOM, &fail) && fail.reason == DRV_NO_WAIT &&
		       !engine->hands,
	       "block, and a layer without a descriptor: %s", fail.text);
	drv_hands_end(engine);
}

/* Two threads of a role share three hands. */
static void test_shares(struct drv_engine *engine, struct drv_endpoint *here)
{
	uint32_t first, second;

	here->cpus_count = 2;
	engine->thread = 0;
	first = drv_hands_wanted(engine);
	engine->thread = 1;
	second = drv_hands_wanted(engine);
	tap_ok(first == 2 && second == 1, "of three hands the first of two threads has %u, the second %u",
	       first, second);
	here->hands_count = 0;
	engine->thread = 0;
	layer_state.has_descriptor = true;
	tap_ok(start(engine, true, echo) && !engine->hands && !drv_hands_wanted(engine), "and none of none");
}

int main(void)
{
	struct drv_endpoint here = {.hands = {-1, -1, -1}, .hands_count = HANDS};
	const struct drv_launch launch = {.endpoints = &here, .endpoints_count = 1};
	struct drv_engine engine = {.launch = &launch, .layer = &layer};
	char detail[160];

	layer_state.fd = eventfd(0, EFD_CLOEXEC);
	layer_state.has_descriptor = true;
	test_echo(&engine, false);
	test_echo(&engine, true);
	test_sleep(&engine);
	test_fences(&engine);
	test_turns(&engine);
	test_ends(&engine);
	tap_ok(drv_hands_pinned(&engine, detail, sizeof(detail)), "none of them left its cores");
	test_shares(&engine, &here);
	close(layer_state.fd);
	return tap_done();
}
