/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nobody sleeps through what it was given: workers.c on a simulated machine. Its threads run one at a time; before each
 * atomic access and each system call chance decides which. Stores stay in their thread's buffer until a fence, a locked
 * access, a system call or chance lets them out: x86-TSO (Sewell et al., CACM 2010). A sleep has no timeout, so that a
 * wake that was lost leaves all asleep. What fails, fails again: chance is seeded.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"
#include "base/relax.h"
#include "engine/engine.h"
#include "tap.h"
#include "threads/threads.h"

enum { WORKERS = 2, ROOM = 2, NUMBERS = 6, RUNS = 2000, STORES = 16, FD = 1000 };

struct store {
	void *at;
	size_t bytes;
	uint64_t value;
};

struct thread {
	sem_t turn;
	pthread_t id;
	void (*fn)(void *arg);
	void *arg;
	/* runs; else it sleeps on what `waits` points to */
	bool runs, ended;
	const void *waits;
	struct store stores[STORES];
	unsigned stored;
};

static struct {
	/* the owner first */
	struct thread threads[1 + WORKERS];
	unsigned count;
	uint64_t chance, seed;
	/* the descriptor that ends the owner's sleep */
	bool is_readable;
	unsigned owner_sleeps, worker_sleeps;
} machine;

static _Thread_local struct thread *self = &machine.threads[0];

static void let_out(struct thread *thread)
{
	const struct store *first = thread->stores;

	memcpy(first->at, &first->value, first->bytes);
	memmove(thread->stores, first + 1, --thread->stored * sizeof(*first));
}

static void let_all_out(void)
{
	while (self->stored)
		let_out(self);
}

/* The next thread that runs; before that, stores may become visible. */
static struct thread *next(void)
{
	for (;;) {
		const uint64_t drawn = drv_random(&machine.chance);
		struct thread *thread = drawn >> 62 ? self : &machine.threads[drawn % machine.count];
		bool is_over = true;

		if (drawn >> 61 & 1 && thread->stored)
			let_out(thread);
		else if (thread->runs)
			return thread;
		for (unsigned i = 0; i < machine.count; i++)
			is_over &= !machine.threads[i].runs && !machine.threads[i].stored;
		if (!is_over)
			continue;
		tap_ok(false, "seed %llu: all sleep", (unsigned long long)machine.seed);
		_exit(1);
	}
}

static void step(void)
{
	struct thread *thread = next();

	if (thread == self)
		return;
	sem_post(&thread->turn);
	while (sem_wait(&self->turn))
		;
}

static void sleep_on(const void *what, unsigned *sleeps)
{
	++*sleeps;
	self->runs = false;
	self->waits = what;
	step();
}

static void wake_from(const void *what)
{
	for (unsigned i = 0; i < machine.count; i++)
		if (machine.threads[i].waits == what && !machine.threads[i].ended)
			machine.threads[i].runs = true;
}

/* ---- what workers.c calls in place of atomic accesses and of the system ---- */

static uint64_t simulated_load(const void *at, size_t bytes)
{
	uint64_t value = 0;

	step();
	for (unsigned i = self->stored; i-- > 0;)
		if (self->stores[i].at == at)
			return self->stores[i].value;
	memcpy(&value, at, bytes);
	return value;
}

static void simulated_store(void *at, size_t bytes, uint64_t value, bool is_locked)
{
	step();
	if (self->stored == STORES)
		let_out(self);
	self->stores[self->stored++] = (struct store){at, bytes, value};
	if (is_locked)
		let_all_out();
}

static uint64_t simulated_exchange(void *at, size_t bytes, uint64_t value)
{
	uint64_t was = 0;

	step();
	let_all_out();
	memcpy(&was, at, bytes);
	memcpy(at, &value, bytes);
	return was;
}

static void simulated_fence(void)
{
	step();
	let_all_out();
}

static long simulated_futex(const void *word, int what, unsigned value)
{
	simulated_fence();
	if (what == FUTEX_WAKE_PRIVATE)
		wake_from(word);
	else if (!memcmp(word, &value, sizeof(value)))
		sleep_on(word, &machine.worker_sleeps);
	return 0;
}

static int simulated_ppoll(struct pollfd watched[2])
{
	simulated_fence();
	if (!machine.is_readable)
		sleep_on(&machine.is_readable, &machine.owner_sleeps);
	watched[1].revents = POLLIN;
	return 1;
}

static bool simulated_eventfd_access(bool is_readable)
{
	simulated_fence();
	machine.is_readable = is_readable;
	if (is_readable)
		wake_from(&machine.is_readable);
	return true;
}

static void *run_simulated(void *arg)
{
	self = arg;
	while (sem_wait(&self->turn))
		;
	self->fn(self->arg);
	simulated_fence();
	self->runs = false;
	self->ended = true;
	wake_from(self);
	sem_post(&next()->turn);
	return NULL;
}

static int simulated_start(struct drv_thread *started, void (*fn)(void *arg), void *arg)
{
	struct thread *thread = &machine.threads[machine.count];

	*thread = (struct thread){.fn = fn, .arg = arg, .runs = true};
	sem_init(&thread->turn, 0, 0);
	if (pthread_create(&thread->id, NULL, run_simulated, thread))
		return -1;
	started->id = thread->id;
	machine.count++;
	return 0;
}

static void simulated_join(const struct drv_thread *started)
{
	struct thread *thread = machine.threads;
	unsigned ignored = 0;

	simulated_fence();
	while (!pthread_equal(thread->id, started->id))
		thread++;
	while (!thread->ended)
		sleep_on(thread, &ignored);
	pthread_join(thread->id, NULL);
	sem_destroy(&thread->turn);
}

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_compare_exchange_weak_explicit
#undef atomic_thread_fence
#define VALUE_OF(at)                    __typeof__(+*(at))
#define BARE(at)                        ((void *)(uintptr_t)(at))
#define atomic_load(at)                 ((VALUE_OF(at))simulated_load(BARE(at), sizeof(*(at))))
#define atomic_load_explicit(at, order) atomic_load(at)
#define atomic_store(at, value)         simulated_store(BARE(at), sizeof(*(at)), (uint64_t)(value), true)
#define atomic_store_explicit(at, value, order)                                                              \
	simulated_store(BARE(at), sizeof(*(at)), (uint64_t)(value), (order) == memory_order_seq_cst)
#define atomic_exchange(at, value)                                                                           \
	((VALUE_OF(at))simulated_exchange(BARE(at), sizeof(*(at)), (uint64_t)(value)))
/* of queues that several threads use alone */
#define atomic_compare_exchange_weak_explicit(at, was, value, order, failed) (abort(), (void)(was), false)
#define atomic_thread_fence(order)                                           simulated_fence()
#define syscall(number, word, what, value, ...)                              simulated_futex(word, what, value)
#define ppoll(watched, count, span, mask)                                    ((void)(span), simulated_ppoll(watched))
#define eventfd(value, flags)                                                FD
#define close(fd)                                                            ((void)(fd))
#define write(fd, from, bytes)                                               ((void)(from), simulated_eventfd_access(true))
#define read(fd, into, bytes)                                                ((void)(into), simulated_eventfd_access(false))
#define drv_thread_start(thread, cpu, fn, arg, number, fail)                 ((void)(cpu), simulated_start(thread, fn, arg))
#define drv_thread_join(thread)                                              simulated_join(thread)
#define sched_yield()                                                        step()

#include "threads/workers.c"

/* ---- the tests ---- */

static void limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	(void)ctx;
	limits_out->caps = CADGE_CAP_EVENT_FD | CADGE_CAP_WAIT;
}

/* It never has anything to do. */
static int event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	(void)ctx, (void)fd_out, (void)due_ns_out;
	return CADGE_DONE;
}

static uint64_t echo(void *arg, uint32_t worker, uint64_t number)
{
	(void)arg, (void)worker;
	return number;
}

/* Each worker has as much as there is room for, one number at a time, or anything between. */
static bool is_each_taken(struct drv_engine *engine, uint64_t most)
{
	uint64_t given[WORKERS] = {0}, taken[WORKERS] = {0}, number;
	struct drv_fail fail;
	uint32_t worker;
	bool right = true;

	while (taken[0] + taken[1] < WORKERS * NUMBERS) {
		bool is_idle = true;

		for (uint32_t i = 0; i < WORKERS; i++)
			while (given[i] < NUMBERS && given[i] - taken[i] < most &&
			       drv_workers_give(engine, i, given[i])) {
				given[i]++;
				is_idle = false;
			}
		while (drv_workers_take(engine, &worker, &number)) {
			right &= number == taken[worker]++;
			is_idle = false;
		}
		if (is_idle)
			right &= !drv_workers_wait(engine, UINT64_MAX, &fail);
	}
	return right;
}

int main(void)
{
	struct drv_endpoint here = {.worker_cpus = {-1, -1}, .worker_cpus_count = WORKERS};
	const struct drv_launch launch = {.endpoints = &here, .endpoints_count = 1};
	const struct cadge_layer layer = {.limits = limits, .event = event};
	struct drv_engine engine = {.launch = &launch, .layer = &layer, .block = true};
	struct drv_fail fail;
	bool right = true;

	for (machine.seed = 1; machine.seed <= RUNS; machine.seed++) {
		machine.chance = machine.seed;
		machine.threads[0] = (struct thread){.runs = true};
		machine.count = 1;
		machine.is_readable = false;
		sem_init(&machine.threads[0].turn, 0, 0);
		right &= !drv_workers_start(&engine, echo, NULL, ROOM, &fail) &&
			 is_each_taken(&engine, 1 + machine.seed % ROOM);
		drv_workers_end(&engine);
		sem_destroy(&machine.threads[0].turn);
	}
	tap_ok(right, "%d runs: each number comes once and in order", RUNS);
	tap_ok(machine.owner_sleeps > RUNS && machine.worker_sleeps > RUNS,
	       "the owner slept %u times, its workers %u times", machine.owner_sleeps, machine.worker_sleeps);
	return tap_done();
}
