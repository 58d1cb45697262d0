/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim-fault: drops messages before the inner layer sees them. Of a million that are posted it drops drop_ppm
 * on average, `run` of them in a row each time. post says DONE of a message that is dropped, as of one that
 * the library has copied: the buffer is the caller's again, and nothing follows.
 *
 * Which ones are dropped follows from option `seed`, from how many were posted on the channel before, and from
 * the first bytes of the message, so that the two sides of a channel, which have the same settings, do not
 * drop in step, and a message that is sent again has a chance of its own.
 *
 * The inner layer's own reliability lies below and sees no loss: with anything to drop this context does not
 * grant RELIABLE. What could not be dropped (native calls, one-sided operations, batches, reserved messages)
 * is not granted either.
 *
 * Options arrive as settings "fault.drop_ppm" and so on; see shims/shim.h.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shims/shim.h"

#define PPM     UINT64_C(1000000)
#define RUN_MAX UINT64_C(1000000)

static const uint64_t fault_caps =
	CADGE_CAP_SELF | CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
	CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT |
	CADGE_CAP_EVENT_FD | CADGE_CAP_MEM_ALLOC | CADGE_CAP_MEM_REG | CADGE_CAP_COUNTERS |
	CADGE_CAP_OWN_THREADS | CADGE_CAP_ONE_INIT | CADGE_CAP_RAW_LINK | CADGE_CAP_WHY;

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_chan *inner;
	uint32_t peer;
	uint64_t posted;
	uint64_t left; /* of a run that has begun */
};

struct cadge_ctx {
	const struct cadge_layer *inner;
	struct cadge_ctx *inner_ctx;
	uint64_t drop_ppm, run, seed;
	uint64_t dropped, passed;
	uint32_t peers;
	struct cadge_chan **chans; /* by peer, NULL where not connected */
};

static int take_setting(void *arg, const char *name, const char *value)
{
	struct cadge_ctx *ctx = arg;

	if (strcmp(name, "drop_ppm") == 0)
		return shim_number(value, PPM, &ctx->drop_ppm);
	if (strcmp(name, "seed") == 0)
		return shim_number(value, UINT64_MAX, &ctx->seed);
	if (strcmp(name, "run") == 0 && shim_number(value, RUN_MAX, &ctx->run) == CADGE_DONE && ctx->run > 0)
		return CADGE_DONE;
	return CADGE_E_ARGUMENT;
}

/* SplitMix64's finalizer: Steele, Lea, Flood, OOPSLA 2014. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The first 16 bytes of a message, or as many as there are in its first piece. */
static uint64_t beginning(const struct cadge_iov *iov, uint32_t count)
{
	uint64_t words[2] = {0};

	if (count && iov->bytes)
		memcpy(words, iov->base, iov->bytes < sizeof(words) ? iov->bytes : sizeof(words));
	return mix(words[0] + UINT64_C(0x9e3779b97f4a7c15)) + words[1];
}

/* Whether a run begins with this message. A run of n begins n times as seldom. */
static bool begins(const struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const uint64_t drawn = mix(mix(ctx->seed + UINT64_C(0x9e3779b97f4a7c15) * (chan->posted + 1)) +
				   beginning(iov, count));

	return (unsigned __int128)drawn * (PPM * ctx->run) >> 64 < ctx->drop_ppm;
}

static void fault_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	if (ctx->inner_ctx)
		ctx->inner->close(ctx->inner_ctx);
	for (uint32_t i = 0; ctx->chans && i < ctx->peers; i++)
		free(ctx->chans[i]);
	free(ctx->chans);
	free(ctx);
}

static int fault_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx = calloc(1, sizeof(*ctx));
	int code;

	if (!ctx)
		return shim_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->inner = args->inner;
	ctx->run = 1;
	ctx->peers = args->peers_max;
	ctx->chans = calloc(ctx->peers ? ctx->peers : 1, sizeof(struct cadge_chan *));
	code = ctx->chans ? shim_open_inner(args, "fault", take_setting, ctx, &ctx->inner_ctx)
			  : shim_refuse(args, CADGE_E_MEMORY, "out of memory");
	if (code < 0) {
		fault_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void fault_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	ctx->inner->limits(ctx->inner_ctx, &limits);
	limits.caps = (limits.caps & fault_caps) | CADGE_CAP_COUNTERS;
	if (ctx->drop_ppm)
		limits.caps &= ~CADGE_CAP_RELIABLE;
	limits.rma_bytes_max = 0;
	limits.token_bytes = 0;
	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int fault_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	return ctx->inner->address(ctx->inner_ctx, peer, blob, bytes_inout);
}

static int fault_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			 struct cadge_chan **chan_out)
{
	struct cadge_chan *chan;
	int code;

	if (peer >= ctx->peers || ctx->chans[peer])
		return CADGE_E_ARGUMENT;
	chan = calloc(1, sizeof(*chan));
	if (!chan)
		return CADGE_E_MEMORY;
	chan->ctx = ctx;
	chan->peer = peer;
	code = ctx->inner->connect(ctx->inner_ctx, peer, blob, bytes, &chan->inner);
	if (code < 0) {
		free(chan);
		return code;
	}
	ctx->chans[peer] = chan;
	*chan_out = chan;
	return code;
}

static int fault_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const int code = ctx->inner->disconnect(ctx->inner_ctx, chan->inner);

	ctx->chans[chan->peer] = NULL;
	free(chan);
	return code;
}

static int fault_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		      uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	int code;

	if (ctx->drop_ppm && !chan->left && begins(chan, iov, count))
		chan->left = ctx->run;
	if (chan->left) {
		chan->left--;
		chan->posted++;
		ctx->dropped++;
		return CADGE_DONE;
	}
	code = ctx->inner->post(chan->inner, iov, count, flags & ~CADGE_MORE, token);
	/* what was not taken is offered again, and draws the same lot */
	if (code >= 0 && code != CADGE_BUSY) {
		chan->posted++;
		ctx->passed++;
	}
	return code;
}

/* Events are the inner layer's own: nothing of theirs is changed. */
static int fault_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	return ctx->inner->poll(ctx->inner_ctx, sink);
}

static int fault_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct cadge_path path = {.bytes = sizeof(path)};
	const int code = ctx->inner->describe_path(chan->inner, &path);
	const size_t used_bytes = strlen(path.note);

	if (code != CADGE_DONE)
		return code;
	snprintf(path.note + used_bytes, sizeof(path.note) - used_bytes,
		 "%sof a million messages %llu are dropped, %llu in a row", used_bytes ? "; " : "",
		 (unsigned long long)ctx->drop_ppm, (unsigned long long)ctx->run);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void fault_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	struct cadge_semantics semantics = {.bytes = sizeof(semantics)};

	ctx->inner->semantics(ctx->inner_ctx, &semantics);
	semantics.put = semantics.get = semantics.fetch_add = semantics.compare_swap = CADGE_PROGRESS_NONE;
	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void fault_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	ctx->inner->traits(ctx->inner_ctx, traits_out);
}

static int fault_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	return ctx->inner->wait ? ctx->inner->wait(ctx->inner_ctx, timeout_ns) : CADGE_E_UNSUPPORTED;
}

static int fault_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	return ctx->inner->event ? ctx->inner->event(ctx->inner_ctx, fd_out, due_ns_out)
				 : CADGE_E_UNSUPPORTED;
}

static const char *fault_why(const struct cadge_ctx *ctx)
{
	return ctx->inner->why ? ctx->inner->why(ctx->inner_ctx) : "";
}

static void fault_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	if (ctx->inner->release)
		ctx->inner->release(ctx->inner_ctx, lend);
}

static void *fault_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	return ctx->inner->mem_alloc ? ctx->inner->mem_alloc(ctx->inner_ctx, bytes) : NULL;
}

static void fault_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	if (ctx->inner->mem_free)
		ctx->inner->mem_free(ctx->inner_ctx, base, bytes);
}

static int fault_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	return ctx->inner->mem_reg ? ctx->inner->mem_reg(ctx->inner_ctx, base, bytes) : CADGE_E_UNSUPPORTED;
}

static int fault_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	return ctx->inner->mem_dereg ? ctx->inner->mem_dereg(ctx->inner_ctx, base, bytes)
				     : CADGE_E_UNSUPPORTED;
}

static void fault_counters(const struct cadge_ctx *ctx,
			   void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "fault.dropped_messages", ctx->dropped);
	each(arg, "fault.passed_messages", ctx->passed);
	if (ctx->inner->counters)
		ctx->inner->counters(ctx->inner_ctx, each, arg);
}

static const struct cadge_option fault_options[] = {
	{"drop_ppm", "0", "How many of a million messages are dropped, on average."},
	{"run", "1", "How many in a row are dropped at a time."},
	{"seed", "0", "Decides with each message whether it is dropped."},
	{0},
};

static const struct cadge_layer fault_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(fault_layer),
	.name = "shim-fault",
	.style = "shim",
	.substrate = "fault",
	.caps = fault_caps,
	.options = fault_options,
	.open = fault_open,
	.close = fault_close,
	.limits = fault_limits,
	.address = fault_address,
	.connect = fault_connect,
	.disconnect = fault_disconnect,
	.post = fault_post,
	.poll = fault_poll,
	.describe_path = fault_describe_path,
	.library = shim_library,
	.semantics = fault_semantics,
	.traits = fault_traits,
	.wait = fault_wait,
	.event = fault_event,
	.release = fault_release,
	.mem_alloc = fault_mem_alloc,
	.mem_free = fault_mem_free,
	.mem_reg = fault_mem_reg,
	.mem_dereg = fault_mem_dereg,
	.counters = fault_counters,
	.why = fault_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &fault_layer;
}
