/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract on PM. A short message is a message of PM that is built and read in place; a longer one is a remote write:
 * ASK its length, GRANT the handle of a landing, write, quiet, END. One of these is under way on a channel at a time, and
 * holds up what is posted behind it. Both ends are locked meanwhile (the pin-down cache).
 */
#include "pm/adapter.h"
#include "substrate.h"

#include <stdlib.h>

/* ---- what comes in ---- */

/* Returns whether the sink keeps the packet. */
static enum cadge_keep arrived(struct cadge_ctx *ctx, struct pm_packet *packet)
{
	struct cadge_chan *chan = &ctx->chans[packet->peer];
	const uint8_t *body = packet->data + PM_ADAPTER_HEAD_BYTES;
	uint64_t head;

	if (UNLIKELY(packet->bytes < PM_ADAPTER_HEAD_BYTES))
		return CADGE_TAKEN;
	head = cadge_load64(packet->data);
	if (UNLIKELY(head != PM_MESSAGE)) {
		pm_long_arrived(chan, head, body, packet->bytes - PM_ADAPTER_HEAD_BYTES);
		return CADGE_TAKEN;
	}
	ctx->events++;
	body = cadge_style_received(ctx->received, body, packet->bytes - PM_ADAPTER_HEAD_BYTES);
	return ctx->sink->recv(ctx->sink, packet->peer, body, packet->bytes - PM_ADAPTER_HEAD_BYTES,
			       ctx->received ? NULL : (struct cadge_lend *)(void *)packet);
}

int cadge_slot_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct pm_packet *packet;
	int code;

	ctx->sink = sink;
	ctx->events = 0;
	for (code = pm_receive(ctx->pm, PM_CHANNEL, &packet); code == CADGE_DONE;
	     code = pm_next(ctx->pm, PM_CHANNEL, &packet))
		if (arrived(ctx, packet) == CADGE_TAKEN)
			pm_release_receive_buffer(ctx->pm, packet);
	if (UNLIKELY(ctx->unfinished))
		pm_long_go_on(ctx);
	ctx->sink = NULL;
	return code < 0 ? code : ctx->events;
}

void pm_slot_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	pm_release_receive_buffer(ctx->pm, (struct pm_packet *)(void *)lend);
}

struct cadge_wire *cadge_style_idle_wire(const struct cadge_ctx *ctx)
{
	return !ctx->stuck && pm_may_sleep(ctx->pm) ? pm_wire(ctx->pm) : NULL;
}

/* ---- channels ---- */

#include "wire/ends.h"

int cadge_slot_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = cadge_blob_open(blob, *bytes_inout);
	int code = pm_sample_address(ctx, &out);

	if (code == CADGE_DONE)
		code = pm_address(ctx->pm, peer, &out);
	return cadge_blob_close(&out, code, bytes_inout);
}

int cadge_slot_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true}, sample = {.ok = true};
	struct cadge_chan *chan;
	int code;

	sample.at = cadge_blob_take_bytes(&in, &sample.left_bytes);
	code = pm_connect(ctx->pm, peer, &in);
	if (code != CADGE_DONE)
		return code;
	chan = &ctx->chans[peer];
	chan->ctx = ctx;
	chan->peer = peer;
	chan->state = (struct cadge_state){.up = false};
	code = in.left_bytes ? CADGE_E_ARGUMENT : pm_sample_take(chan, &sample);
	if (code != CADGE_DONE) {
		pm_disconnect(ctx->pm, peer);
		return code;
	}
	*chan_out = chan;
	return CADGE_DONE;
}

int cadge_slot_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	int code = pm_disconnect(ctx->pm, chan->peer);

	if (code == CADGE_DONE) {
		pm_long_forget(chan);
		pm_memory_forget(chan);
		chan->state.up = false;
	}
	return code;
}

int cadge_slot_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	return pm_describe(chan->ctx->pm, chan->peer, path_out);
}

/* ---- life ---- */

void cadge_slot_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	pm_close(ctx->pm); /* and with it landings, where peers may still write until then */
	free(ctx->operations);
	free(ctx->received);
	free(ctx);
}

const struct cadge_style_facts cadge_style_facts = {
	.ctx_bytes = sizeof(struct cadge_ctx),
	.chan_bytes = sizeof(struct cadge_chan),
	.message_bytes_max = PM_MESSAGE_BYTES_MAX,
	.depth_max = UINT32_MAX,
	.separable = CADGE_PART_ZERO_COPY_SEND | CADGE_PART_ZERO_COPY_RECEIVE,
};

int cadge_style_open(const struct cadge_open_args *args, const struct cadge_style_asked *asked,
		     struct cadge_ctx *ctx)
{
	struct pm_config config = {
		.packet_bytes = PM_PACKET_BYTES,
		.window = PM_WINDOW,
		.buffers = PM_BUFFERS,
		.channels = 1,
		.events = {.up = on_up, .down = on_down, .ended = pm_memory_ended, .arg = ctx},
	};
	int code;

	ctx->peers = args->peers_max;
	ctx->asked = *asked;
	pm_memory_needs(ctx, args, &config);
	code = pm_open(args, &config, &ctx->pm);
	if (code != CADGE_DONE)
		return code;
	if (!pm_memory_open(ctx))
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	ctx->short_bytes_max = pm_packet_bytes(ctx->pm) - PM_ADAPTER_HEAD_BYTES;
	if (!(asked->off & CADGE_PART_ZERO_COPY_RECEIVE))
		return CADGE_DONE;
	ctx->received = malloc(ctx->short_bytes_max);
	return ctx->received ? CADGE_DONE : cadge_refuse(args, CADGE_E_MEMORY, "out of memory for a message");
}

void cadge_slot_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = cadge_style_limits(&ctx->asked, pm_wire(ctx->pm));

	limits.rma_bytes_max = cadge_wire_facts(pm_wire(ctx->pm))->put_bytes_max;
	limits.wire_overhead_bytes += PM_HEAD_BYTES + PM_ADAPTER_HEAD_BYTES;
	limits.short_bytes_max = ctx->short_bytes_max;
	limits.short_path = "one packet";
	limits.long_path = "remote write";
	cadge_fill(limits_out, &limits, sizeof(limits));
}

void cadge_slot_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	struct cadge_traits traits = cadge_style_traits(&ctx->asked, pm_wire(ctx->pm));

	traits.protection = CADGE_PROTECT_SENDER_LIBRARY; /* of what is locked */
	traits.control_transfer = CADGE_CONTROL_POLL;
	traits.flow = CADGE_FLOW_ACK_NACK;
	traits.granule_bytes = pm_packet_bytes(ctx->pm);
	traits.copies_on_send++; /* what is posted; none where it was reserved */
	cadge_style_fill_traits(&ctx->asked, &traits, traits_out);
}

void pm_slot_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const struct cadge_semantics semantics = {
		.message = CADGE_PROGRESS_LIBRARY,
		.put = ctx->reach == CADGE_PROGRESS_DIRECT ? ctx->reach : CADGE_PROGRESS_LIBRARY,
	};

	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

void cadge_slot_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	pm_counters(ctx->pm, each, arg);
}

const char *cadge_slot_why(const struct cadge_ctx *ctx)
{
	return cadge_wire_why(pm_wire(ctx->pm));
}

const struct cadge_traits cadge_style_library_traits = {CADGE_SUBSTRATE_PACKETS(0)};

const struct cadge_layer cadge_style_layer = {
	.name = "pm-" CADGE_SUBSTRATE,
	.style = "pm",
	.caps = CADGE_SUBSTRATE_CAPS(PM_CAPS),
	CADGE_SUBSTRATE_SLOTS,
	PM_SLOTS,
};
