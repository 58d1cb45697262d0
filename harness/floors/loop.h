/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two loops of an exchange, to be compiled once for each floor, way of waiting and variant: `send` and
 * `receive` are constants where these are called, so that nothing is asked and nothing is called inside.
 *
 *	send(loop, bytes):		loop->out leaves. 0, or -1 with loop->fail.
 *	receive(loop, &data, &bytes):	1: a message lies at data; 0: none yet (in block mode after some ms);
 * -1.
 */
#ifndef CADGE_FLOOR_LOOP_H
#define CADGE_FLOOR_LOOP_H

#include "floor.h"

#define FLOOR_IDLE_MASK 255u /* looks around once in so many empty receives */

typedef int (*floor_send_fn)(struct floor_loop *loop, size_t bytes);
typedef int (*floor_receive_fn)(struct floor_loop *loop, const uint8_t **data, size_t *bytes);

/* Records one round trip. True when the phase is over. */
FLOOR_INLINE bool floor_ended(struct floor_loop *loop, uint64_t start, uint64_t now)
{
	if (FLOOR_LIKELY(loop->mode == FLOOR_MEASURE)) {
		const uint64_t span_ns = drv_clock_to_ns(&loop->run->clock, now - start);
		struct drv_attempt *attempt = loop->attempt;

		drv_histogram_record(attempt->histogram, span_ns);
		if (FLOOR_UNLIKELY(attempt->first_count < DRV_FIRST_MAX))
			attempt->first_ns[attempt->first_count++] = span_ns;
		return now >= loop->end;
	}
	if (loop->mode == FLOOR_WARMUP)
		return floor_warmup_done(loop, now, now - start);
	return loop->done >= loop->limit;
}

/* Waits for the answer to `key`. 1: it is here; 0: lost; -1. */
FLOOR_INLINE int floor_await(struct floor_loop *loop, uint64_t key, uint64_t start, const bool block,
			     const bool lossy, const floor_receive_fn receive)
{
	const uint8_t *data;
	uint32_t idle = 0;
	size_t bytes;
	int status;

	for (;;) {
		status = receive(loop, &data, &bytes);
		if (FLOOR_LIKELY(status > 0)) {
			if (FLOOR_LIKELY(bytes == loop->bytes &&
					 drv_head_holds(data, bytes, ~loop->seed, key))) {
				loop->checked++;
				if (FLOOR_UNLIKELY(loop->mode == FLOOR_VERIFY)) {
					loop->full_checked++;
					if (!drv_body_holds(data, bytes, ~loop->seed, loop->phase, key))
						floor_mismatch(loop, "client: an answer has a wrong body");
				}
				return 1;
			}
			if (lossy && loop->late < loop->lost) {
				loop->late++;
				continue;
			}
			floor_mismatch(loop, "client: an answer of %zu bytes has a wrong head", bytes);
			return 1;
		}
		if (FLOOR_UNLIKELY(status < 0))
			return -1;
		if (block || FLOOR_UNLIKELY((++idle & FLOOR_IDLE_MASK) == 0)) {
			if (floor_look(loop) < 0)
				return -1;
			if (lossy && drv_clock_now(&loop->run->clock) - start > loop->op_deadline)
				return 0;
		}
	}
}

FLOOR_INLINE int floor_client_loop(struct floor_loop *loop, const bool block, const bool lossy,
				   const floor_send_fn send, const floor_receive_fn receive)
{
	const size_t bytes = loop->bytes;
	uint64_t start = drv_clock_now(&loop->run->clock), now;
	bool over = false;

	loop->started = start;
	while (!over) {
		const uint64_t number = loop->next_number++;
		const uint64_t key = drv_head_write(loop->out, bytes, loop->seed, number);
		int status;

		if (FLOOR_UNLIKELY(loop->mode == FLOOR_VERIFY))
			drv_body_fill(loop->out, bytes, loop->seed, loop->phase, number);
		if (FLOOR_UNLIKELY(send(loop, bytes) < 0))
			return -1;
		status = floor_await(loop, key, start, block, lossy, receive);
		if (FLOOR_UNLIKELY(status < 0))
			return -1;
		now = drv_clock_now(&loop->run->clock);
		if (lossy && FLOOR_UNLIKELY(status == 0)) {
			loop->lost++;
			over = loop->mode == FLOOR_MEASURE  ? now >= loop->end
			       : loop->mode == FLOOR_VERIFY ? loop->done >= loop->limit
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

FLOOR_INLINE int floor_server_loop(struct floor_loop *loop, const bool block, const floor_send_fn send,
				   const floor_receive_fn receive)
{
	const uint8_t *data;
	uint32_t idle = 0;
	size_t bytes;
	int status;

	for (;;) {
		uint64_t key;

		status = receive(loop, &data, &bytes);
		if (FLOOR_UNLIKELY(status < 0))
			return -1;
		if (FLOOR_UNLIKELY(status == 0)) {
			if (block || FLOOR_UNLIKELY((++idle & FLOOR_IDLE_MASK) == 0)) {
				status = floor_look(loop);
				if (status)
					return status < 0 ? -1 : 0;
			}
			continue;
		}
		key = drv_head_key(data, bytes);
		loop->executions++;
		if (FLOOR_LIKELY(bytes == loop->bytes &&
				 (bytes < DRV_HEAD_BYTES || drv_load64(data + 8) == loop->seed)))
			loop->checked++;
		else
			floor_mismatch(loop, "server: a message of %zu bytes has a wrong head", bytes);
		drv_head_write(loop->out, loop->bytes, ~loop->seed, key);
		if (FLOOR_UNLIKELY(loop->mode == FLOOR_VERIFY)) {
			loop->full_checked++;
			if (!drv_body_holds(data, bytes, loop->seed, loop->phase, key))
				floor_mismatch(loop, "server: a message has a wrong body");
			drv_body_fill(loop->out, loop->bytes, ~loop->seed, loop->phase, key);
		}
		if (FLOOR_UNLIKELY(send(loop, loop->bytes) < 0))
			return -1;
	}
}

#endif
