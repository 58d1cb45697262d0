/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: a request, and the reply of its handler. */
#include "am/adapter.h"

/* ---- the caller ---- */

static struct call *take_call(struct cadge_chan *chan)
{
	for (uint32_t i = 0; i < OUTSTANDING; i++)
		if (!chan->call[i].used)
			return &chan->call[i];
	return NULL;
}

static uint32_t number_of(const struct cadge_chan *chan, const struct call *call)
{
	return (uint32_t)(call - chan->call);
}

/* Sets a place aside for a result that does not fit into a packet. Its offset in lines; false: no room now. */
static bool take_room(struct cadge_chan *chan, struct call *call, uint64_t bytes, uint32_t *lines_out)
{
	uint64_t offset_bytes;

	call->place = am_places_take(&chan->here, bytes, &offset_bytes);
	if (call->place < 0)
		return false;
	*lines_out = (uint32_t)((chan->here_at + offset_bytes) / AM_PLACES_LINE);
	return true;
}

static void give_room(struct cadge_chan *chan, struct call *call)
{
	if (call->place >= 0)
		am_places_give(&chan->here, (uint32_t)call->place);
	call->place = -1;
}

static int request_long(struct cadge_chan *chan, struct am_words *words, const struct cadge_iov *iov,
			uint32_t count, size_t bytes)
{
	uint64_t offset_bytes;
	int place = am_places_take(&chan->there, bytes, &offset_bytes);
	int code;

	if (place < 0)
		return CADGE_BUSY;
	words->word[words->count++] = (uint32_t)place;
	code = am_request_xfer(chan->ctx->endpoint, chan->peer, CALL, words, iov, count,
			       chan->there_at + offset_bytes, 0);
	if (code < 0 || code == CADGE_BUSY)
		am_places_give(&chan->there, (uint32_t)place);
	return code;
}

int cadge_slot_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
		    const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const size_t bytes = cadge_iov_bytes(in_iov, in_count), room = cadge_iov_bytes(out_iov, out_count);
	struct am_words words = {.count = 4, .word = {op, 0, 0, 0}};
	int code = cadge_style_may_post(&chan->state, in_count, bytes, ctx->asked.message_bytes_max);
	struct call *call;

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	if (room > ctx->asked.message_bytes_max)
		return CADGE_E_TOO_LARGE;
	call = take_call(chan);
	if (!call)
		return CADGE_BUSY;
	*call = (struct call){.token = token, .place = -1};
	words.word[1] = number_of(chan, call);
	if (room > am_medium_bytes_max(ctx->am, AM_WORDS_MAX)) {
		if (!take_room(chan, call, room, &words.word[2]))
			return CADGE_BUSY;
		words.word[3] = (uint32_t)room;
	}
	if (bytes > am_medium_bytes_max(ctx->am, 4))
		code = request_long(chan, &words, in_iov, in_count, bytes);
	else
		code = am_request(ctx->endpoint, chan->peer, CALL, &words, in_iov, in_count);
	if (code != CADGE_DONE && code != CADGE_QUEUED) {
		give_room(chan, call);
		return code;
	}
	call->used = true;
	return CADGE_QUEUED;
}

static void end_call(struct cadge_chan *chan, struct call *call, int code, const void *data, size_t bytes)
{
	struct cadge_ctx *ctx = chan->ctx;

	ctx->events++;
	call->used = false;
	ctx->sink->replied(ctx->sink, chan->peer, call->token, code, CADGE_LENT, data, bytes, NULL);
	give_room(chan, call);
}

/* The call that a reply is for; gives back the place of its arguments. NULL: there is none. */
static struct call *answered_call(struct cadge_chan *chan, const uint32_t *words, uint32_t count)
{
	if (count < 2 || words[0] >= OUTSTANDING || !chan->call[words[0]].used)
		return NULL;
	if (count > 2)
		am_places_give(&chan->there, words[2]);
	return &chan->call[words[0]];
}

static void on_result(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		      size_t bytes)
{
	struct cadge_ctx *ctx = am_user(token);
	struct cadge_chan *chan = &ctx->chans[am_source(token)];
	struct call *call = answered_call(chan, words, count);

	if (call)
		end_call(chan, call, (int)words[1], payload, bytes);
}

static void on_later(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		     size_t bytes)
{
	struct cadge_ctx *ctx = am_user(token);
	struct call *call = answered_call(&ctx->chans[am_source(token)], words, count);

	(void)payload, (void)bytes;
	if (!call || call->fetch)
		return;
	call->later_bytes = words[1];
	call->fetch = true;
	ctx->fetches++; /* a reply handler may not ask for it */
}

static void fetch(struct cadge_chan *chan, struct call *call)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct am_words words = {.count = 2, .word = {number_of(chan, call), NOWHERE}};

	give_room(chan, call); /* the result did not fit into it */
	if (call->later_bytes <= chan->here.bytes &&
	    !take_room(chan, call, call->later_bytes, &words.word[1]))
		return;
	if (am_request(ctx->endpoint, chan->peer, FETCH, &words, NULL, 0) != CADGE_DONE)
		return;
	call->fetch = false;
	ctx->fetches--;
}

void am_calls_fetch(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		for (uint32_t k = 0; k < OUTSTANDING; k++)
			if (ctx->chans[i].call[k].used && ctx->chans[i].call[k].fetch)
				fetch(&ctx->chans[i], &ctx->chans[i].call[k]);
}

void am_calls_end(struct cadge_chan *chan, int code)
{
	for (uint32_t i = 0; i < OUTSTANDING; i++) {
		struct call *call = &chan->call[i];

		if (!call->used)
			continue;
		chan->ctx->fetches -= call->fetch;
		end_call(chan, call, code, NULL, 0);
	}
}

void am_call_returned(struct cadge_chan *chan, const uint32_t *words, uint32_t count)
{
	if (count < 4 || words[1] >= OUTSTANDING || !chan->call[words[1]].used)
		return;
	if (count > 4)
		am_places_give(&chan->there, words[4]);
	end_call(chan, &chan->call[words[1]], CADGE_E_REFUSED, NULL, 0);
}

/* ---- the server ---- */

static void on_call(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		    size_t bytes)
{
	struct cadge_ctx *ctx = am_user(token);
	const uint32_t peer = am_source(token);
	const struct cadge_reply_to reply_to = {.word = {(uintptr_t)token}};

	if (count < 4 || words[1] >= OUTSTANDING)
		return;
	ctx->serving = (struct serving){
		.token = token,
		.chan = &ctx->chans[peer],
		.call = words[1],
		.room_lines = words[2],
		.room_bytes = words[3],
		.place = count > 4 ? (int)words[4] : -1,
	};
	ctx->events++;
	ctx->sink->call(ctx->sink, peer, words[0], payload, bytes, &reply_to);
	ctx->serving.token = NULL;
}

/* Words of an answer to the call at hand. */
static struct am_words answer_words(const struct serving *serving, uint32_t second)
{
	return (struct am_words){
		.count = serving->place < 0 ? 2 : 3,
		.word = {serving->call, second, (uint32_t)serving->place},
	};
}

static bool is_serving(const struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to)
{
	return ctx->serving.token && reply_to->word[0] == (uintptr_t)ctx->serving.token;
}

/* The caller expected less, and will fetch it. */
static int answer_later(struct serving *serving, const struct cadge_iov *iov, uint32_t count, size_t bytes,
			uint64_t token)
{
	struct waiting *waiting = &serving->chan->waiting[serving->call];
	const struct am_words words = answer_words(serving, (uint32_t)bytes);
	int code = am_reply(serving->token, LATER, &words, NULL, 0);

	if (code != CADGE_DONE)
		return code;
	*waiting = (struct waiting){.used = true, .count = count, .token = token};
	memcpy(waiting->iov, iov, count * sizeof(*iov));
	return CADGE_QUEUED;
}

int cadge_slot_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to,
		     const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	const size_t bytes = cadge_iov_bytes(iov, count);
	struct serving *serving = &ctx->serving;
	struct am_words words;

	(void)flags;
	if (!is_serving(ctx, reply_to) || count > CADGE_STYLE_IOV_MAX)
		return CADGE_E_ARGUMENT;
	if (bytes > ctx->asked.message_bytes_max)
		return CADGE_E_TOO_LARGE;
	words = answer_words(serving, CADGE_DONE);
	if (bytes <= am_medium_bytes_max(ctx->am, AM_WORDS_MAX))
		return am_reply(serving->token, RESULT, &words, iov, count);
	if (bytes > serving->room_bytes)
		return answer_later(serving, iov, count, bytes, token);
	return am_reply_xfer(serving->token, RESULT, &words, iov, count,
			     (uint64_t)serving->room_lines * AM_PLACES_LINE, token);
}

int cadge_slot_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags)
{
	struct am_words words;

	(void)flags;
	if (!is_serving(ctx, reply_to) || code >= 0)
		return CADGE_E_ARGUMENT;
	words = answer_words(&ctx->serving, (uint32_t)code);
	return am_reply(ctx->serving.token, RESULT, &words, NULL, 0);
}

static void on_fetch(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		     size_t bytes)
{
	struct cadge_ctx *ctx = am_user(token);
	const uint32_t peer = am_source(token);
	struct am_words answer = {.count = 2};
	struct waiting *waiting;
	int code;

	(void)payload, (void)bytes;
	if (count < 2 || words[0] >= OUTSTANDING || !ctx->chans[peer].waiting[words[0]].used)
		return;
	waiting = &ctx->chans[peer].waiting[words[0]];
	waiting->used = false;
	answer.word[0] = words[0];
	answer.word[1] = words[1] == NOWHERE ? (uint32_t)CADGE_E_TOO_LARGE : CADGE_DONE;
	if (words[1] == NOWHERE)
		code = am_reply(token, RESULT, &answer, NULL, 0);
	else
		code = am_reply_xfer(token, RESULT, &answer, waiting->iov, waiting->count,
				     (uint64_t)words[1] * AM_PLACES_LINE, waiting->token);
	if (code == CADGE_QUEUED)
		return;
	ctx->events++;
	ctx->sink->sent(ctx->sink, peer, waiting->token, code);
}

void am_calls_register(struct am_endpoint *endpoint)
{
	am_set_handler(endpoint, CALL, on_call);
	am_set_handler(endpoint, RESULT, on_result);
	am_set_handler(endpoint, LATER, on_later);
	am_set_handler(endpoint, FETCH, on_fetch);
}
