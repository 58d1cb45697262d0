/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads beside the one that owns the context, and how each wakes the other: whoever is about to sleep says so, looks
 * once more, and sleeps; whoever gives looks afterwards whether the other said so. Both order their two steps by a
 * fence, so that one of them sees the other (Dekker's argument), and nobody makes a system call while both are awake.
 */
#include "threads/hands.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads/mailbox.h"
#include "measure/pin.h"
#include "base/relax.h"

struct drv_hand {
	/* 1: the hand sleeps, or is about to */
	_Alignas(DRV_MAILBOX_ALIGN) atomic_uint asleep;
	struct drv_mailbox to_hand, to_owner;
	struct drv_hands *all;
	uint32_t index;
	int cpu;
	bool started;
	pthread_t thread;
	struct drv_pin pin;
};

struct drv_hands {
	/* the owner sleeps, or is about to */
	_Alignas(DRV_MAILBOX_ALIGN) atomic_bool owner_asleep;
	/* in block mode: what ends the owner's sleep; else -1 */
	int wake_fd;
	atomic_bool over;
	bool block;
	uint32_t count, turn;
	drv_hand_fn fn;
	void *arg;
	struct drv_hand hands[];
};

static void *be_hand(void *arg)
{
	struct drv_hand *hand = arg;

	drv_pin_set(&hand->pin, hand->cpu);
	hand->all->fn(hand, hand->all->arg);
	drv_pin_check(&hand->pin);
	return NULL;
}

uint32_t drv_hands_wanted(const struct drv_engine *engine)
{
	const struct drv_endpoint *here = &engine->launch->endpoints[engine->endpoint];
	const size_t threads = drv_endpoint_threads(here);

	return (uint32_t)((here->hands_count + threads - 1 - engine->thread) / threads);
}

static bool has_descriptor(const struct drv_engine *engine)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	engine->layer->limits(engine->ctx, &limits);
	return limits.caps & CADGE_CAP_EVENT_FD;
}

int drv_hands_start(struct drv_engine *engine, drv_hand_fn fn, void *arg, uint32_t room,
		    struct drv_fail *fail)
{
	const struct drv_endpoint *here = &engine->launch->endpoints[engine->endpoint];
	const uint32_t count = drv_hands_wanted(engine);
	const size_t bytes = sizeof(struct drv_hands) + count * sizeof(struct drv_hand);
	struct drv_hands *hands;
	bool made = true;

	if (!count)
		return 0;
	if (engine->block && !has_descriptor(engine))
		return drv_fail_set(
			fail, DRV_NO_WAIT,
			"the layer has no descriptor to wait for (EVENT_FD), and its own wait cannot "
			"be ended by another thread");
	hands = aligned_alloc(DRV_MAILBOX_ALIGN,
			      (bytes + DRV_MAILBOX_ALIGN - 1) / DRV_MAILBOX_ALIGN * DRV_MAILBOX_ALIGN);
	if (!hands)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u threads", count);
	memset(hands, 0, bytes);
	hands->block = engine->block;
	hands->count = count;
	hands->fn = fn;
	hands->arg = arg;
	hands->wake_fd = engine->block ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	engine->hands = hands;
	engine->hands_wait = drv_hands_wait;
	for (uint32_t i = 0; i < count; i++) {
		struct drv_hand *hand = &hands->hands[i];

		hand->all = hands;
		hand->index = i;
		hand->cpu = here->hands[engine->thread + i * drv_endpoint_threads(here)];
		made = made && drv_mailbox_make(&hand->to_hand, room) &&
		       drv_mailbox_make(&hand->to_owner, room);
	}
	if (!made || (engine->block && hands->wake_fd < 0)) {
		drv_hands_end(engine);
		return drv_fail_set(fail, DRV_MEMORY, "no memory or no descriptor for %u threads", count);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct drv_hand *hand = &hands->hands[i];

		hand->started = !pthread_create(&hand->thread, NULL, be_hand, hand);
		if (!hand->started) {
			drv_hands_end(engine);
			return drv_fail_set(fail, DRV_SYSTEM, "thread %u of %u could not be started", i + 1,
					    count);
		}
	}
	return 0;
}

/* After what a hand is to see was written: ends its sleep, if it said that it sleeps. */
static void wake(struct drv_hand *hand)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&hand->asleep, memory_order_relaxed) && atomic_exchange(&hand->asleep, 0))
		syscall(SYS_futex, &hand->asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void drv_hands_end(struct drv_engine *engine)
{
	struct drv_hands *hands = engine->hands;

	if (!hands)
		return;
	atomic_store(&hands->over, true);
	for (uint32_t i = 0; i < hands->count; i++) {
		struct drv_hand *hand = &hands->hands[i];

		if (hand->started) {
			wake(hand);
			pthread_join(hand->thread, NULL);
			if (!hand->pin.ok && !engine->hands_strayed[0])
				snprintf(engine->hands_strayed, sizeof(engine->hands_strayed),
					 "hand %u: %.120s", i, hand->pin.detail);
		}
		drv_pin_free(&hand->pin);
		drv_mailbox_free(&hand->to_hand);
		drv_mailbox_free(&hand->to_owner);
	}
	if (hands->wake_fd >= 0)
		close(hands->wake_fd);
	engine->hands = NULL;
	free(hands);
}

bool drv_hands_give(struct drv_engine *engine, uint32_t hand, uint64_t number)
{
	struct drv_hands *hands = engine->hands;

	if (!drv_mailbox_give(&hands->hands[hand].to_hand, number))
		return false;
	if (hands->block)
		wake(&hands->hands[hand]);
	return true;
}

bool drv_hands_take(struct drv_engine *engine, uint32_t *hand_out, uint64_t *number_out)
{
	struct drv_hands *hands = engine->hands;

	for (uint32_t i = 0; i < hands->count; i++) {
		const uint32_t at = hands->turn;

		hands->turn = at + 1 == hands->count ? 0 : at + 1;
		if (drv_mailbox_take(&hands->hands[at].to_owner, number_out)) {
			*hand_out = at;
			return true;
		}
	}
	return false;
}

static bool any_gave(struct drv_hands *hands)
{
	for (uint32_t i = 0; i < hands->count; i++)
		if (drv_mailbox_holds(&hands->hands[i].to_owner))
			return true;
	return false;
}

int drv_hands_wait(struct drv_engine *engine, uint64_t timeout_ns, struct drv_fail *fail)
{
	struct drv_hands *hands = engine->hands;
	uint64_t due_ns = UINT64_MAX, count;
	int fd = -1;
	const int code = engine->layer->event(engine->ctx, &fd, &due_ns);
	struct pollfd watched[2] = {{.fd = fd, .events = POLLIN}, {.fd = hands->wake_fd, .events = POLLIN}};
	struct timespec span;

	if (code == CADGE_BUSY)
		return 0;
	if (code < 0)
		return drv_engine_fail("event", code, fail);
	if (due_ns < timeout_ns)
		timeout_ns = due_ns;
	span.tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000));
	span.tv_nsec = (long)(timeout_ns % UINT64_C(1000000000));
	atomic_store_explicit(&hands->owner_asleep, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!any_gave(hands) && ppoll(watched, 2, &span, NULL) < 0 && errno != EINTR) {
		atomic_store(&hands->owner_asleep, false);
		return drv_fail_set(fail, DRV_SYSTEM, "ppoll: %s", strerror(errno));
	}
	/* whoever took the mark away has written, or is about to: then the next sleep ends early, which is legal */
	if (!atomic_exchange(&hands->owner_asleep, false) || watched[1].revents)
		(void)!read(hands->wake_fd, &count, sizeof(count));
	return 0;
}

uint32_t drv_hand_index(const struct drv_hand *hand)
{
	return hand->index;
}

bool drv_hand_over(const struct drv_hand *hand)
{
	return atomic_load_explicit(&hand->all->over, memory_order_relaxed);
}

bool drv_hand_try(struct drv_hand *hand, uint64_t *number_out)
{
	return !drv_hand_over(hand) && drv_mailbox_take(&hand->to_hand, number_out);
}

/* Sleeps until the owner gives something, or it is over. */
static void sleep_until_given(struct drv_hand *hand)
{
	atomic_store_explicit(&hand->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	while (!drv_mailbox_holds(&hand->to_hand) && !atomic_load(&hand->all->over) &&
	       atomic_load(&hand->asleep))
		syscall(SYS_futex, &hand->asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	atomic_store(&hand->asleep, 0);
}

bool drv_hand_take(struct drv_hand *hand, uint64_t *number_out)
{
	while (!drv_hand_over(hand)) {
		if (drv_mailbox_take(&hand->to_hand, number_out))
			return true;
		if (hand->all->block)
			sleep_until_given(hand);
		else
			drv_relax();
	}
	return false;
}

bool drv_hand_give(struct drv_hand *hand, uint64_t number)
{
	struct drv_hands *hands = hand->all;

	while (!drv_mailbox_give(&hand->to_owner, number)) {
		if (drv_hand_over(hand))
			return false;
		if (hands->block)
			sched_yield();
		else
			drv_relax();
	}
	if (hands->block) {
		const uint64_t one = 1;

		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load_explicit(&hands->owner_asleep, memory_order_relaxed) &&
		    atomic_exchange(&hands->owner_asleep, false))
			(void)!write(hands->wake_fd, &one, sizeof(one));
	}
	return true;
}

bool drv_hands_pinned(const struct drv_engine *engine, char *detail, size_t detail_bytes)
{
	if (!engine->hands_strayed[0])
		return true;
	snprintf(detail, detail_bytes, "%s", engine->hands_strayed);
	return false;
}
