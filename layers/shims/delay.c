/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim-delay: holds each message back for delay_ns, counted from its post, before the inner layer sees it.
 * With the shim on both sides a round trip takes 2 * delay_ns longer.
 *
 * It can stall as well: with stall_ns and stall_every_ns it lets nothing out for the first stall_ns of every
 * stall_every_ns of CLOCK_MONOTONIC, so that all ends of one host stall together. What is due in a stall
 * leaves when it is over, in order; what arrives is handed over all the while.
 *
 * It can be a link with all of LogGP's parameters as well, so that what is fitted to measurements can be compared with what is
 * true: send_ns spins in post (o_s), receive_ns before a message is handed on (o_r); and a channel lets the next
 * message begin gap_ns (g) after the one before it, and byte_ps (G) times its bytes, but one, after that. A message has
 * then left when it has begun, those bytes have passed, and delay_ns (L).
 *
 * Option delay_ns arrives as setting "delay.delay_ns"; settings without the prefix "delay." go on to the
 * inner layer. See shims/shim.h; the caller has nothing to strip.
 *
 * A held message is the caller's iov, not a copy: post says QUEUED, poll passes the message on when its time
 * has come, and its sent event follows then. Order is kept. What would pass by undelayed (native calls,
 * one-sided operations, batches) is not granted.
 *
 * Accuracy: a message leaves at the poll that is nearest to its due time, early or late by half the time
 * between two polls at most, so that the mean delay is right; and what the shim itself costs a message, about
 * three readings of the clock, is taken off. Nothing spins here: the inner layer is polled all the while, as
 * it would be without the shim, and stays as warm.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shims/shim.h"

enum { HELD_MAX = 4096, IOV_MAX_HERE = 8 };
#define DELAY_NS_MAX  UINT64_C(10000000000) /* of stalls as well, and of a byte in ps */
#define PS_PER_NS     1000u
#define PERIOD_NS_MAX UINT64_C(2000) /* the longest time between two polls that still counts as polling */
/* closer than this, wait does not sleep: waking up may take that long */
#define NO_SLEEP_NS UINT64_C(200000)

static const uint64_t delay_caps =
	CADGE_CAP_SELF | CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
	CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT |
	CADGE_CAP_EVENT_FD | CADGE_CAP_MEM_ALLOC | CADGE_CAP_MEM_REG | CADGE_CAP_COUNTERS |
	CADGE_CAP_OWN_THREADS | CADGE_CAP_ONE_INIT | CADGE_CAP_RAW_LINK | CADGE_CAP_WHY;

struct held {
	uint64_t due_ns, token;
	uint32_t flags, count;
	struct cadge_iov iov[IOV_MAX_HERE];
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_chan *inner;
	uint32_t peer;
	bool is_up, is_down;
	uint64_t free_ns;  /* when the next message may begin */
	struct held *held; /* ring of depth */
	uint32_t head, held_count;
};

struct cadge_ctx {
	struct cadge_sink sink;   /* what the inner layer calls; first, so that it leads back here */
	struct cadge_sink *outer; /* the sink of the poll that runs */
	const struct cadge_layer *inner;
	struct cadge_ctx *inner_ctx;
	uint64_t delay_ns, hold_ns, message_bytes_max, late_messages, held_messages;
	uint64_t stall_ns, stall_every_ns; /* 0: it never stalls */
	uint64_t send_ns, receive_ns, gap_ns, byte_ps;
	uint32_t depth, iov_max, peers;
	uint64_t polled_ns, half_period_ns; /* time of the last poll; half the usual time between two */
	int further_events;                 /* delivered by the shim itself during an inner poll */
	struct cadge_chan **chans;          /* by peer, NULL where not connected */
};

static struct cadge_ctx *ctx_of(struct cadge_sink *sink)
{
	return (struct cadge_ctx *)sink;
}

static int take_setting(void *arg, const char *name, const char *value)
{
	struct cadge_ctx *ctx = arg;
	const struct {
		const char *name;
		uint64_t *number;
	} known[] = {{"delay_ns", &ctx->delay_ns},
		     {"stall_ns", &ctx->stall_ns},
		     {"send_ns", &ctx->send_ns},
		     {"receive_ns", &ctx->receive_ns},
		     {"gap_ns", &ctx->gap_ns},
		     {"byte_ps", &ctx->byte_ps},
		     {"stall_every_ns", &ctx->stall_every_ns}};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(name, known[i].name) == 0)
			return shim_number(value, DELAY_NS_MAX, known[i].number);
	return CADGE_E_ARGUMENT;
}

/* When a message may leave that is due at a time: then, or at the end of the stall that it falls into. */
static uint64_t after_stall(const struct cadge_ctx *ctx, uint64_t due_ns)
{
	const uint64_t into_ns = ctx->stall_ns ? due_ns % ctx->stall_every_ns : 0;

	return into_ns < ctx->stall_ns ? due_ns + ctx->stall_ns - into_ns : due_ns;
}

/* Keeps its thread for so long, as a library does that works. */
static void spin(uint64_t begin_ns, uint64_t span_ns)
{
	while (shim_now_ns() - begin_ns < span_ns)
		;
}

/* When a message that is posted now will have left; and the channel is taken for as long. */
static uint64_t due_ns(struct cadge_chan *chan, uint64_t time_ns, uint64_t bytes)
{
	const struct cadge_ctx *ctx = chan->ctx;
	const uint64_t bytes_ns = bytes ? (bytes - 1) * ctx->byte_ps / PS_PER_NS : 0;
	const uint64_t begin_ns = time_ns > chan->free_ns ? time_ns : chan->free_ns;

	chan->free_ns = begin_ns + ctx->gap_ns + bytes_ns;
	return after_stall(ctx, begin_ns + bytes_ns + ctx->hold_ns);
}

/* ---- from the inner layer ---- */

static void finish_first(struct cadge_chan *chan, struct cadge_sink *outer, int code)
{
	const uint64_t token = chan->held[chan->head].token;

	chan->head = chan->head + 1 < chan->ctx->depth ? chan->head + 1 : 0;
	chan->held_count--;
	outer->sent(outer, chan->peer, token, code);
}

static void on_up(struct cadge_sink *self, uint32_t peer)
{
	struct cadge_ctx *ctx = ctx_of(self);

	ctx->chans[peer]->is_up = true;
	ctx->outer->up(ctx->outer, peer);
}

static void on_down(struct cadge_sink *self, uint32_t peer, int code)
{
	struct cadge_ctx *ctx = ctx_of(self);
	struct cadge_chan *chan = ctx->chans[peer];

	chan->is_down = true;
	for (uint32_t left = chan->held_count; left; left--, ctx->further_events++)
		finish_first(chan, ctx->outer, CADGE_E_DOWN);
	ctx->outer->down(ctx->outer, peer, code);
}

static enum cadge_keep on_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	const struct cadge_ctx *ctx = ctx_of(self);

	if (ctx->receive_ns)
		spin(shim_now_ns(), ctx->receive_ns);
	return ctx->outer->recv(ctx->outer, peer, data, bytes, lend);
}

static void on_sent(struct cadge_sink *self, uint32_t peer, uint64_t token, int code)
{
	struct cadge_sink *outer = ctx_of(self)->outer;

	outer->sent(outer, peer, token, code);
}

/* The inner layer has no native calls and no notified puts as far as this shim's caller knows. */
static void on_call(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct cadge_sink *outer = ctx_of(self)->outer;

	outer->call(outer, peer, op, args, bytes, reply_to);
}

static enum cadge_keep on_replied(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct cadge_sink *outer = ctx_of(self)->outer;

	return outer->replied(outer, peer, token, code, placement, data, bytes, lend);
}

static void on_notified(struct cadge_sink *self, uint32_t peer, struct cadge_region *region,
			uint64_t offset_bytes, uint64_t bytes)
{
	struct cadge_sink *outer = ctx_of(self)->outer;

	outer->notified(outer, peer, region, offset_bytes, bytes);
}

/* ---- slots ---- */

static void delay_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	if (ctx->inner_ctx)
		ctx->inner->close(ctx->inner_ctx);
	for (uint32_t i = 0; ctx->chans && i < ctx->peers; i++) {
		if (!ctx->chans[i])
			continue;
		free(ctx->chans[i]->held);
		free(ctx->chans[i]);
	}
	free(ctx->chans);
	free(ctx);
}

/* What one reading of the clock costs: the least of 16 means, since anything else that happens only adds. */
static uint64_t clock_cost_ns(void)
{
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		const uint64_t begin_ns = shim_now_ns();
		uint64_t spent_ns = 0;

		for (int j = 0; j < 64; j++)
			spent_ns = shim_now_ns() - begin_ns;
		if (spent_ns / 64 < least_ns)
			least_ns = spent_ns / 64;
	}
	return least_ns;
}

static int delay_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	struct cadge_ctx *ctx = calloc(1, sizeof(*ctx));
	uint64_t own_ns;
	int code;

	if (!ctx)
		return shim_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->sink = (struct cadge_sink){.bytes = sizeof(struct cadge_sink),
					.up = on_up,
					.down = on_down,
					.recv = on_recv,
					.sent = on_sent,
					.call = on_call,
					.replied = on_replied,
					.notified = on_notified};
	ctx->inner = args->inner;
	ctx->peers = args->peers_max;
	ctx->chans = calloc(ctx->peers ? ctx->peers : 1, sizeof(struct cadge_chan *));
	code = ctx->chans ? shim_open_inner(args, "delay", take_setting, ctx, &ctx->inner_ctx)
			  : shim_refuse(args, CADGE_E_MEMORY, "out of memory");
	if (code == CADGE_DONE && (ctx->stall_ns || ctx->stall_every_ns) &&
	    (!ctx->stall_ns || ctx->stall_ns >= ctx->stall_every_ns))
		code = shim_refuse(args, CADGE_E_ARGUMENT,
				   "shim-delay stalls for delay.stall_ns in every delay.stall_every_ns: give "
				   "both, and the second larger than the first");
	if (code < 0) {
		delay_close(ctx);
		return code;
	}
	own_ns = 3 * clock_cost_ns();
	ctx->hold_ns = ctx->delay_ns > own_ns ? ctx->delay_ns - own_ns : 0;
	ctx->inner->limits(ctx->inner_ctx, &limits);
	ctx->message_bytes_max = limits.message_bytes_max;
	ctx->iov_max = limits.iov_max < IOV_MAX_HERE ? limits.iov_max : IOV_MAX_HERE;
	ctx->depth = limits.depth_max < HELD_MAX ? limits.depth_max : HELD_MAX;
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void delay_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	ctx->inner->limits(ctx->inner_ctx, &limits);
	limits.caps = (limits.caps & delay_caps) | CADGE_CAP_COUNTERS;
	limits.rma_bytes_max = 0;
	limits.token_bytes = 0;
	limits.depth_max = ctx->depth;
	limits.iov_max = ctx->iov_max;
	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int delay_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	return ctx->inner->address(ctx->inner_ctx, peer, blob, bytes_inout);
}

static int delay_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
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
	chan->held = calloc(ctx->depth, sizeof(*chan->held));
	code = chan->held ? ctx->inner->connect(ctx->inner_ctx, peer, blob, bytes, &chan->inner)
			  : CADGE_E_MEMORY;
	if (code < 0) {
		free(chan->held);
		free(chan);
		return code;
	}
	ctx->chans[peer] = chan;
	*chan_out = chan;
	return code;
}

static int delay_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	int code = ctx->inner->disconnect(ctx->inner_ctx, chan->inner);

	ctx->chans[chan->peer] = NULL;
	free(chan->held);
	free(chan);
	return code;
}

static int delay_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		      uint64_t token)
{
	const struct cadge_ctx *ctx = chan->ctx;
	uint64_t time_ns = shim_now_ns();
	struct held *held;
	uint64_t bytes = 0;
	uint32_t at;

	if (count > ctx->iov_max)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].bytes > ctx->message_bytes_max - bytes)
			return CADGE_E_TOO_LARGE;
		bytes += iov[i].bytes;
	}
	if (chan->is_down)
		return CADGE_E_DOWN;
	if (!chan->is_up || chan->held_count == ctx->depth)
		return CADGE_BUSY;
	at = chan->head + chan->held_count++;
	held = &chan->held[at < ctx->depth ? at : at - ctx->depth];
	if (ctx->send_ns) {
		spin(time_ns, ctx->send_ns);
		time_ns += ctx->send_ns;
	}
	held->due_ns = due_ns(chan, time_ns, bytes);
	held->token = token;
	held->flags = flags & ~CADGE_MORE; /* one by one, each at its own time */
	held->count = count;
	for (uint32_t i = 0; i < count; i++)
		held->iov[i] = iov[i];
	return CADGE_QUEUED;
}

/* Passes on what is due, or nearer to its time now than at the next poll. Returns the number of events. */
static int pass_on(struct cadge_chan *chan, struct cadge_sink *outer, uint64_t time_ns)
{
	struct cadge_ctx *ctx = chan->ctx;
	int events = 0;

	for (uint32_t left = chan->held_count; left && !chan->is_down; left--) {
		struct held *held = &chan->held[chan->head];
		int code;

		if (time_ns + ctx->half_period_ns < held->due_ns)
			break;
		code = ctx->inner->post(chan->inner, held->iov, held->count, held->flags, held->token);
		if (code == CADGE_BUSY)
			break;
		ctx->held_messages++;
		ctx->late_messages += time_ns > held->due_ns + PERIOD_NS_MAX;
		if (code == CADGE_QUEUED) {
			/* The inner layer's own event will carry the token. */
			chan->head = chan->head + 1 < ctx->depth ? chan->head + 1 : 0;
			chan->held_count--;
			continue;
		}
		finish_first(chan, outer, code);
		events++;
	}
	return events;
}

static bool holds_any(const struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		if (ctx->chans[i] && ctx->chans[i]->held_count)
			return true;
	return false;
}

/* The clock is read only while something is held. */
static int release_due(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	const uint64_t time_ns = shim_now_ns(), period_ns = time_ns - ctx->polled_ns;
	int events = 0;

	if (ctx->polled_ns && period_ns <= PERIOD_NS_MAX)
		ctx->half_period_ns = (7 * ctx->half_period_ns + period_ns / 2) / 8;
	for (uint32_t i = 0; i < ctx->peers; i++)
		if (ctx->chans[i] && ctx->chans[i]->held_count)
			events += pass_on(ctx->chans[i], sink, time_ns);
	ctx->polled_ns = events ? 0 : time_ns;
	return events;
}

static int delay_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0, code;

	if (holds_any(ctx))
		events = release_due(ctx, sink);
	else
		ctx->polled_ns = 0;
	ctx->outer = sink;
	ctx->further_events = 0;
	code = ctx->inner->poll(ctx->inner_ctx, &ctx->sink);
	return code < 0 ? code : events + code + ctx->further_events;
}

static int delay_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};
	const int code = chan->ctx->inner->describe_path(chan->inner, &path);
	size_t used_bytes;

	if (code != CADGE_DONE)
		return code;
	used_bytes = strlen(path.note);
	snprintf(path.note + used_bytes, sizeof(path.note) - used_bytes,
		 "%smessages are held back for %llu ns", used_bytes ? "; " : "",
		 (unsigned long long)chan->ctx->delay_ns);
	used_bytes = strlen(path.note);
	if (chan->ctx->stall_ns)
		snprintf(path.note + used_bytes, sizeof(path.note) - used_bytes,
			 "; none leaves for %llu of every %llu ns", (unsigned long long)chan->ctx->stall_ns,
			 (unsigned long long)chan->ctx->stall_every_ns);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void delay_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	struct cadge_semantics semantics = {.bytes = sizeof(semantics)};

	ctx->inner->semantics(ctx->inner_ctx, &semantics);
	semantics.put = semantics.get = semantics.fetch_add = semantics.compare_swap = CADGE_PROGRESS_NONE;
	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void delay_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	ctx->inner->traits(ctx->inner_ctx, traits_out);
}

/* How long a caller may sleep for what is held: UINT64_MAX where nothing is, 0 where it is nearly due. */
static uint64_t sleep_ns(const struct cadge_ctx *ctx)
{
	uint64_t due_ns = UINT64_MAX, time_ns;

	for (uint32_t i = 0; i < ctx->peers; i++) {
		const struct cadge_chan *chan = ctx->chans[i];

		if (chan && chan->held_count && chan->held[chan->head].due_ns < due_ns)
			due_ns = chan->held[chan->head].due_ns;
	}
	if (due_ns == UINT64_MAX)
		return due_ns;
	time_ns = shim_now_ns();
	return due_ns < time_ns + NO_SLEEP_NS ? 0 : due_ns - time_ns - NO_SLEEP_NS;
}

static int delay_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	uint64_t most_ns;

	if (!ctx->inner->wait)
		return CADGE_E_UNSUPPORTED;
	most_ns = sleep_ns(ctx);
	if (!most_ns)
		return CADGE_DONE;
	return ctx->inner->wait(ctx->inner_ctx, timeout_ns < most_ns ? timeout_ns : most_ns);
}

static int delay_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	uint64_t most_ns, due_ns;
	int code;

	if (!ctx->inner->event)
		return CADGE_E_UNSUPPORTED;
	most_ns = sleep_ns(ctx);
	if (!most_ns)
		return CADGE_BUSY;
	code = ctx->inner->event(ctx->inner_ctx, fd_out, &due_ns);
	if (code == CADGE_DONE)
		*due_ns_out = due_ns < most_ns ? due_ns : most_ns;
	return code;
}

static const char *delay_why(const struct cadge_ctx *ctx)
{
	return ctx->inner->why ? ctx->inner->why(ctx->inner_ctx) : "";
}

static void delay_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	if (ctx->inner->release)
		ctx->inner->release(ctx->inner_ctx, lend);
}

static void *delay_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	return ctx->inner->mem_alloc ? ctx->inner->mem_alloc(ctx->inner_ctx, bytes) : NULL;
}

static void delay_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	if (ctx->inner->mem_free)
		ctx->inner->mem_free(ctx->inner_ctx, base, bytes);
}

static int delay_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	return ctx->inner->mem_reg ? ctx->inner->mem_reg(ctx->inner_ctx, base, bytes) : CADGE_E_UNSUPPORTED;
}

static int delay_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	return ctx->inner->mem_dereg ? ctx->inner->mem_dereg(ctx->inner_ctx, base, bytes)
				     : CADGE_E_UNSUPPORTED;
}

static void delay_counters(const struct cadge_ctx *ctx,
			   void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "delay.held_messages", ctx->held_messages);
	each(arg, "delay.late_messages", ctx->late_messages);
	if (ctx->inner->counters)
		ctx->inner->counters(ctx->inner_ctx, each, arg);
}

static const struct cadge_option delay_options[] = {
	{"delay_ns", "0", "How long each message is held back before it is sent, in nanoseconds."},
	{"stall_ns", "0", "For how long nothing is sent, again and again, in nanoseconds; 0: never."},
	{"stall_every_ns", "0", "From the beginning of one stall to that of the next, in nanoseconds."},
	{"send_ns", "0", "For how long post works, in nanoseconds: LogGP's o of the sender."},
	{"receive_ns", "0",
	 "For how long a message is worked at before it is handed on, in nanoseconds: o of the receiver."},
	{"gap_ns", "0", "From the beginning of one message to that of the next at least, in nanoseconds: g."},
	{"byte_ps", "0", "How long each further byte of a message takes, in picoseconds: G."},
	{0},
};

static const struct cadge_layer delay_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(delay_layer),
	.name = "shim-delay",
	.style = "shim",
	.substrate = "delay",
	.caps = delay_caps,
	.options = delay_options,
	.open = delay_open,
	.close = delay_close,
	.limits = delay_limits,
	.address = delay_address,
	.connect = delay_connect,
	.disconnect = delay_disconnect,
	.post = delay_post,
	.poll = delay_poll,
	.describe_path = delay_describe_path,
	.library = shim_library,
	.semantics = delay_semantics,
	.traits = delay_traits,
	.wait = delay_wait,
	.event = delay_event,
	.release = delay_release,
	.mem_alloc = delay_mem_alloc,
	.mem_free = delay_mem_free,
	.mem_reg = delay_mem_reg,
	.mem_dereg = delay_mem_dereg,
	.counters = delay_counters,
	.why = delay_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &delay_layer;
}
