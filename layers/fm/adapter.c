/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract on Fast Messages. A message of ours is a message of FM: its length, and the caller's pieces. Its handler
 * pulls the length, then the bytes into a buffer of its sender, and gives that to the sink.
 */
#include <stdlib.h>

#include "wire/style.h"
#include "fm/fm.h"
#include "substrate.h"

#define PACKET_BYTES      8128u
#define WINDOW            64u
#define MESSAGE_BYTES_MAX (UINT64_C(1) << 30)
#define LENGTH_BYTES      4u
#define HANDLER           1u

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	struct cadge_state state;
	struct fm_stream *out;                     /* a message that ran out of credits; NULL: none */
	struct cadge_iov iov[CADGE_STYLE_IOV_MAX]; /* what is left of it */
	uint32_t iov_count, iov_at;
	uint64_t token;
	uint8_t *landing;
};

struct cadge_ctx {
	struct fm *fm;
	struct cadge_sink *sink;
	struct cadge_style_asked asked;
	struct cadge_landings landings;
	uint32_t peers;
	uint32_t unfinished; /* messages that ran out of credits */
	int events;
	struct cadge_chan chans[];
};

/* ---- messages ---- */

static void on_message(struct fm_stream *in, uint32_t sender)
{
	struct cadge_ctx *ctx = fm_user(in);
	struct cadge_chan *chan = &ctx->chans[sender];
	uint8_t length[LENGTH_BYTES];
	uint32_t bytes;

	if (fm_receive(in, length, sizeof(length)) < sizeof(length))
		return;
	bytes = cadge_load32(length);
	if (bytes > ctx->asked.message_bytes_max || fm_receive(in, chan->landing, bytes) < bytes)
		return;
	ctx->events++;
	ctx->sink->recv(ctx->sink, sender, chan->landing, bytes, NULL);
}

/* Goes on with a message. DONE, BUSY: out of credits; E_DOWN. */
static int send_on(struct cadge_chan *chan)
{
	for (; chan->iov_at < chan->iov_count; chan->iov_at++) {
		struct cadge_iov *iov = &chan->iov[chan->iov_at];
		const size_t took = fm_send_piece(chan->out, iov->base, iov->bytes);

		iov->base = (uint8_t *)iov->base + took;
		iov->bytes -= took;
		if (iov->bytes)
			return chan->state.broken ? fm_end_message(chan->out) : CADGE_BUSY;
	}
	return fm_end_message(chan->out);
}

int cadge_slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	const size_t bytes = cadge_iov_bytes(iov, count);
	uint8_t length[LENGTH_BYTES];
	int code = cadge_style_may_post(&chan->state, count, bytes, chan->ctx->asked.message_bytes_max);

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	if (chan->out)
		return CADGE_BUSY;
	chan->out = fm_begin_message(chan->ctx->fm, chan->peer, HANDLER);
	if (!chan->out)
		return CADGE_BUSY;
	cadge_store32(length, (uint32_t)bytes);
	fm_send_piece(chan->out, length, sizeof(length)); /* fits: the packet is empty */
	memcpy(chan->iov, iov, count * sizeof(*iov));
	chan->iov_count = count;
	chan->iov_at = 0;
	code = send_on(chan);
	if (code != CADGE_BUSY) {
		chan->out = NULL;
		return code;
	}
	chan->token = token;
	chan->ctx->unfinished++;
	return CADGE_QUEUED;
}

static __attribute__((noinline)) void send_all_on(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = &ctx->chans[i];
		int code = chan->out ? send_on(chan) : CADGE_BUSY;

		if (code == CADGE_BUSY)
			continue;
		chan->out = NULL;
		ctx->unfinished--;
		ctx->events++;
		ctx->sink->sent(ctx->sink, i, chan->token, code);
	}
}

int cadge_slot_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int code;

	ctx->sink = sink;
	ctx->events = 0;
	code = fm_extract(ctx->fm, SIZE_MAX);
	if (ctx->unfinished)
		send_all_on(ctx);
	ctx->sink = NULL;
	return code < 0 ? code : ctx->events;
}

struct cadge_wire *cadge_style_idle_wire(const struct cadge_ctx *ctx)
{
	return fm_may_sleep(ctx->fm) ? fm_wire(ctx->fm) : NULL;
}

/* ---- channels ---- */

#include "wire/ends.h"

int cadge_slot_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = cadge_blob_open(blob, *bytes_inout);

	return cadge_blob_close(&out, fm_address(ctx->fm, peer, &out), bytes_inout);
}

int cadge_slot_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	int code = fm_connect(ctx->fm, peer, &in);

	if (code != CADGE_DONE)
		return code;
	if (in.left_bytes) {
		fm_disconnect(ctx->fm, peer);
		return CADGE_E_ARGUMENT;
	}
	ctx->chans[peer] = (struct cadge_chan){
		.ctx = ctx, .peer = peer, .landing = cadge_landing_of(&ctx->landings, peer)};
	*chan_out = &ctx->chans[peer];
	return CADGE_DONE;
}

int cadge_slot_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	ctx->unfinished -= chan->out != NULL;
	chan->out = NULL;
	chan->state.up = false;
	return fm_disconnect(ctx->fm, chan->peer);
}

int cadge_slot_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	return fm_describe(chan->ctx->fm, chan->peer, path_out);
}

/* ---- life ---- */

void cadge_slot_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	fm_close(ctx->fm);
	cadge_landings_destroy(&ctx->landings);
	free(ctx);
}

const struct cadge_style_facts cadge_style_facts = {
	.ctx_bytes = sizeof(struct cadge_ctx),
	.chan_bytes = sizeof(struct cadge_chan),
	.message_bytes_max = MESSAGE_BYTES_MAX,
	.depth_max = UINT32_MAX,
	.separable = CADGE_PART_FLOW_CONTROL,
	.packet_bytes = PACKET_BYTES,
};

int cadge_style_open(const struct cadge_open_args *args, const struct cadge_style_asked *asked,
		     struct cadge_ctx *ctx)
{
	const struct fm_config config = {
		.packet_bytes = asked->packet_bytes,
		.window = WINDOW,
		.uncredited = asked->off & CADGE_PART_FLOW_CONTROL,
		.events = {.up = on_up, .down = on_down, .arg = ctx},
	};
	int code;

	ctx->peers = args->peers_max;
	ctx->asked = *asked;
	code = fm_open(args, &config, &ctx->fm);
	if (code != CADGE_DONE)
		return code;
	code = fm_register_handler(ctx->fm, HANDLER, on_message);
	if (code != CADGE_DONE)
		return code;
	return cadge_landings_make(args, asked->message_bytes_max, &ctx->landings);
}

void cadge_slot_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = cadge_style_limits(&ctx->asked, fm_wire(ctx->fm));

	limits.wire_overhead_bytes += FM_HEAD_BYTES + LENGTH_BYTES;
	limits.short_bytes_max = fm_packet_bytes(ctx->fm) - LENGTH_BYTES;
	limits.short_path = "one packet";
	limits.long_path = "packets";
	cadge_fill(limits_out, &limits, sizeof(limits));
}

void cadge_slot_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	struct cadge_traits traits = cadge_style_traits(&ctx->asked, fm_wire(ctx->fm));

	traits.protection = CADGE_PROTECT_NONE;
	traits.control_transfer = CADGE_CONTROL_HANDLER;
	traits.flow = CADGE_FLOW_CREDITS;
	traits.granule_bytes = fm_packet_bytes(ctx->fm);
	traits.copies_on_send++;
	traits.copies_on_receive++;
	cadge_style_fill_traits(&ctx->asked, &traits, traits_out);
}

void cadge_slot_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	fm_counters(ctx->fm, each, arg);
}

const char *cadge_slot_why(const struct cadge_ctx *ctx)
{
	return cadge_wire_why(fm_wire(ctx->fm));
}

const struct cadge_traits cadge_style_library_traits = {CADGE_SUBSTRATE_PACKETS(1)};

const struct cadge_layer cadge_style_layer = {
	.name = "fm-" CADGE_SUBSTRATE,
	.style = "fm",
	.caps = CADGE_SUBSTRATE_CAPS(CADGE_STYLE_CAPS | CADGE_CAP_FLOW_CONTROL),
	CADGE_SUBSTRATE_SLOTS,
	.semantics = cadge_semantics_of_messages,
};
