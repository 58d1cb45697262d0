/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS   UINT64_C(10000000)
#define SETTLE_NS UINT64_C(500000000)
#define REPEAT_NS UINT64_C(500000) /* unreliable: the end message again */

enum stop { STOP_COUNT, STOP_WARM, STOP_TIME };

static void __attribute__((cold, noinline)) note_failure(struct drv_stream *stream, int code)
{
	if (!stream->failed)
		drv_engine_fail("post", code, &stream->fail);
	stream->failed = true;
}

enum cadge_keep drv_stream_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend)
{
	struct drv_stream *stream = (struct drv_stream *)sink;
	const uint8_t *at = data;

	(void)peer, (void)lend;
	if (bytes != drv_control_bytes(stream->point->request_bytes) || drv_load64(at) != DRV_STREAM_MAGIC ||
	    (drv_load64(at + 8) & 0xff) != DRV_STREAM_CONFIRM) {
		if (!stream->mismatches++)
			snprintf(stream->mismatch, sizeof(stream->mismatch),
				 "client: a message of %zu bytes that confirms nothing", bytes);
	} else if (drv_load64(at + 8) >> 8 == stream->run && !stream->confirmed) {
		stream->confirmed = true;
		stream->confirmed_count = drv_load64(at + 16);
		stream->confirmed_at = drv_clock_now(&stream->port.engine->clock);
	}
	return CADGE_TAKEN;
}

void drv_stream_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_stream *stream = (struct drv_stream *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token > stream->point->depth || !stream->lent[token])) {
		if (!stream->mismatches++)
			snprintf(stream->mismatch, sizeof(stream->mismatch),
				 "client: a completion for token %" PRIu64 " that is not outstanding", token);
		return;
	}
	stream->lent[token] = false;
	stream->lents--;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		note_failure(stream, code);
}

/* Polls once; now and then looks around. Where nothing can go on without an event it may sleep, in block
 * mode. */
DRV_INLINE int turn(struct drv_stream *stream, const bool may_sleep, struct drv_fail *fail)
{
	struct drv_engine *engine = stream->port.engine;
	const int events = engine->layer->poll(engine->ctx, stream->sink);

	if (DRV_UNLIKELY(stream->server != NULL) && drv_server_drain(stream->server)) {
		*fail = stream->server->fail;
		return -1;
	}
	if (DRV_UNLIKELY(stream->failed)) {
		*fail = stream->fail;
		return -1;
	}
	if (DRV_UNLIKELY(events < 0))
		return drv_engine_fail("poll", events, fail);
	if (may_sleep && engine->block && events == 0) {
		stream->waits++;
		if (drv_engine_wait(engine, stream->reliable ? WAIT_NS : REPEAT_NS, fail))
			return -1;
	} else if (DRV_LIKELY(++stream->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* Sends the next message, waiting for its slot and for the layer. */
DRV_INLINE int send_one(struct drv_stream *stream, const bool full, uint64_t phase, struct drv_fail *fail)
{
	struct drv_engine *engine = stream->port.engine;
	const size_t bytes = (size_t)stream->point->request_bytes;
	const uint32_t slot = stream->slot;
	uint8_t *payload = stream->messages + slot * stream->stride;
	struct cadge_iov iov = {.base = payload, .bytes = bytes};
	uint64_t key;

	while (DRV_UNLIKELY(stream->lent[slot]))
		if (turn(stream, true, fail))
			return -1;
	key = drv_head_write(payload, bytes, stream->seed, stream->next_number);
	if (full)
		drv_body_fill(payload, bytes, stream->seed, phase, key);
	for (;;) {
		const int code = engine->layer->post(engine->chan, &iov, 1, 0, slot);

		if (DRV_LIKELY(code == CADGE_DONE || code == CADGE_QUEUED)) {
			stream->lent[slot] = code == CADGE_QUEUED;
			stream->lents += code == CADGE_QUEUED;
			break;
		}
		if (DRV_UNLIKELY(code != CADGE_BUSY))
			return drv_engine_fail("post", code, fail);
		if (turn(stream, true, fail))
			return -1;
	}
	stream->next_number++;
	stream->posted++;
	stream->run_posted++;
	stream->key_sum += key;
	stream->slot = DRV_UNLIKELY(slot + 1 == stream->point->depth) ? 0 : slot + 1;
	return 0;
}

/* Says how many there were and waits until the receiver confirms. */
static int finish(struct drv_stream *stream, struct drv_fail *fail)
{
	struct drv_engine *engine = stream->port.engine;
	const uint64_t repeat = drv_clock_to_ticks(&engine->clock, REPEAT_NS);
	const uint32_t slot = stream->point->depth;
	struct cadge_iov iov = {.base = stream->control,
				.bytes = drv_control_bytes(stream->point->request_bytes)};
	uint64_t sent_at = 0;
	bool sent = false;

	drv_store64(stream->control, DRV_STREAM_MAGIC);
	drv_store64(stream->control + 8, (uint64_t)stream->run << 8 | DRV_STREAM_END);
	drv_store64(stream->control + 16, stream->run_posted);
	while (!stream->confirmed || stream->lents > 0) {
		const uint64_t now = drv_clock_now(&engine->clock);

		if (!stream->confirmed && !stream->lent[slot] &&
		    (!sent || (!stream->reliable && now - sent_at >= repeat))) {
			const int code = engine->layer->post(engine->chan, &iov, 1, 0, slot);

			if (code < 0)
				return drv_engine_fail("post", code, fail);
			if (code != CADGE_BUSY) {
				sent = true;
				sent_at = now;
				stream->lent[slot] = code == CADGE_QUEUED;
				stream->lents += code == CADGE_QUEUED;
			}
		}
		if (turn(stream, true, fail))
			return -1;
	}
	return 0;
}

static int run(struct drv_stream *stream, enum stop stop, uint64_t bound, uint64_t phase,
	       struct drv_fail *fail)
{
	struct drv_engine *engine = stream->port.engine;
	/* the clock is read every 32 small messages: reading it costs a part of one */
	const uint64_t stride_mask = stream->point->request_bytes >= 4096 ? 0 : 31;
	uint64_t last = drv_clock_now(&engine->clock);

	stream->run++;
	stream->run_posted = 0;
	stream->confirmed = false;
	for (;;) {
		uint64_t now;

		if (send_one(stream, stop == STOP_COUNT, phase, fail))
			return -1;
		if (stop == STOP_COUNT) {
			if (stream->run_posted >= bound)
				break;
			continue;
		}
		if (DRV_LIKELY(stream->run_posted & stride_mask))
			continue;
		now = drv_clock_now(&engine->clock);
		if (stop == STOP_WARM ? drv_warmup_add(&stream->warmup, now, now - last) : now >= bound)
			break;
		last = now;
		/* an adapter that takes everything is never asked for events otherwise */
		if (turn(stream, false, fail))
			return -1;
	}
	return finish(stream, fail);
}

int drv_stream_verify(struct drv_stream *stream, uint64_t phase, struct drv_fail *fail)
{
	return run(stream, STOP_COUNT, drv_full_messages(stream->point), phase, fail);
}

int drv_stream_warmup(struct drv_stream *stream, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_engine *engine = stream->port.engine;

	drv_warmup_start(&stream->warmup, drv_clock_now(&engine->clock),
			 drv_clock_to_ticks(&engine->clock, 100000),
			 drv_clock_to_ticks(&engine->clock, cap_ns));
	return run(stream, STOP_WARM, 0, 0, fail);
}

int drv_stream_measure(struct drv_stream *stream, struct drv_attempt *attempt, struct drv_fail *fail)
{
	struct drv_engine *engine = stream->port.engine;
	const uint64_t started = drv_clock_now(&engine->clock);
	const uint64_t end = started + drv_clock_to_ticks(&engine->clock, stream->point->duration_ns);

	if (run(stream, STOP_TIME, end, 0, fail))
		return -1;
	attempt->elapsed_ns = drv_clock_to_ns(&engine->clock, stream->confirmed_at - started);
	attempt->operations = stream->confirmed_count;
	attempt->bytes = stream->confirmed_count * stream->point->request_bytes;
	attempt->lost = stream->run_posted - stream->confirmed_count;
	return 0;
}

bool drv_stream_settle(struct drv_stream *stream)
{
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	struct drv_engine *engine = stream->port.engine;

	while (stream->lents > 0 && !engine->down_code && drv_now_ns() < until_ns) {
		if (engine->layer->poll(engine->ctx, stream->sink) < 0)
			return false;
		if (stream->server && drv_server_drain(stream->server))
			return false;
	}
	/* messages of an unfinished run may still be under way: a reliable channel is not clean then */
	return stream->lents == 0 && (stream->confirmed || !stream->reliable);
}

int drv_stream_start(struct drv_stream *stream, struct drv_engine *engine, const struct drv_point *point,
		     uint64_t seed, struct drv_server *server, struct drv_fail *fail)
{
	memset(stream, 0, sizeof(*stream));
	drv_port_start(&stream->port, engine);
	stream->port.sink.recv = drv_stream_on_recv;
	stream->port.sink.sent = drv_stream_on_sent;
	stream->sink = &stream->port.sink;
	stream->point = point;
	stream->seed = seed;
	stream->server = server;
	stream->reliable = (engine->both.caps & CADGE_CAP_RELIABLE) != 0;
	stream->stride = drv_memory_stride(point->request_bytes);
	stream->lent = calloc(point->depth + 1, sizeof(*stream->lent));
	if (!stream->lent)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the stream's slots");
	stream->memory =
		drv_pool_take(engine, DRV_POOL_CLIENT,
			      point->depth * stream->stride + drv_memory_stride(DRV_CONTROL_BYTES), fail);
	if (!stream->memory) {
		drv_stream_stop(stream);
		return -1;
	}
	stream->messages = stream->memory + drv_memory_lead(point->request_bytes);
	stream->control = stream->memory + point->depth * stream->stride + drv_memory_lead(DRV_CONTROL_BYTES);
	return 0;
}

void drv_stream_stop(struct drv_stream *stream)
{
	free(stream->lent);
	stream->lent = NULL;
}
