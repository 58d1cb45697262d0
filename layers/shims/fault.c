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
#include <string.h>

#include "shims/shim.h"

#define PPM     UINT64_C(1000000)
#define RUN_MAX UINT64_C(1000000)

struct fault_chan {
	struct cadge_chan shim;
	uint64_t posted;
	uint64_t left; /* of a run that has begun */
};

struct fault {
	struct cadge_ctx shim;
	uint64_t drop_ppm, run, seed;
	uint64_t dropped, passed;
};

static int take_setting(struct cadge_ctx *ctx, const char *name, const char *value)
{
	struct fault *fault = (struct fault *)ctx;

	if (strcmp(name, "drop_ppm") == 0)
		return shim_number(value, PPM, &fault->drop_ppm);
	if (strcmp(name, "seed") == 0)
		return shim_number(value, UINT64_MAX, &fault->seed);
	if (strcmp(name, "run") == 0 && shim_number(value, RUN_MAX, &fault->run) == CADGE_DONE &&
	    fault->run > 0)
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
static bool begins(const struct fault *fault, const struct fault_chan *chan, const struct cadge_iov *iov,
		   uint32_t count)
{
	const uint64_t drawn = mix(mix(fault->seed + UINT64_C(0x9e3779b97f4a7c15) * (chan->posted + 1)) +
				   beginning(iov, count));

	return (unsigned __int128)drawn * (PPM * fault->run) >> 64 < fault->drop_ppm;
}

static int fault_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct fault *fault = shim_new(args, sizeof(*fault));
	int code;

	if (!fault)
		return CADGE_E_MEMORY;
	fault->run = 1;
	code = shim_open_inner(&fault->shim, args, "fault", take_setting);
	if (code < 0) {
		shim_close(&fault->shim);
		return code;
	}
	*ctx_out = &fault->shim;
	return CADGE_DONE;
}

static void fault_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = shim_limits_of_messages(ctx);

	if (((const struct fault *)ctx)->drop_ppm)
		limits.caps &= ~CADGE_CAP_RELIABLE;
	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int fault_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			 struct cadge_chan **chan_out)
{
	return shim_connect_as(ctx, sizeof(struct fault_chan), peer, blob, bytes, chan_out);
}

static int fault_post(struct cadge_chan *shim_chan, const struct cadge_iov *iov, uint32_t count,
		      uint32_t flags, uint64_t token)
{
	struct fault_chan *chan = (struct fault_chan *)shim_chan;
	struct fault *fault = (struct fault *)shim_chan->ctx;
	int code;

	if (fault->drop_ppm && !chan->left && begins(fault, chan, iov, count))
		chan->left = fault->run;
	if (chan->left) {
		chan->left--;
		chan->posted++;
		fault->dropped++;
		return CADGE_DONE;
	}
	code = fault->shim.inner->post(shim_chan->inner, iov, count, flags & ~CADGE_MORE, token);
	/* what was not taken is offered again, and draws the same lot */
	if (code >= 0 && code != CADGE_BUSY) {
		chan->posted++;
		fault->passed++;
	}
	return code;
}

static int fault_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct fault *fault = (const struct fault *)chan->ctx;
	struct cadge_path path = {.bytes = sizeof(path)};
	const int code = chan->ctx->inner->describe_path(chan->inner, &path);

	if (code != CADGE_DONE)
		return code;
	shim_add_note(&path, "of a million messages %llu are dropped, %llu in a row",
		      (unsigned long long)fault->drop_ppm, (unsigned long long)fault->run);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void fault_counters(const struct cadge_ctx *ctx,
			   void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct fault *fault = (const struct fault *)ctx;

	each(arg, "fault.dropped_messages", fault->dropped);
	each(arg, "fault.passed_messages", fault->passed);
	shim_counters(ctx, each, arg);
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
	.caps = SHIM_CAPS_OF_MESSAGES,
	.options = fault_options,
	.open = fault_open,
	.close = shim_close,
	.limits = fault_limits,
	.address = shim_address,
	.connect = fault_connect,
	.disconnect = shim_disconnect,
	.post = fault_post,
	.poll = shim_poll,
	.describe_path = fault_describe_path,
	.library = shim_library,
	.semantics = shim_semantics_of_messages,
	.traits = shim_traits,
	.wait = shim_wait,
	.event = shim_event,
	.release = shim_release,
	.mem_alloc = shim_mem_alloc,
	.mem_free = shim_mem_free,
	.mem_reg = shim_mem_reg,
	.mem_dereg = shim_mem_dereg,
	.counters = fault_counters,
	.why = shim_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &fault_layer;
}
