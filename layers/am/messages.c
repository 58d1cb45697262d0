/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: a short one is a medium request, a long one is placed in a stretch of the peer's segment. */
#include "am/adapter.h"

static void on_message(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		       size_t bytes)
{
	struct cadge_ctx *ctx = am_user(token);
	const uint32_t peer = am_source(token);

	ctx->events++;
	ctx->sink->recv(ctx->sink, peer, cadge_style_received(ctx->received, payload, bytes), bytes, NULL);
	if (count)
		am_reply(token, FREED, &(struct am_words){.count = 1, .word = {words[0]}}, NULL, 0);
}

static void on_freed(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		     size_t bytes)
{
	struct cadge_ctx *ctx = am_user(token);

	(void)payload, (void)bytes;
	if (count)
		am_places_give(&ctx->chans[am_source(token)].there, words[0]);
}

static void on_returned(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			size_t bytes)
{
	struct cadge_ctx *ctx = am_user(token);
	struct cadge_chan *chan = &ctx->chans[am_source(token)];

	(void)payload, (void)bytes;
	if (am_returned_handler(token) == CALL) {
		am_call_returned(chan, words, count);
		return;
	}
	chan->state.broken = true; /* a message that was accepted did not arrive */
	ctx->events += cadge_report_down(&chan->state, ctx->sink, chan->peer);
}

static int post_long(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, size_t bytes,
		     uint64_t token)
{
	struct am_words words = {.count = 1};
	uint64_t offset_bytes;
	int place = am_places_take(&chan->there, bytes, &offset_bytes);
	int code;

	if (place < 0)
		return CADGE_BUSY;
	words.word[0] = (uint32_t)place;
	code = am_request_xfer(chan->ctx->endpoint, chan->peer, MESSAGE, &words, iov, count,
			       chan->there_at + offset_bytes, token);
	if (code != CADGE_DONE && code != CADGE_QUEUED)
		am_places_give(&chan->there, (uint32_t)place);
	return code;
}

int cadge_slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const size_t bytes = cadge_iov_bytes(iov, count);
	const int code = cadge_style_may_post(&chan->state, count, bytes, ctx->asked.message_bytes_max);

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	if (bytes > am_medium_bytes_max(ctx->am, 0))
		return post_long(chan, iov, count, bytes, token);
	return am_request(ctx->endpoint, chan->peer, MESSAGE, NULL, iov, count);
}

void am_messages_register(struct am_endpoint *endpoint)
{
	am_set_handler(endpoint, AM_RETURNED, on_returned);
	am_set_handler(endpoint, MESSAGE, on_message);
	am_set_handler(endpoint, FREED, on_freed);
}
