/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts and channels. */
#include "am/adapter.h"
#include "substrate.h"

#include <stdlib.h>

#define PACKET_BYTES      8128u
#define STRETCH_BYTES_MIN (UINT64_C(1) << 20)
#define MESSAGE_BYTES_MAX (UINT64_C(1) << 30)
#define TAG               UINT64_C(0x6361646765) /* of all endpoints: nothing keeps layers of one campaign apart but it */

int cadge_slot_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int code;

	ctx->sink = sink;
	ctx->events = 0;
	code = am_poll(ctx->am, UINT32_MAX);
	if (ctx->fetches)
		am_calls_fetch(ctx);
	ctx->sink = NULL;
	return code < 0 ? code : ctx->events;
}

struct cadge_wire *cadge_style_idle_wire(const struct cadge_ctx *ctx)
{
	return am_may_sleep(ctx->am) ? am_wire(ctx->am) : NULL;
}

/* ---- channels ---- */

static void on_up(void *arg, uint32_t peer)
{
	struct cadge_ctx *ctx = arg;

	ctx->events += cadge_report_up(&ctx->chans[peer].state, ctx->sink, peer);
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct cadge_ctx *ctx = arg;

	ctx->chans[peer].state.broken = true;
	am_calls_end(&ctx->chans[peer], code);
	ctx->events += cadge_report_down(&ctx->chans[peer].state, ctx->sink, peer);
}

static void on_ended(void *arg, uint32_t peer, uint32_t handler, uint64_t token, int code)
{
	struct cadge_ctx *ctx = arg;

	if (handler == CALL) /* its result will come */
		return;
	ctx->events++;
	ctx->sink->sent(ctx->sink, peer, token, code);
}

/* Our stretches for a peer: what it sends, then results of calls to it. */
static uint64_t stretch_at(const struct cadge_ctx *ctx, uint32_t peer, uint32_t which)
{
	return (2 * (uint64_t)peer + which) * ctx->stretch_bytes;
}

int cadge_slot_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = cadge_blob_open(blob, *bytes_inout);

	cadge_blob_u64(&out, stretch_at(ctx, peer, 0));
	cadge_blob_u64(&out, ctx->stretch_bytes);
	return cadge_blob_close(&out, am_address(ctx->am, peer, &out), bytes_inout);
}

int cadge_slot_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	const uint64_t there_at = cadge_blob_take_u64(&in), there_bytes = cadge_blob_take_u64(&in);
	int code = am_connect(ctx->am, peer, &in);

	if (code != CADGE_DONE)
		return code;
	if (in.left_bytes || am_map(ctx->endpoint, peer, peer, 0, TAG) != CADGE_DONE) {
		am_disconnect(ctx->am, peer);
		return CADGE_E_ARGUMENT;
	}
	ctx->chans[peer] = (struct cadge_chan){
		.ctx = ctx,
		.peer = peer,
		.there = {.bytes = there_bytes / AM_PLACES_LINE * AM_PLACES_LINE},
		.there_at = there_at,
		.here = {.bytes = ctx->stretch_bytes},
		.here_at = stretch_at(ctx, peer, 1),
	};
	*chan_out = &ctx->chans[peer];
	return CADGE_DONE;
}

int cadge_slot_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	for (uint32_t i = 0; i < OUTSTANDING; i++)
		ctx->fetches -= chan->call[i].used && chan->call[i].fetch;
	chan->state.up = false;
	return am_disconnect(ctx->am, chan->peer);
}

int cadge_slot_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	return am_describe(chan->ctx->am, chan->peer, path_out);
}

/* ---- life ---- */

void cadge_slot_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	am_close(ctx->am);
	free(ctx->received);
	free(ctx);
}

static int make_endpoint(const struct cadge_open_args *args, struct cadge_ctx *ctx)
{
	const uint64_t bytes = ctx->asked.message_bytes_max;

	ctx->endpoint = am_endpoint_allocate(ctx->am);
	if (!ctx->endpoint)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for an endpoint");
	if (ctx->asked.off & CADGE_PART_ZERO_COPY_RECEIVE)
		ctx->received = malloc(bytes + 1);
	if (ctx->asked.off & CADGE_PART_ZERO_COPY_RECEIVE && !ctx->received)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for a message");
	am_set_tag(ctx->endpoint, TAG);
	am_messages_register(ctx->endpoint);
	am_calls_register(ctx->endpoint);
	if (bytes <= am_medium_bytes_max(ctx->am, AM_WORDS_MAX))
		return CADGE_DONE;
	ctx->stretch_bytes = (2 * bytes > STRETCH_BYTES_MIN ? 2 * bytes : STRETCH_BYTES_MIN) /
				     AM_PLACES_LINE * AM_PLACES_LINE +
			     2 * AM_PLACES_LINE;
	if (am_set_segment(ctx->endpoint, (size_t)stretch_at(ctx, args->peers_max, 0)) != CADGE_DONE)
		return cadge_refuse(args, CADGE_E_MEMORY, "no segment for long messages of %u peers: %s",
				    args->peers_max, cadge_wire_why(am_wire(ctx->am)));
	return CADGE_DONE;
}

const struct cadge_style_facts cadge_style_facts = {
	.ctx_bytes = sizeof(struct cadge_ctx),
	.chan_bytes = sizeof(struct cadge_chan),
	.message_bytes_max = MESSAGE_BYTES_MAX,
	.depth_max = OUTSTANDING,
	.separable = CADGE_PART_PROTECTION | CADGE_PART_FLOW_CONTROL | CADGE_PART_ZERO_COPY_RECEIVE,
	.packet_bytes = PACKET_BYTES,
};

int cadge_style_open(const struct cadge_open_args *args, const struct cadge_style_asked *asked,
		     struct cadge_ctx *ctx)
{
	const struct am_config config = {
		.packet_bytes = asked->packet_bytes,
		.outstanding = OUTSTANDING,
		.queue = OUTSTANDING,
		.trusting = asked->off & CADGE_PART_PROTECTION,
		.uncredited = asked->off & CADGE_PART_FLOW_CONTROL,
		.calls = {.up = on_up, .down = on_down, .ended = on_ended, .arg = ctx},
	};
	int code;

	if (args->peers_max > AM_NAMES_MAX)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "at most %u peers, not %u", AM_NAMES_MAX,
				    args->peers_max);
	ctx->peers = args->peers_max;
	ctx->asked = *asked;
	code = am_open(args, &config, &ctx->am);
	return code == CADGE_DONE ? make_endpoint(args, ctx) : code;
}

void cadge_slot_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = cadge_style_limits(&ctx->asked, am_wire(ctx->am));

	limits.token_bytes = 4 * sizeof(uint32_t);
	limits.wire_overhead_bytes += AM_HEAD_BYTES;
	limits.short_bytes_max = am_medium_bytes_max(ctx->am, 0);
	limits.short_path = "one packet";
	limits.long_path = "granted, then placed in the segment";
	cadge_fill(limits_out, &limits, sizeof(limits));
}

void cadge_slot_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	struct cadge_traits traits = cadge_style_traits(&ctx->asked, am_wire(ctx->am));

	/* At every length: tests/styles/am_refused.c tries it, on the wire alone as well. */
	traits.protection = CADGE_PROTECT_RECEIVER_LIBRARY;
	traits.control_transfer = CADGE_CONTROL_HANDLER;
	traits.flow = CADGE_FLOW_CREDITS;
	traits.order = CADGE_ORDER_NONE;
	traits.copies_on_send++;
	cadge_style_fill_traits(&ctx->asked, &traits, traits_out);
}

void cadge_slot_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	am_counters(ctx->am, each, arg);
}

const char *cadge_slot_why(const struct cadge_ctx *ctx)
{
	return cadge_wire_why(am_wire(ctx->am));
}

const struct cadge_traits cadge_style_library_traits = {CADGE_SUBSTRATE_PACKETS(0)};

const struct cadge_layer cadge_style_layer = {
	.name = "am-" CADGE_SUBSTRATE,
	.style = "am",
	.caps = CADGE_SUBSTRATE_CAPS(AM_CAPS),
	CADGE_SUBSTRATE_SLOTS,
	AM_SLOTS,
};
