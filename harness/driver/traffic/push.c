/* SPDX-License-Identifier: BSD-3-Clause */
/* The roles of patterns that push messages, on top of sender and receiver. */
#include "traffic/push.h"

#include "traffic/progress.h"

void drv_push_need(uint64_t bytes, uint64_t depth, struct drv_needs *needs_out)
{
	needs_out->message_bytes = bytes < DRV_CONTROL_BYTES ? DRV_CONTROL_BYTES : bytes;
	needs_out->depth = (uint32_t)depth;
}

int drv_push_negotiate(uint64_t bytes, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_negotiate_message(bytes, "message", &offer->both, fail) ||
			       drv_negotiate_message(DRV_CONTROL_BYTES, "closing message", &offer->both, fail)
		       ? -1
		       : 0;
}

/* Both sides on one context: a sink that tells each event whose it is. */
static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_pusher *pusher = (struct drv_pusher *)sink;
	struct drv_control word;

	if (drv_control_read(data, bytes, pusher->sender.push.bytes, &word) &&
	    word.kind >= DRV_CONTROL_TO_SENDER)
		return pusher->sender.port.sink.recv(&pusher->sender.port.sink, peer, data, bytes, lend);
	return drv_receiver_on_recv(&pusher->receiver.port.sink, peer, data, bytes, lend);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_pusher *pusher = (struct drv_pusher *)sink;

	if (token & DRV_TOKEN_RECEIVER)
		drv_receiver_on_sent(&pusher->receiver.port.sink, peer, token, code);
	else
		pusher->sender.port.sink.sent(&pusher->sender.port.sink, peer, token, code);
}

int drv_pusher_prepare(struct drv_play *play, struct drv_push push, bool sends, bool receives,
		       struct drv_samples *windows, struct drv_fail *fail)
{
	struct drv_pusher *pusher = play->state;
	struct drv_receiver *receiver = receives ? &pusher->receiver : NULL;

	pusher->sends = sends;
	pusher->receives = receives;
	if (receiver && drv_receiver_start(receiver, play->engine, push, fail))
		return -1;
	if (sends && drv_sender_start(&pusher->sender, play->engine, push, windows, receiver, fail))
		return -1;
	play->engine->sink = sends ? pusher->sender.sink : &receiver->port.sink;
	if (!sends || !receives)
		return 0;
	drv_port_start(&pusher->port, play->engine);
	pusher->port.sink.recv = on_recv;
	pusher->port.sink.sent = on_sent;
	pusher->sender.sink = play->engine->sink = &pusher->port.sink;
	return 0;
}

void drv_pusher_stop(struct drv_play *play)
{
	drv_sender_stop(&((struct drv_pusher *)play->state)->sender);
}

int drv_pusher_verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	return drv_sender_verify(&((struct drv_pusher *)play->state)->sender, serial, fail);
}

int drv_pusher_warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_sender *sender = &((struct drv_pusher *)play->state)->sender;
	const int status = drv_sender_warmup(sender, cap_ns, fail);

	drv_record_warmup(play->record, &sender->warmup);
	return status;
}

bool drv_pusher_settle(struct drv_play *play)
{
	struct drv_pusher *pusher = play->state;

	return !pusher->sends || drv_sender_settle(&pusher->sender);
}

DRV_INLINE bool due(void *arg)
{
	return drv_receiver_due(&((const struct drv_pusher *)arg)->receiver);
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	struct drv_receiver *receiver = &((struct drv_pusher *)arg)->receiver;

	if (!drv_receiver_drain(receiver))
		return 0;
	*fail = receiver->fail;
	return -1;
}

int drv_pusher_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	/* who only sends has nothing due, ever */
	return drv_serve_loop(play->engine, play->engine->sink, play->state, due, drain, message_out, fail);
}

void drv_pusher_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct drv_pusher *pusher = play->state;

	if (pusher->sends)
		drv_sender_counts(&pusher->sender, counts_out);
	if (!pusher->receives)
		return;
	drv_check_executed(&pusher->receiver.check, counts_out);
	drv_receiver_phase(&pusher->receiver, phase->full, phase->serial);
}
