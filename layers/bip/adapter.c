/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract on BIP. A receiver has a tag for each peer. A message of ours is the payload, filled up to a word, and a word
 * with its length. Short ones are lent to the sink in the queue of BIP; a long one, as the next, gets a receive.
 */
#include <stdlib.h>

#include "bip/bip.h"
#include "wire/style.h"
#include "substrate.h"

#define PACKET_BYTES (BIP_HEAD_BYTES + 256u * BIP_WORD_BYTES) /* longer messages are long */
/* More than one look brings: 16 messages, and over UCX's TCP what a read of 8 KiB holds, 390 of the shortest. */
#define QUEUE             1024u
#define PAGE_BYTES        4096u
#define MESSAGE_BYTES_MAX ((UINT64_C(1) << 30) - PAGE_BYTES)

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	uint32_t tag;       /* of ours at the peer */
	uint64_t bytes_max; /* longest message that the peer takes */
	struct cadge_state state;
};

struct cadge_ctx {
	struct bip *bip;
	struct cadge_sink *sink;
	struct cadge_style_asked asked;
	uint8_t *landing; /* memory of the wire, a part for each tag, which BIP has announced */
	size_t landing_bytes;
	uint32_t peers;
	struct cadge_chan *sending; /* whose send is outstanding; NULL: none */
	uint64_t token;
	uint8_t tail[2 * BIP_WORD_BYTES]; /* of what is sent: 0 to 3 bytes up to a word, and the length */
	uint64_t messages_refused;
	int events;
	struct cadge_chan chans[];
};

/* ---- sending ---- */

int cadge_slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	const size_t bytes = cadge_iov_bytes(iov, count), fill_bytes = -bytes % BIP_WORD_BYTES;
	struct cadge_iov pieces[CADGE_STYLE_IOV_MAX + 1];
	int code = cadge_style_may_post(&chan->state, count, bytes, chan->bytes_max);

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	if (ctx->sending)
		return CADGE_BUSY;
	memcpy(pieces, iov, count * sizeof(*iov));
	pieces[count] = (struct cadge_iov){.base = ctx->tail, .bytes = fill_bytes + BIP_WORD_BYTES};
	cadge_store32(ctx->tail + fill_bytes, (uint32_t)bytes);
	code = bip_tisend(ctx->bip, chan->peer, chan->tag, pieces, count + 1);
	ctx->sending = code == CADGE_QUEUED ? chan : NULL;
	ctx->token = token;
	return code;
}

static __attribute__((noinline)) void test_send(struct cadge_ctx *ctx)
{
	const struct cadge_chan *chan = ctx->sending;
	const int code = bip_stest(ctx->bip);

	if (code == CADGE_BUSY)
		return;
	ctx->sending = NULL;
	ctx->events++;
	ctx->sink->sent(ctx->sink, chan->peer, ctx->token, code);
}

/* ---- receiving ---- */

static void deliver(struct cadge_ctx *ctx, uint32_t peer, const uint8_t *words, uint32_t count)
{
	const uint64_t bytes = count ? cadge_load32(words + (count - 1) * (size_t)BIP_WORD_BYTES) : 0;
	const bool good = count == (bytes + BIP_WORD_BYTES - 1) / BIP_WORD_BYTES + 1;

	ctx->messages_refused += !good; /* of no peer of ours */
	ctx->events += good;
	if (good)
		ctx->sink->recv(ctx->sink, peer, words, bytes, NULL);
}

/* Takes out what a tag has got. */
static void drain(struct cadge_ctx *ctx, uint32_t tag)
{
	uint8_t *landing = ctx->landing + tag * ctx->landing_bytes;
	struct bip_message message;
	struct bip_received received;
	int code;

	while ((code = bip_tgetmsg(ctx->bip, tag, &message)) != CADGE_BUSY) {
		if (code == CADGE_DONE) {
			deliver(ctx, message.sender, message.words, message.count);
			bip_tfreemsg(ctx->bip, &message);
			continue;
		}
		if (code == CADGE_E_TOO_LARGE) /* a long one is the next */
			code = bip_tirecv(ctx->bip, tag, landing,
					  (uint32_t)(ctx->landing_bytes / BIP_WORD_BYTES));
		else if ((code = bip_rtest(ctx->bip, tag, &received)) == CADGE_DONE)
			deliver(ctx, received.sender, landing, received.words);
		if (code == CADGE_BUSY || code == CADGE_E_LIBRARY)
			return;
	}
}

int cadge_slot_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	uint32_t tag;
	int code;

	ctx->sink = sink;
	ctx->events = 0;
	code = bip_progress(ctx->bip);
	while (bip_ready(ctx->bip, &tag))
		drain(ctx, tag);
	if (ctx->sending)
		test_send(ctx);
	ctx->sink = NULL;
	return code < 0 ? code : ctx->events;
}

struct cadge_wire *cadge_style_idle_wire(const struct cadge_ctx *ctx)
{
	return bip_may_sleep(ctx->bip) ? bip_wire(ctx->bip) : NULL;
}

/* ---- channels ---- */

#include "wire/ends.h"

int cadge_slot_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = cadge_blob_open(blob, *bytes_inout);

	cadge_blob_u32(&out, peer); /* the tag */
	cadge_blob_u64(&out, ctx->asked.message_bytes_max);
	return cadge_blob_close(&out, bip_address(ctx->bip, peer, &out), bytes_inout);
}

int cadge_slot_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	const uint32_t tag = cadge_blob_take_u32(&in);
	const uint64_t bytes_max = cadge_blob_take_u64(&in);
	int code = bip_connect(ctx->bip, peer, &in);

	if (code != CADGE_DONE)
		return code;
	if (in.left_bytes) {
		bip_disconnect(ctx->bip, peer);
		return CADGE_E_ARGUMENT;
	}
	ctx->chans[peer] = (struct cadge_chan){.ctx = ctx, .peer = peer, .tag = tag};
	ctx->chans[peer].bytes_max = cadge_least(bytes_max, ctx->asked.message_bytes_max);
	*chan_out = &ctx->chans[peer];
	return CADGE_DONE;
}

int cadge_slot_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	struct bip_received received;
	const int code = bip_disconnect(ctx->bip, chan->peer);

	chan->state.up = false;
	bip_rtest(ctx->bip, chan->peer, &received); /* if one was coming from there */
	if (ctx->sending == chan && bip_stest(ctx->bip) != CADGE_BUSY)
		ctx->sending = NULL;
	return code;
}

int cadge_slot_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	return bip_describe(chan->ctx->bip, chan->peer, path_out);
}

/* ---- life ---- */

void cadge_slot_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	bip_close(ctx->bip); /* and with it the landings, where peers may still write until then */
	free(ctx);
}

/* Room for one long message of each peer, announced once. */
static int make_landings(const struct cadge_open_args *args, struct cadge_ctx *ctx)
{
	int code = CADGE_E_MEMORY;

	ctx->landing_bytes = ((size_t)ctx->asked.message_bytes_max / PAGE_BYTES + 2) * PAGE_BYTES;
	ctx->landing = cadge_wire_alloc(bip_wire(ctx->bip), ctx->peers * ctx->landing_bytes);
	if (ctx->landing)
		code = bip_register(ctx->bip, ctx->landing, ctx->peers * ctx->landing_bytes);
	return code == CADGE_DONE ? code : cadge_refuse(args, code, "no room for a message of each peer");
}

const struct cadge_style_facts cadge_style_facts = {
	.ctx_bytes = sizeof(struct cadge_ctx),
	.chan_bytes = sizeof(struct cadge_chan),
	.message_bytes_max = MESSAGE_BYTES_MAX,
	.depth_max = 1, /* BIP has one send outstanding */
	.packet_bytes = PACKET_BYTES,
};

int cadge_style_open(const struct cadge_open_args *args, const struct cadge_style_asked *asked,
		     struct cadge_ctx *ctx)
{
	const struct bip_config config = {
		.tags = args->peers_max,
		.short_words = (asked->packet_bytes - BIP_HEAD_BYTES) / BIP_WORD_BYTES,
		.queue = QUEUE,
		.held = QUEUE,
		.events = {.up = on_up, .down = on_down, .arg = ctx},
	};
	int code;

	ctx->peers = args->peers_max;
	ctx->asked = *asked;
	code = bip_open(args, &config, &ctx->bip);
	return code == CADGE_DONE ? make_landings(args, ctx) : code;
}

void cadge_slot_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = cadge_style_limits(&ctx->asked, bip_wire(ctx->bip));

	limits.wire_overhead_bytes += BIP_HEAD_BYTES + BIP_WORD_BYTES; /* and what fills the last word */
	limits.short_bytes_max = (bip_short_words(ctx->bip) - 1) * BIP_WORD_BYTES;
	limits.short_path = "one packet";
	limits.long_path = "request, grant, put, end";
	cadge_fill(limits_out, &limits, sizeof(limits));
}

void cadge_slot_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	struct cadge_traits traits = cadge_style_traits(&ctx->asked, bip_wire(ctx->bip));

	traits.protection = CADGE_PROTECT_NONE;
	traits.control_transfer = CADGE_CONTROL_POLL;
	traits.flow = CADGE_FLOW_NONE;
	traits.granule_bytes = BIP_WORD_BYTES;
	traits.copies_on_send++; /* into a packet; the receiver reads it in place */
	cadge_style_fill_traits(&ctx->asked, &traits, traits_out);
}

void cadge_slot_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "messages_refused", ctx->messages_refused);
	bip_counters(ctx->bip, each, arg);
}

const char *cadge_slot_why(const struct cadge_ctx *ctx)
{
	return bip_why(ctx->bip);
}

const struct cadge_traits cadge_style_library_traits = {CADGE_SUBSTRATE_PACKETS(1)};

const struct cadge_layer cadge_style_layer = {
	.name = "bip-" CADGE_SUBSTRATE,
	.style = "bip",
	.caps = CADGE_SUBSTRATE_CAPS(CADGE_STYLE_CAPS),
	CADGE_SUBSTRATE_SLOTS,
	.semantics = cadge_semantics_of_messages,
};
