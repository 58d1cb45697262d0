/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue holds what it has room for, gives back first what was put first, and gives each number to one taker. */
#include "threads/queue.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "tap.h"

enum { ITEMS_MAX = 200000, TAKERS = 2, BITS_MAX = 12 };

static uint64_t items;

/* Numbers beginning with 1 go through a queue: so many threads put them, and as many take. */
struct traffic {
	struct drv_queue *queue;
	unsigned bits, threads;
	_Atomic uint32_t taken, taker;
	uint64_t sums[TAKERS];
	bool in_order[TAKERS];
};

static void *put_items(void *arg)
{
	struct traffic *traffic = arg;

	for (uint64_t i = 1; i <= items;) {
		const bool is_put = traffic->threads > 1
					    ? drv_queue_put(traffic->queue, traffic->bits, i, true)
					    : drv_queue_put(traffic->queue, traffic->bits, i, false);

		i += is_put;
		if (!is_put)
			sched_yield();
	}
	return NULL;
}

static void *take_items(void *arg)
{
	struct traffic *traffic = arg;
	const uint32_t taker = traffic->taker++;
	uint64_t number, last = 0;
	bool in_order = true;

	while (traffic->taken < traffic->threads * items) {
		if (!(traffic->threads > 1 ? drv_queue_take(traffic->queue, traffic->bits, &number, true)
					   : drv_queue_take(traffic->queue, traffic->bits, &number, false))) {
			sched_yield();
			continue;
		}
		in_order &= number == last + 1;
		last = number;
		traffic->sums[taker] += number;
		traffic->taken++;
	}
	traffic->in_order[taker] = in_order;
	return NULL;
}

static struct drv_queue *make(unsigned bits)
{
	return drv_zeroed(DRV_QUEUE_ALIGN, DRV_QUEUE_BYTES(bits));
}

static void test_room(unsigned bits)
{
	struct drv_queue *queue = make(bits);
	uint64_t number, places = 0;
	bool in_order = true, holds;

	in_order &= !drv_queue_holds(queue, bits);
	/* in every lap alike, and from the middle of one on */
	for (uint64_t lap = 0; lap < 3; lap++) {
		for (places = 0; drv_queue_put(queue, bits, lap + places, false);)
			places++;
		holds = drv_queue_holds(queue, bits);
		in_order &= places == UINT64_C(1) << bits && holds;
		for (uint64_t i = 0; i < places; i++)
			in_order &= drv_queue_take(queue, bits, &number, false) && number == lap + i;
		in_order &= !drv_queue_take(queue, bits, &number, false) && !drv_queue_holds(queue, bits);
		in_order &= drv_queue_put(queue, bits, 1, true) && drv_queue_take(queue, bits, &number, true);
	}
	tap_ok(in_order, "a queue has %llu places, and gives first what was put first",
	       (unsigned long long)places);
	free(queue);
}

static void test_threads(unsigned bits, unsigned threads)
{
	struct traffic traffic = {.queue = make(bits), .bits = bits, .threads = threads};
	pthread_t ids[2 * TAKERS];
	uint64_t number, sum = 0;

	for (unsigned i = 0; i < 2 * threads; i++)
		pthread_create(&ids[i], NULL, i < threads ? put_items : take_items, &traffic);
	for (unsigned i = 0; i < 2 * threads; i++)
		pthread_join(ids[i], NULL);
	for (unsigned i = 0; i < threads; i++)
		sum += traffic.sums[i];
	tap_ok(sum == (uint64_t)threads * items / 2 * (items + 1) &&
		       !drv_queue_take(traffic.queue, bits, &number, true) &&
		       (threads > 1 || traffic.in_order[0]),
	       "numbers of %u threads come to as many others once each%s, through %u places", threads,
	       threads > 1 ? "" : ", in order", 1u << bits);
	free(traffic.queue);
}

int main(void)
{
	items = ITEMS_MAX / tap_share() / 2 * 2;
	test_room(0);
	test_room(1);
	test_room(3);
	test_room(BITS_MAX);
	test_threads(0, 1);
	test_threads(4, 1);
	test_threads(1, 2);
	test_threads(BITS_MAX, 2);
	return tap_done();
}
