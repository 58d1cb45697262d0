/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim-trace: counts and times each slot call and each event of the inner layer, and keeps the last of them
 * in a ring. Everything comes out of `counters`:
 *
 *	calls.<slot>, ns.<slot>      how often, and how long in all
 *	events.<event>               how often
 *	ring.<n>.<slot or event>.<result>   when, in ns since open: the oldest entry first; n counts from
 * open. A poll that found nothing is counted but not in the ring
 *
 * Option entries arrives as setting "trace.entries"; settings without the prefix "trace." go on to the
 * inner layer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shims/shim.h"

/* The formatter never comes to rest on this list. */
/* clang-format off */
#define TRACE_CALLS(X) \
	X(address) X(connect) X(disconnect) X(post) X(poll) X(describe_path) X(wait) X(event) \
	X(release) X(flush) X(reserve) X(commit) X(cancel) X(call) X(reply) X(fail) X(delegate) \
	X(expose) X(unexpose) X(attach) X(detach) X(put) X(get) X(fetch_add) X(compare_swap) X(quiet) \
	X(mem_alloc) X(mem_free) X(mem_reg) X(mem_dereg)
/* clang-format on */
#define TRACE_EVENTS(X) X(on_up) X(on_down) X(on_recv) X(on_sent) X(on_call) X(on_replied) X(on_notified)

#define TRACE_ENUM(name) TRACE_##name,
enum trace_what { TRACE_CALLS(TRACE_ENUM) TRACE_EVENTS(TRACE_ENUM) TRACE_KINDS };
#define TRACE_NAME(name) #name,
static const char *const trace_names[] = {TRACE_CALLS(TRACE_NAME) TRACE_EVENTS(TRACE_NAME)};

enum { TRACE_FIRST_EVENT = TRACE_on_up };
#define TRACE_ENTRIES_MAX UINT64_C(1048576)

struct entry {
	uint64_t at_ns;
	enum trace_what what;
	int result;
};

struct trace {
	struct cadge_ctx shim;
	uint64_t opened_ns, counts[TRACE_KINDS], spent_ns[TRACE_KINDS];
	struct entry *ring;
	uint64_t entries, written; /* room of the ring; entries ever written */
};

static void note(struct cadge_ctx *ctx, enum trace_what what, uint64_t at_ns, int result)
{
	struct trace *trace = (struct trace *)ctx;

	trace->counts[what]++;
	trace->ring[trace->written++ % trace->entries] =
		(struct entry){.at_ns = at_ns - trace->opened_ns, .what = what, .result = result};
}

static int called(struct cadge_ctx *ctx, enum trace_what what, uint64_t begin_ns, int result)
{
	((struct trace *)ctx)->spent_ns[what] += shim_now_ns() - begin_ns;
	note(ctx, what, begin_ns, result);
	return result;
}

/* Calls a slot of the inner layer that returns a code. */
#define TRACED(ctx, slot, ...)                                                                               \
	do {                                                                                                 \
		const uint64_t begin_ns = shim_now_ns();                                                     \
                                                                                                             \
		if (!(ctx)->inner->slot)                                                                     \
			return CADGE_E_UNSUPPORTED;                                                          \
		return called(ctx, TRACE_##slot, begin_ns, (ctx)->inner->slot(__VA_ARGS__));                 \
	} while (0)

/* And one that returns nothing. */
#define TRACED_VOID(ctx, slot, ...)                                                                          \
	do {                                                                                                 \
		const uint64_t begin_ns = shim_now_ns();                                                     \
                                                                                                             \
		if (!(ctx)->inner->slot)                                                                     \
			return;                                                                              \
		(ctx)->inner->slot(__VA_ARGS__);                                                             \
		(void)called(ctx, TRACE_##slot, begin_ns, CADGE_DONE);                                       \
	} while (0)

/* ---- events ---- */

static void note_event(struct cadge_sink *self, enum trace_what what, int result)
{
	note((struct cadge_ctx *)self, what, shim_now_ns(), result);
}

static void on_up(struct cadge_sink *self, uint32_t peer)
{
	note_event(self, TRACE_on_up, CADGE_DONE);
	shim_on_up(self, peer);
}

static void on_down(struct cadge_sink *self, uint32_t peer, int code)
{
	note_event(self, TRACE_on_down, code);
	shim_on_down(self, peer, code);
}

static enum cadge_keep on_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	note_event(self, TRACE_on_recv, CADGE_DONE);
	return shim_on_recv(self, peer, data, bytes, lend);
}

static void on_sent(struct cadge_sink *self, uint32_t peer, uint64_t token, int code)
{
	note_event(self, TRACE_on_sent, code);
	shim_on_sent(self, peer, token, code);
}

static void on_call(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	note_event(self, TRACE_on_call, CADGE_DONE);
	shim_on_call(self, peer, op, args, bytes, reply_to);
}

static enum cadge_keep on_replied(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	note_event(self, TRACE_on_replied, code);
	return shim_on_replied(self, peer, token, code, placement, data, bytes, lend);
}

static void on_notified(struct cadge_sink *self, uint32_t peer, struct cadge_region *region,
			uint64_t offset_bytes, uint64_t bytes)
{
	note_event(self, TRACE_on_notified, CADGE_DONE);
	shim_on_notified(self, peer, region, offset_bytes, bytes);
}

/* ---- slots ---- */

static int take_setting(struct cadge_ctx *ctx, const char *name, const char *value)
{
	uint64_t *entries = &((struct trace *)ctx)->entries;
	const int code = strcmp(name, "entries") == 0 ? shim_number(value, TRACE_ENTRIES_MAX, entries)
						      : CADGE_E_ARGUMENT;

	return code == CADGE_DONE && !*entries ? CADGE_E_ARGUMENT : code;
}

static void trace_close(struct cadge_ctx *ctx)
{
	struct entry *ring = ctx ? ((struct trace *)ctx)->ring : NULL;

	shim_close(ctx);
	free(ring);
}

static int trace_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct trace *trace = shim_new(args, sizeof(*trace));
	int code;

	if (!trace)
		return CADGE_E_MEMORY;
	trace->shim.sink = (struct cadge_sink){.bytes = sizeof(struct cadge_sink),
					       .up = on_up,
					       .down = on_down,
					       .recv = on_recv,
					       .sent = on_sent,
					       .call = on_call,
					       .replied = on_replied,
					       .notified = on_notified};
	trace->entries = 1024;
	trace->opened_ns = shim_now_ns();
	code = shim_open_inner(&trace->shim, args, "trace", take_setting);
	if (code == CADGE_DONE) {
		trace->ring = calloc(trace->entries, sizeof(*trace->ring));
		if (!trace->ring)
			code = shim_refuse(args, CADGE_E_MEMORY, "no memory for the ring");
	}
	if (code < 0) {
		trace_close(&trace->shim);
		return code;
	}
	*ctx_out = &trace->shim;
	return CADGE_DONE;
}

static void trace_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	ctx->inner->limits(ctx->inner_ctx, &limits);
	limits.caps |= CADGE_CAP_COUNTERS;
	cadge_fill(limits_out, &limits, sizeof(limits));
}

static int trace_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	TRACED(ctx, address, ctx->inner_ctx, peer, blob, bytes_inout);
}

static int trace_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			 struct cadge_chan **chan_out)
{
	const uint64_t begin_ns = shim_now_ns();

	return called(ctx, TRACE_connect, begin_ns, shim_connect(ctx, peer, blob, bytes, chan_out));
}

static int trace_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const uint64_t begin_ns = shim_now_ns();

	return called(ctx, TRACE_disconnect, begin_ns, shim_disconnect(ctx, chan));
}

static int trace_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		      uint64_t token)
{
	TRACED(chan->ctx, post, chan->inner, iov, count, flags, token);
}

static int trace_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	const uint64_t begin_ns = shim_now_ns();
	struct trace *trace = (struct trace *)ctx;
	int events;

	ctx->outer = sink;
	events = ctx->inner->poll(ctx->inner_ctx, &ctx->sink);
	if (events)
		return called(ctx, TRACE_poll, begin_ns, events);
	trace->counts[TRACE_poll]++;
	trace->spent_ns[TRACE_poll] += shim_now_ns() - begin_ns;
	return 0;
}

static int trace_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	TRACED(chan->ctx, describe_path, chan->inner, path_out);
}

static int trace_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	TRACED(ctx, wait, ctx->inner_ctx, timeout_ns);
}

static int trace_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	TRACED(ctx, event, ctx->inner_ctx, fd_out, due_ns_out);
}

static void trace_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	TRACED_VOID(ctx, release, ctx->inner_ctx, lend);
}

static int trace_flush(struct cadge_chan *chan)
{
	TRACED(chan->ctx, flush, chan->inner);
}

static int trace_reserve(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base_out)
{
	TRACED(chan->ctx, reserve, chan->inner, bytes, flags, base_out);
}

static int trace_commit(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token)
{
	TRACED(chan->ctx, commit, chan->inner, base, bytes, flags, token);
}

static void trace_cancel(struct cadge_chan *chan, void *base)
{
	TRACED_VOID(chan->ctx, cancel, chan->inner, base);
}

static int trace_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
		      const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token)
{
	TRACED(chan->ctx, call, chan->inner, op, in_iov, in_count, out_iov, out_count, flags, token);
}

static int trace_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to,
		       const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	TRACED(ctx, reply, ctx->inner_ctx, reply_to, iov, count, flags, token);
}

static int trace_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags)
{
	TRACED(ctx, fail, ctx->inner_ctx, reply_to, code, flags);
}

static int trace_delegate(struct cadge_chan *to, const struct cadge_reply_to *reply_to, uint32_t op,
			  const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	TRACED(to->ctx, delegate, to->inner, reply_to, op, iov, count, flags, token);
}

static int trace_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
			uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	TRACED(ctx, expose, ctx->inner_ctx, base, bytes, rights, peer, flags, key, key_bytes_inout,
	       region_out);
}

static void trace_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	TRACED_VOID(ctx, unexpose, ctx->inner_ctx, region);
}

static int trace_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
			uint32_t flags, struct cadge_remote **remote_out)
{
	TRACED(chan->ctx, attach, chan->inner, key, key_bytes, intent, flags, remote_out);
}

static void trace_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	TRACED_VOID(chan->ctx, detach, chan->inner, remote);
}

static int trace_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	TRACED(chan->ctx, put, chan->inner, local, bytes, remote, offset_bytes, flags, token);
}

static int trace_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	TRACED(chan->ctx, get, chan->inner, local, bytes, remote, offset_bytes, flags, token);
}

static int trace_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
			   struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	TRACED(chan->ctx, fetch_add, chan->inner, addend, before_out, remote, offset_bytes, flags, token);
}

static int trace_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired,
			      uint64_t *before_out, struct cadge_remote *remote, uint64_t offset_bytes,
			      uint32_t flags, uint64_t token)
{
	TRACED(chan->ctx, compare_swap, chan->inner, expected, desired, before_out, remote, offset_bytes,
	       flags, token);
}

static int trace_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	TRACED(chan->ctx, quiet, chan->inner, flags, token);
}

static void *trace_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	const uint64_t begin_ns = shim_now_ns();
	void *base = shim_mem_alloc(ctx, bytes);

	(void)called(ctx, TRACE_mem_alloc, begin_ns, base ? CADGE_DONE : CADGE_E_MEMORY);
	return base;
}

static void trace_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	TRACED_VOID(ctx, mem_free, ctx->inner_ctx, base, bytes);
}

static int trace_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	TRACED(ctx, mem_reg, ctx->inner_ctx, base, bytes);
}

static int trace_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	TRACED(ctx, mem_dereg, ctx->inner_ctx, base, bytes);
}

static void trace_counters(const struct cadge_ctx *ctx,
			   void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct trace *trace = (const struct trace *)ctx;
	char name[96];

	for (int what = 0; what < TRACE_KINDS; what++) {
		const int is_event = what >= TRACE_FIRST_EVENT;

		if (!trace->counts[what])
			continue;
		/* Events are named without their "on_". */
		snprintf(name, sizeof(name), "%s.%s", is_event ? "events" : "calls",
			 trace_names[what] + 3 * is_event);
		each(arg, name, trace->counts[what]);
		if (is_event)
			continue;
		snprintf(name, sizeof(name), "ns.%s", trace_names[what]);
		each(arg, name, trace->spent_ns[what]);
	}
	for (uint64_t n = trace->written > trace->entries ? trace->written - trace->entries : 0;
	     n < trace->written; n++) {
		const struct entry *entry = &trace->ring[n % trace->entries];

		snprintf(name, sizeof(name), "ring.%" PRIu64 ".%s.%d", n, trace_names[entry->what],
			 entry->result);
		each(arg, name, entry->at_ns);
	}
	shim_counters(ctx, each, arg);
}

static const struct cadge_option trace_options[] = {
	{"entries", "1024", "How many of the last calls and events are kept."},
	{0},
};

static const struct cadge_layer trace_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(trace_layer),
	.name = "shim-trace",
	.style = "shim",
	.substrate = "trace",
	.caps = CADGE_CAPS_KNOWN, /* what the inner context grants is granted */
	.options = trace_options,
	.open = trace_open,
	.close = trace_close,
	.limits = trace_limits,
	.address = trace_address,
	.connect = trace_connect,
	.disconnect = trace_disconnect,
	.post = trace_post,
	.poll = trace_poll,
	.describe_path = trace_describe_path,
	.library = shim_library,
	.semantics = shim_semantics,
	.traits = shim_traits,
	.wait = trace_wait,
	.event = trace_event,
	.release = trace_release,
	.flush = trace_flush,
	.reserve = trace_reserve,
	.commit = trace_commit,
	.cancel = trace_cancel,
	.call = trace_call,
	.reply = trace_reply,
	.fail = trace_fail,
	.delegate = trace_delegate,
	.expose = trace_expose,
	.unexpose = trace_unexpose,
	.attach = trace_attach,
	.detach = trace_detach,
	.put = trace_put,
	.get = trace_get,
	.fetch_add = trace_fetch_add,
	.compare_swap = trace_compare_swap,
	.quiet = trace_quiet,
	.mem_alloc = trace_mem_alloc,
	.mem_free = trace_mem_free,
	.mem_reg = trace_mem_reg,
	.mem_dereg = trace_mem_dereg,
	.counters = trace_counters,
	.why = shim_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &trace_layer;
}
