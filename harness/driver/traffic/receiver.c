/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking in what is pushed, and the words about it. */
#include "traffic/receiver.h"

#include <inttypes.h>
#include <string.h>

static void tell(struct drv_receiver *receiver, enum drv_control_kind kind, uint64_t number)
{
	receiver->word = (struct drv_control){.kind = kind, .run = receiver->run, .number = number};
	receiver->word_due = true;
}

int drv_receiver_drain(struct drv_receiver *receiver)
{
	const struct drv_engine *engine = receiver->port.engine;
	struct cadge_iov iov = {.bytes = drv_control_bytes(receiver->push.bytes)};
	uint32_t index = 0;
	int code;

	if (DRV_LIKELY(!receiver->word_due))
		return receiver->failed ? -1 : 0;
	while (index < DRV_RECEIVER_BUFFERS && receiver->lent[index])
		index++;
	if (index == DRV_RECEIVER_BUFFERS)
		return 0;
	iov.base = receiver->controls + index * receiver->stride;
	drv_control_write(iov.base, receiver->word);
	code = engine->layer->post(receiver->chan, &iov, 1, 0, DRV_TOKEN_RECEIVER | index);
	if (code == CADGE_BUSY)
		return 0;
	receiver->word_due = false;
	receiver->lent[index] = code == CADGE_QUEUED;
	if (code < 0 && !receiver->failed) {
		receiver->failed = true;
		drv_engine_fail("post", code, &receiver->fail);
	}
	return receiver->failed ? -1 : 0;
}

/* A word of the sender's. */
static void __attribute__((noinline)) take_word(struct drv_receiver *receiver, const void *data, size_t bytes)
{
	struct drv_control word;

	if (!drv_control_read(data, bytes, receiver->push.bytes, &word) ||
	    (word.kind != DRV_CONTROL_END && word.kind != DRV_CONTROL_ASK)) {
		drv_check_wrong(&receiver->check, "a message of %zu bytes among those of %" PRIu64, bytes,
				receiver->push.bytes);
		return;
	}
	if (word.run != receiver->run)
		return; /* repeated over an unreliable layer, and late */
	if (word.kind == DRV_CONTROL_END) {
		receiver->run_expected = word.number;
		return;
	}
	/* what did not come by now is lost, or counts for the next window */
	receiver->window_at = receiver->run_executions + receiver->push.window;
	tell(receiver, DRV_CONTROL_ANSWER, word.number);
}

enum cadge_keep drv_receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				     struct cadge_lend *lend)
{
	struct drv_receiver *receiver = (struct drv_receiver *)sink;

	(void)peer, (void)lend;
	if (DRV_LIKELY(bytes == receiver->push.bytes)) {
		drv_check_take(&receiver->check, data, bytes);
		if (DRV_UNLIKELY(++receiver->run_executions == receiver->window_at)) {
			receiver->window_at += receiver->push.window;
			tell(receiver, DRV_CONTROL_ACKNOWLEDGE, receiver->run_executions);
		}
	} else {
		take_word(receiver, data, bytes);
	}
	if (DRV_UNLIKELY(receiver->run_expected != UINT64_MAX) &&
	    (!receiver->check.reliable || receiver->run_executions >= receiver->run_expected)) {
		tell(receiver, DRV_CONTROL_CONFIRM, receiver->run_executions);
		if (!receiver->check.reliable)
			receiver->run_expected = UINT64_MAX; /* once for each end message */
	}
	return CADGE_TAKEN;
}

void drv_receiver_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_receiver *receiver = (struct drv_receiver *)sink;
	const uint64_t index = token & ~DRV_TOKEN_RECEIVER;

	(void)peer;
	if (DRV_UNLIKELY(!(token & DRV_TOKEN_RECEIVER) || index >= DRV_RECEIVER_BUFFERS ||
			 !receiver->lent[index])) {
		drv_check_wrong(&receiver->check,
				"a completion for token %016" PRIx64 " that is not outstanding", token);
		return;
	}
	receiver->lent[index] = false;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !receiver->failed) {
		receiver->failed = true;
		drv_engine_fail("post", code, &receiver->fail);
	}
}

void drv_receiver_phase(struct drv_receiver *receiver, bool full, uint64_t phase)
{
	drv_check_phase(&receiver->check, full, phase);
	receiver->run++;
	receiver->run_executions = 0;
	receiver->window_at = receiver->push.window ? receiver->push.window : UINT64_MAX;
	receiver->run_expected = UINT64_MAX;
	receiver->word_due = false;
}

int drv_receiver_start(struct drv_receiver *receiver, struct drv_engine *engine, struct drv_push push,
		       struct drv_fail *fail)
{
	const uint64_t caps = engine->offer.both.caps;

	memset(receiver, 0, sizeof(*receiver));
	drv_port_start(&receiver->port, engine);
	receiver->port.sink.recv = drv_receiver_on_recv;
	receiver->port.sink.sent = drv_receiver_on_sent;
	receiver->chan = engine->channels[0].chan;
	receiver->push = push;
	receiver->check.seed = push.seed;
	receiver->check.reliable = (caps & CADGE_CAP_RELIABLE) != 0;
	receiver->check.by_number = (caps & CADGE_CAP_ORDERED) && !push.same;
	receiver->check.touch = push.touch;
	receiver->stride = drv_memory_stride(DRV_CONTROL_BYTES);
	receiver->controls =
		drv_pool_take(engine, DRV_POOL_SERVER, DRV_RECEIVER_BUFFERS * receiver->stride, fail);
	if (!receiver->controls)
		return -1;
	drv_receiver_phase(receiver, true, 1);
	return 0;
}
