/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two loops of an exchange, to be compiled once for each floor, way of waiting and variant: `send` and
 * `receive` are constants where these are called, so that nothing is asked and nothing is called inside.
 *
 *	send(loop, bytes):		loop->made_at leaves. 0; 1: asked to stop (server); -1 with loop->fail.
 *	receive(loop, &data, &bytes):	1: a message lies at data; 0: none yet (in block mode after some ms); -1.
 */
#ifndef CADGE_FLOOR_LOOP_H
#define CADGE_FLOOR_LOOP_H

#include "traffic/floor.h"
#include "measure/warmup.h"

#define FLOOR_IDLE_MASK 255u /* checks the out-of-band channel once in (mask + 1) empty receives */

typedef int (*floor_send_fn)(struct drv_floor_loop *loop, size_t bytes);
typedef int (*floor_receive_fn)(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes);

/* Records one round trip. True when the step is over. */
DRV_INLINE bool floor_ended(struct drv_floor_loop *loop, uint64_t start, uint64_t now)
{
	if (DRV_LIKELY(loop->mode == DRV_STEP_MEASURE)) {
		drv_sample(loop->samples, drv_clock_to_ns(&loop->run->clock, now - start));
		return now >= loop->end;
	}
	if (loop->mode == DRV_STEP_WARMUP)
		return drv_warmup_add(&loop->warmup, now, now - start);
	return loop->done >= loop->limit;
}

/*
 * After a loss of messages without identity: nothing more is sent until what is on its way has come in. 0 or -1.
 */
static int __attribute__((cold, noinline)) floor_quieten(struct drv_floor_loop *loop,
							 const floor_receive_fn receive)
{
	const uint64_t latest_ns = drv_now_ns() + DRV_QUIET_MAX_NS;
	uint64_t until_ns = drv_now_ns() + DRV_QUIET_NS;

	while (drv_now_ns() < until_ns && drv_now_ns() < latest_ns) {
		const uint8_t *data;
		size_t bytes;
		const int status = receive(loop, &data, &bytes);

		if (status < 0)
			return -1;
		if (status == 0)
			continue;
		if (loop->late < loop->lost)
			loop->late++;
		else
			drv_floor_mismatch(loop, "an unexpected answer of %zu bytes", bytes);
		until_ns = drv_now_ns() + DRV_QUIET_NS;
	}
	return 0;
}

/* Waits for the answer to `key`. 1: it is here; 0: lost; -1. */
DRV_INLINE int floor_await(struct drv_floor_loop *loop, uint64_t key, uint64_t start, const bool block,
			   const bool lossy, const floor_receive_fn receive)
{
	const uint8_t *data;
	uint32_t idle = 0;
	size_t bytes;
	int status;

	for (;;) {
		status = receive(loop, &data, &bytes);
		if (DRV_LIKELY(status > 0)) {
			if (DRV_LIKELY(bytes == loop->bytes &&
				       drv_head_holds(data, bytes, ~loop->seed, key))) {
				loop->checked++;
				if (DRV_UNLIKELY(loop->bodies))
					drv_floor_read(loop, data, ~loop->seed, key, "an answer");
				return 1;
			}
			if (lossy && loop->late < loop->lost) {
				loop->late++;
				continue;
			}
			drv_floor_mismatch(loop, "an answer of %zu bytes has a wrong head", bytes);
			return 1;
		}
		if (DRV_UNLIKELY(status < 0))
			return -1;
		if (block || DRV_UNLIKELY((++idle & FLOOR_IDLE_MASK) == 0)) {
			if (drv_floor_poll_oob(loop) < 0)
				return -1;
			if (lossy && drv_clock_now(&loop->run->clock) - start > loop->op_deadline)
				return 0;
		}
	}
}

DRV_INLINE int floor_client_loop(struct drv_floor_loop *loop, const bool block, const bool lossy,
				 const floor_send_fn send, const floor_receive_fn receive)
{
	const size_t bytes = loop->bytes;
	uint64_t start = drv_clock_now(&loop->run->clock), now;
	bool over = false;

	loop->started = start;
	while (!over) {
		const uint64_t number = loop->next_number++;
		const uint64_t key = drv_head_write(loop->made_at, bytes, loop->seed, number);
		int status;

		if (DRV_UNLIKELY(loop->bodies))
			drv_floor_write(loop, loop->made_at, loop->seed, number);
		if (DRV_UNLIKELY(send(loop, bytes) < 0))
			return -1;
		status = floor_await(loop, key, start, block, lossy, receive);
		if (DRV_UNLIKELY(status < 0))
			return -1;
		now = drv_clock_now(&loop->run->clock);
		if (lossy && DRV_UNLIKELY(status == 0)) {
			loop->lost++;
			if (floor_quieten(loop, receive))
				return -1;
			now = drv_clock_now(&loop->run->clock);
			over = loop->mode == DRV_STEP_MEASURE  ? now >= loop->end
			       : loop->mode == DRV_STEP_VERIFY ? loop->done >= loop->limit
							       : drv_warmup_expired(&loop->warmup, now);
		} else {
			loop->done++;
			over = floor_ended(loop, start, now);
		}
		loop->ended = now;
		start = now;
	}
	return 0;
}

DRV_INLINE int floor_server_loop(struct drv_floor_loop *loop, const bool block, const floor_send_fn send,
				 const floor_receive_fn receive)
{
	const uint8_t *data;
	uint32_t idle = 0;
	size_t bytes;
	int status;

	for (;;) {
		uint64_t key;

		status = receive(loop, &data, &bytes);
		if (DRV_UNLIKELY(status < 0))
			return -1;
		if (DRV_UNLIKELY(status == 0)) {
			if (block || DRV_UNLIKELY((++idle & FLOOR_IDLE_MASK) == 0)) {
				status = drv_floor_poll_oob(loop);
				if (status)
					return status < 0 ? -1 : 0;
			}
			continue;
		}
		idle = 0;
		key = drv_head_key(data, bytes);
		loop->executions++;
		if (DRV_LIKELY(bytes == loop->bytes &&
			       (bytes < DRV_HEAD_BYTES || drv_load64(data + 8) == loop->seed)))
			loop->checked++;
		else
			drv_floor_mismatch(loop, "a message of %zu bytes has a wrong head", bytes);
		if (DRV_UNLIKELY(loop->bodies)) {
			/* the key of a message with a body is its number */
			if (bytes == loop->bytes && (bytes < DRV_HEAD_BYTES || key >= loop->first_number))
				drv_floor_read(loop, data, loop->seed, key, "a message");
			drv_floor_write(loop, loop->made_at, ~loop->seed, key);
		}
		drv_head_write(loop->made_at, loop->bytes, ~loop->seed, key);
		status = send(loop, loop->bytes);
		if (DRV_UNLIKELY(status))
			return status < 0 ? -1 : 0;
	}
}

#endif
