/* SPDX-License-Identifier: BSD-3-Clause */
/* What the wire reports of a link goes to the sink at once: for an adapter whose channels have a state. Its source includes this. */
static void on_up(void *arg, uint32_t peer)
{
	struct cadge_ctx *ctx = arg;

	ctx->events += cadge_report_up(&ctx->chans[peer].state, ctx->sink, peer);
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct cadge_ctx *ctx = arg;

	(void)code;
	ctx->chans[peer].state.broken = true;
	ctx->events += cadge_report_down(&ctx->chans[peer].state, ctx->sink, peer);
}
