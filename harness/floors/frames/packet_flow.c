/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams of packets. The receiver reports how far it is, every half window, so that nothing overflows its buffer; the last
 * message of a step asks for a report, which confirms all. Where a report is overdue it is asked for again, and what was
 * not whole by then is lost.
 */
#include "packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "loop.h"

/* on its way at most, if that is two messages; and what the kernel keeps with each packet */
#define WINDOW_BYTES   (UINT64_C(512) << 10)
#define OVERHEAD_BYTES 1024u

/* times what was asked for, at most, go out before a verified step gives up on a bad link */
#define VERIFY_TRIES 16u

static uint32_t window_of(const struct drv_floor_loop *loop)
{
	const uint64_t room = loop->run->state->receive_buffer_bytes / 4,
		       messages =
			       (room < WINDOW_BYTES ? room : WINDOW_BYTES) / (loop->bytes + OVERHEAD_BYTES);

	return messages < 2 ? 2 : (uint32_t)messages;
}

/* A packet without payload: a question (client), or a report. */
static int send_report(struct drv_floor_loop *loop, uint32_t number, uint32_t whole)
{
	struct packet_head head;

	packet_wire_head(loop->run->state, &head, number, whole, 0, TH_FIN);
	return packet_leave(loop, &head, 0);
}

/* Takes a report, if one is there. 1; 0; -1. */
static int take_report(struct drv_floor_loop *loop, const int flags)
{
	struct floor_state *state = loop->run->state;
	struct packet_head head;
	const ssize_t received = recv(state->fd, &head, sizeof(head), flags);
	uint32_t number;

	if (received < 0)
		return errno == EAGAIN || errno == EINTR ? 0
							 : drv_floor_broke(loop, "recv on a packet socket");
	if (packet_wire_payload(&state->gather, &head, (size_t)received) != 0)
		return 0;
	number = ntohl(head.tcp.th_ack);
	if ((int32_t)(number - state->reported) <= 0)
		return 0;
	state->reported = number;
	state->whole = ntohl(head.tcp.th_seq);
	return 1;
}

/* The client waits until no more than `most` messages are on their way. 0 or -1. */
DRV_INLINE int await_report(struct drv_floor_loop *loop, uint32_t most, const bool block)
{
	struct floor_state *state = loop->run->state;
	uint64_t since = drv_clock_now(&loop->run->clock);
	uint32_t idle = 0;

	while (DRV_UNLIKELY(state->sent - state->reported > most)) {
		const int received = take_report(loop, block ? 0 : MSG_DONTWAIT);

		if (received < 0)
			return -1;
		if (received) {
			since = drv_clock_now(&loop->run->clock);
			continue;
		}
		if (!block && DRV_LIKELY(++idle & FLOOR_IDLE_MASK))
			continue;
		if (drv_floor_poll_oob(loop) < 0)
			return -1;
		if (drv_clock_now(&loop->run->clock) - since <= loop->op_deadline)
			continue;
		if (send_report(loop, state->sent, 0) < 0)
			return -1;
		since = drv_clock_now(&loop->run->clock);
	}
	return 0;
}

/* A step that verifies is over when enough came in whole: on a bad link all of so few may be lost. */
static bool verified(const struct drv_floor_loop *loop, uint32_t whole)
{
	return whole >= loop->limit || loop->done >= VERIFY_TRIES * loop->limit;
}

DRV_INLINE int produce(struct drv_floor_loop *loop, const bool block)
{
	struct floor_state *state = loop->run->state;
	const uint32_t window = window_of(loop), first = state->sent, whole = state->whole;
	uint64_t last = drv_clock_now(&loop->run->clock), now;
	bool over = false;

	loop->started = last;
	while (!over) {
		if (await_report(loop, window - 1, block))
			return -1;
		drv_head_write(loop->made_at, loop->bytes, loop->seed, state->sent);
		if (DRV_UNLIKELY(loop->bodies))
			drv_floor_write(loop, loop->made_at, loop->seed, state->sent);
		now = drv_clock_now(&loop->run->clock);
		loop->done++;
		if (loop->mode == DRV_STEP_VERIFY)
			over = loop->done >= loop->limit;
		else if (loop->mode == DRV_STEP_WARMUP)
			over = loop->done > 1 && drv_warmup_add(&loop->warmup, now, now - last);
		else
			over = now >= loop->end;
		last = now;
		if (packet_send(loop, over ? TH_FIN : 0) < 0 || (over && await_report(loop, 0, block)))
			return -1;
		if (loop->mode == DRV_STEP_VERIFY)
			over = over && verified(loop, state->whole - whole);
	}
	loop->ended = drv_clock_now(&loop->run->clock);
	loop->done = state->whole - whole;
	loop->lost += state->sent - first - loop->done;
	return 0;
}

DRV_INLINE int consume(struct drv_floor_loop *loop, const bool block)
{
	struct floor_state *state = loop->run->state;
	const uint32_t every = window_of(loop) / 2;
	const uint8_t *data;
	uint32_t idle = 0;
	size_t bytes;
	int status;

	for (;;) {
		status = packet_receive(loop, &data, &bytes, block ? 0 : MSG_DONTWAIT);
		if (DRV_UNLIKELY(status < 0))
			return -1;
		if (status > 0) {
			const uint32_t number = state->gather.number - 1;

			idle = 0;
			loop->executions++;
			loop->phase_executions++;
			if (DRV_LIKELY(bytes == loop->bytes &&
				       drv_head_holds(data, bytes, loop->seed, number)))
				loop->checked++;
			else
				drv_floor_mismatch(
					loop, "a message of a stream of %zu bytes has a wrong head", bytes);
			if (DRV_UNLIKELY(loop->bodies) && bytes == loop->bytes)
				drv_floor_read(loop, data, loop->seed, number, "a message of a stream");
		}
		if (state->gather.number - state->last_reported >= every ||
		    DRV_UNLIKELY(state->gather.asked)) {
			state->last_reported = state->gather.number;
			state->gather.asked = false;
			status = send_report(loop, state->last_reported, (uint32_t)loop->executions);
			if (status)
				return status < 0 ? -1 : 0;
			continue;
		}
		if (status || !(block || DRV_UNLIKELY((++idle & FLOOR_IDLE_MASK) == 0)))
			continue;
		status = drv_floor_poll_oob(loop);
		if (status)
			return status < 0 ? -1 : 0;
	}
}

int packet_flow_client(struct drv_floor_loop *loop)
{
	return loop->run->block ? produce(loop, true) : produce(loop, false);
}

int packet_flow_server(struct drv_floor_loop *loop)
{
	return loop->run->block ? consume(loop, true) : consume(loop, false);
}
