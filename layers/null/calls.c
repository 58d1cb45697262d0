/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Native calls of the null layer. A call's cell waits until it is answered or passed on; its answer is a cell
 * of its own, which takes over the call's origin and its place among the requests.
 */
#include <string.h>

#include "null/null.h"

int null_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
	      const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token)
{
	struct cadge_lend *cell;
	int code = out_count > NULL_IOV_MAX ? CADGE_E_ARGUMENT
					    : null_send(chan, NULL_CALL, in_iov, in_count, false, &cell);

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	cell->op = op;
	cell->origin.token = token;
	cell->origin.peer = chan->peer;
	cell->origin.out_count = out_count;
	if (out_count)
		memcpy(cell->origin.out_iov, out_iov, out_count * sizeof(*out_iov));
	return CADGE_QUEUED;
}

static struct cadge_lend *call_find(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to)
{
	struct cadge_lend *call = reply_to->word[0] < ctx->cells ? &ctx->cell[reply_to->word[0]] : NULL;

	return call && call->serial && call->serial == reply_to->word[1] ? call : NULL;
}

/* The call was answered or passed on. Its arguments stay lent until its handler returns. */
static void call_consume(struct cadge_ctx *ctx, struct cadge_lend *call)
{
	call->serial = 0;
	if (ctx->delivering != call)
		null_cell_give(ctx, call);
}

static int answer(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, const struct cadge_iov *iov,
		  uint32_t count, int code)
{
	struct cadge_lend *cell, *call = call_find(ctx, reply_to);
	size_t bytes, room_bytes;
	int result = call ? cadge_iov_check(iov, count, NULL_IOV_MAX, ctx->message_bytes_max, &bytes)
			  : CADGE_E_ARGUMENT;

	if (result < 0)
		return result;
	room_bytes = cadge_iov_bytes(call->origin.out_iov, call->origin.out_count);
	if (call->origin.out_count && bytes > room_bytes)
		return CADGE_E_TOO_LARGE;
	cell = null_cell_take(ctx, NULL_REPLY, call->origin.peer, bytes);
	if (!cell)
		return CADGE_E_MEMORY;
	cell->code = code;
	cell->origin = call->origin;
	cadge_iov_gather(iov, count, cell->data);
	null_cell_queue(ctx, cell);
	call_consume(ctx, call);
	return CADGE_DONE;
}

int null_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, const struct cadge_iov *iov,
	       uint32_t count, uint32_t flags, uint64_t token)
{
	(void)flags, (void)token;
	return answer(ctx, reply_to, iov, count, CADGE_DONE);
}

int null_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags)
{
	(void)flags;
	return code < 0 ? answer(ctx, reply_to, NULL, 0, code) : CADGE_E_ARGUMENT;
}

int null_delegate(struct cadge_chan *to, const struct cadge_reply_to *reply_to, uint32_t op,
		  const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	struct cadge_lend *cell, *call = call_find(to->ctx, reply_to);
	int code = call ? null_send(to, NULL_CALL, iov, count, true, &cell) : CADGE_E_ARGUMENT;

	(void)flags, (void)token;
	if (code != CADGE_DONE)
		return code;
	cell->op = op;
	cell->origin = call->origin;
	call_consume(to->ctx, call);
	return CADGE_DONE;
}

void null_deliver_call(struct cadge_ctx *ctx, struct cadge_sink *sink, struct cadge_lend *call)
{
	const struct cadge_reply_to reply_to = {.word = {(uint64_t)(call - ctx->cell), ++ctx->serial}};

	call->serial = ctx->serial;
	ctx->delivering = call;
	sink->call(sink, call->peer, call->op, call->data, call->bytes, &reply_to);
	ctx->delivering = NULL;
	if (!call->serial)
		null_cell_give(ctx, call);
}

enum cadge_keep null_deliver_reply(struct cadge_sink *sink, struct cadge_lend *cell)
{
	const struct null_origin *origin = &cell->origin;
	const unsigned char *from = cell->data;
	size_t left = cell->bytes;

	if (!origin->out_count || cell->code < 0)
		return sink->replied(sink, cell->peer, origin->token, cell->code, CADGE_LENT, cell->data,
				     cell->bytes, cell);
	for (uint32_t i = 0; i < origin->out_count && left; i++) {
		size_t bytes = left < origin->out_iov[i].bytes ? left : origin->out_iov[i].bytes;

		memcpy(origin->out_iov[i].base, from, bytes);
		from += bytes;
		left -= bytes;
	}
	return sink->replied(sink, cell->peer, origin->token, CADGE_DONE, CADGE_PLACED, NULL, cell->bytes,
			     NULL);
}
