/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams through shared memory: one copy into a ring of slots, each with its flag, or none where a message is
 * written in its slot; the receiver reads in place and gives slots back by a count. Nothing else is sent: the count is
 * the confirmation as well. No more messages than the window are in flight; the ring may have more slots.
 */
#include "memory.h"

DRV_INLINE uint8_t *slot_of(const struct floor_state *state, uint64_t number)
{
	return state->area + 4096 + number % state->slots * state->stride;
}

/* The producer waits until `consumed` is at least `want`. */
DRV_INLINE int ring_wait(struct drv_floor_loop *loop, uint64_t want, const bool block)
{
	struct floor_state *state = loop->run->state;
	uint64_t *consumed = &state->control->consumed, current;
	uint32_t idle = 0;

	for (;;) {
		current = __atomic_load_n(consumed, __ATOMIC_ACQUIRE);
		if (DRV_LIKELY(current >= want))
			return 0;
		if (block) {
			if (memory_sleep((uint32_t *)(void *)consumed, (uint32_t)current,
					 &state->control->asleep[32]) < 0)
				return drv_floor_broke(loop, "futex");
		} else if (state->pause) {
			drv_relax();
		}
		if ((block || (++idle & 255) == 0) && drv_floor_poll_oob(loop) < 0)
			return -1;
	}
}

DRV_INLINE int produce(struct drv_floor_loop *loop, const bool block)
{
	struct floor_state *state = loop->run->state;
	const uint64_t stride_mask = loop->bytes >= 4096 ? 0 : 31, first = state->next;
	uint64_t last = drv_clock_now(&loop->run->clock), now;

	loop->started = last;
	for (;;) {
		const uint64_t number = state->next;
		uint8_t *slot = slot_of(state, number);
		uint8_t *message = loop->touch ? slot + state->payload_at : loop->out;

		if (number >= state->window && ring_wait(loop, number - state->window + 1, block))
			return -1;
		drv_head_write(message, loop->bytes, loop->seed, number);
		if (DRV_UNLIKELY(loop->bodies))
			drv_floor_write(loop, message, loop->seed, number);
		memory_copy(slot + state->payload_at, message, loop->bytes);
		memory_flag_set(slot, number + 1);
		if (block && memory_wake((uint32_t *)(void *)slot, &state->control->asleep[0]) < 0)
			return drv_floor_broke(loop, "futex");
		state->next++;
		loop->done++;
		if (DRV_UNLIKELY(loop->mode == DRV_STEP_VERIFY)) {
			if (loop->done >= loop->limit)
				break;
			continue;
		}
		if (DRV_LIKELY(number & stride_mask))
			continue;
		now = drv_clock_now(&loop->run->clock);
		if (loop->mode == DRV_STEP_WARMUP ? drv_warmup_add(&loop->warmup, now, now - last)
						  : now >= loop->end)
			break;
		last = now;
	}
	if (ring_wait(loop, state->next, block))
		return -1;
	loop->ended = drv_clock_now(&loop->run->clock);
	loop->done = state->next - first;
	return 0;
}

DRV_INLINE int give_back(struct drv_floor_loop *loop, uint64_t number, const bool block)
{
	struct floor_state *state = loop->run->state;
	uint64_t *consumed = &state->control->consumed;

	__atomic_store_n(consumed, number, __ATOMIC_RELEASE);
	if (block && memory_wake((uint32_t *)(void *)consumed, &state->control->asleep[32]) < 0)
		return drv_floor_broke(loop, "futex");
	return 0;
}

DRV_INLINE int consume(struct drv_floor_loop *loop, const bool block)
{
	struct floor_state *state = loop->run->state;
	uint64_t given = state->next;
	uint32_t idle = 0;

	for (;;) {
		const uint64_t number = state->next;
		uint8_t *slot = slot_of(state, number);
		const uint8_t *data = slot + state->payload_at;

		if (memory_flag(slot) != number + 1) {
			int status;

			if (given != number && give_back(loop, given = number, block))
				return -1;
			if (block) {
				/*
				 * what the flag is when the message is not there: that of the slot's last
				 * message
				 */
				const uint64_t old = number >= state->slots ? number + 1 - state->slots : 0;

				if (memory_sleep((uint32_t *)(void *)slot, (uint32_t)old,
						 &state->control->asleep[0]) < 0)
					return drv_floor_broke(loop, "futex");
			} else if (state->pause) {
				drv_relax();
			}
			if (!block && (++idle & 255))
				continue;
			status = drv_floor_poll_oob(loop);
			if (status)
				return status < 0 ? -1 : 0;
			continue;
		}
		idle = 0;
		loop->executions++;
		if (DRV_LIKELY(drv_head_holds(data, loop->bytes, loop->seed, number)))
			loop->checked++;
		else
			drv_floor_mismatch(loop, "a message of a stream has a wrong head");
		if (DRV_UNLIKELY(loop->bodies))
			drv_floor_read(loop, data, loop->seed, number, "a message of a stream");
		state->next++;
		if (state->next - given >= state->batch && give_back(loop, given = state->next, block))
			return -1;
	}
}

int ring_client(struct drv_floor_loop *loop)
{
	return loop->run->block ? produce(loop, true) : produce(loop, false);
}

int ring_server(struct drv_floor_loop *loop)
{
	return loop->run->block ? consume(loop, true) : consume(loop, false);
}
