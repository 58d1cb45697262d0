/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages in chunks through a ring: two copies instead of one, but both sides copy at the same time. Which of the
 * two ways is faster depends on the size: it is a setting.
 */
#include "loop.h"
#include "memory.h"

size_t chunk_region_bytes(void)
{
	return MEMORY_CHUNKS * (64 + MEMORY_CHUNK_BYTES);
}

/* Waits until the ring has room for chunk `number`. 0; 1: asked to stop (server); -1. */
DRV_INLINE int chunk_room(struct drv_floor_loop *loop, uint64_t number, const unsigned int which,
			  const bool block)
{
	struct floor_state *state = loop->run->state;
	uint64_t *taken = &state->control->taken[8 * which], current;
	uint32_t idle = 0;
	int status = 0;

	for (;;) {
		current = __atomic_load_n(taken, __ATOMIC_ACQUIRE);
		if (current + MEMORY_CHUNKS > number)
			return 0;
		if (block) {
			if (memory_sleep((uint32_t *)(void *)taken, (uint32_t)current,
					 &state->control->asleep[48 + 16 * which]) < 0)
				return drv_floor_broke(loop, "futex");
		} else if (state->pause) {
			drv_relax();
		}
		if (block || (++idle & FLOOR_IDLE_MASK) == 0)
			status = drv_floor_poll_oob(loop);
		if (status)
			return status;
	}
}

DRV_INLINE int chunk_send(struct drv_floor_loop *loop, size_t bytes, const bool client, const bool block)
{
	struct floor_state *state = loop->run->state;
	const unsigned int which = client ? 0 : 1;

	for (size_t at = 0; at < bytes; at += MEMORY_CHUNK_BYTES) {
		const uint64_t number = state->sent++;
		const size_t piece = bytes - at < MEMORY_CHUNK_BYTES ? bytes - at : MEMORY_CHUNK_BYTES;
		uint8_t *slot = memory_chunk(state, which, number);
		const int status = chunk_room(loop, number, which, block);

		if (status)
			return status;
		memcpy(slot + 64, loop->made_at + at, piece);
		memory_flag_set(slot, number + 1);
		if (block && memory_wake((uint32_t *)(void *)slot, state->wake) < 0)
			return drv_floor_broke(loop, "futex");
	}
	return 0;
}

/* Takes chunks as long as there are some. 1: the message is whole. */
DRV_INLINE int chunk_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes,
			     const bool client, const bool block)
{
	struct floor_state *state = loop->run->state;
	const unsigned int which = client ? 1 : 0;
	uint64_t *taken = &state->control->taken[8 * which];

	while (state->gathered < loop->bytes) {
		const uint64_t number = state->received;
		uint8_t *slot = memory_chunk(state, which, number);
		size_t piece = loop->bytes - state->gathered;

		if (memory_flag(slot) != number + 1) {
			const uint64_t old = number >= MEMORY_CHUNKS ? number + 1 - MEMORY_CHUNKS : 0;

			if (state->pause)
				drv_relax();
			if (block && memory_sleep((uint32_t *)(void *)slot, (uint32_t)old, state->sleep) < 0)
				return drv_floor_broke(loop, "futex");
			if (!block || memory_flag(slot) != number + 1)
				return 0;
		}
		if (piece > MEMORY_CHUNK_BYTES)
			piece = MEMORY_CHUNK_BYTES;
		memcpy(loop->in + state->gathered, slot + 64, piece);
		state->gathered += piece;
		state->received++;
		__atomic_store_n(taken, state->received, __ATOMIC_RELEASE);
		if (block &&
		    memory_wake((uint32_t *)(void *)taken, &state->control->asleep[48 + 16 * which]) < 0)
			return drv_floor_broke(loop, "futex");
	}
	state->gathered = 0;
	*data = loop->in;
	*bytes = loop->bytes;
	return 1;
}

#define LOOPS(name, block)                                                                                   \
	DRV_INLINE int name##_client_send(struct drv_floor_loop *loop, size_t bytes)                         \
	{                                                                                                    \
		return chunk_send(loop, bytes, true, block);                                                 \
	}                                                                                                    \
	DRV_INLINE int name##_client_receive(struct drv_floor_loop *loop, const uint8_t **data,              \
					     size_t *bytes)                                                  \
	{                                                                                                    \
		return chunk_receive(loop, data, bytes, true, block);                                        \
	}                                                                                                    \
	DRV_INLINE int name##_server_send(struct drv_floor_loop *loop, size_t bytes)                         \
	{                                                                                                    \
		return chunk_send(loop, bytes, false, block);                                                \
	}                                                                                                    \
	DRV_INLINE int name##_server_receive(struct drv_floor_loop *loop, const uint8_t **data,              \
					     size_t *bytes)                                                  \
	{                                                                                                    \
		return chunk_receive(loop, data, bytes, false, block);                                       \
	}                                                                                                    \
	static int name##_client(struct drv_floor_loop *loop)                                                \
	{                                                                                                    \
		return floor_client_loop(loop, block, false, name##_client_send, name##_client_receive);     \
	}                                                                                                    \
	static int name##_server(struct drv_floor_loop *loop)                                                \
	{                                                                                                    \
		return floor_server_loop(loop, block, name##_server_send, name##_server_receive);            \
	}
LOOPS(spin, false)
LOOPS(futex, true)

int chunk_client(struct drv_floor_loop *loop)
{
	return loop->run->block ? futex_client(loop) : spin_client(loop);
}

int chunk_server(struct drv_floor_loop *loop)
{
	return loop->run->block ? futex_server(loop) : spin_server(loop);
}
