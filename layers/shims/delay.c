/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim-delay: holds each message back for delay_ns, counted from its post, before the inner layer sees it.
 * With the shim on both sides a round trip takes 2 * delay_ns longer.
 *
 * It can stall as well: with stall_ns and stall_every_ns it lets nothing out for the first stall_ns of every
 * stall_every_ns of CLOCK_MONOTONIC, so that all ends of one host stall together. What is due in a stall
 * leaves when it is over, in order; what arrives is handed over all the while.
 *
 * With one_end only one of two connected ends stalls, and works to send: a shim knows no roles, so it is the one whose
 * address comes first, by a hash of it.
 *
 * It can be a link with all of LogGP's parameters as well, so that what is fitted to measurements can be compared with what is
 * true: send_ns spins in post (o_s), receive_ns before a message is handed on (o_r); and a channel lets the next
 * message begin gap_ns (g) after the one before it, and byte_ps (G) times its bytes, but one, after that. A message has
 * then left when it has begun, those bytes have passed, and delay_ns (L).
 *
 * Option delay_ns arrives as setting "delay.delay_ns"; settings without the prefix "delay." go on to the
 * inner layer. See shims/shim.h; the caller has nothing to strip.
 *
 * With send_ns and receive_ns alone nothing has to be held: a message goes to the inner layer inside its post, and whoever
 * sleeps, sleeps. One-sided operations are granted then as well; each costs its caller send_ns as a message does, a
 * notification its receiver receive_ns. quiet, which moves nothing, costs nothing. How long it really worked to send is counted
 * (delay.worked_ns for delay.worked_sends), by readings of the clock around the work and what one of them costs: a spin ends
 * at the first reading that is late enough, so it lasts longer than it was told to.
 *
 * A held message is the caller's iov, not a copy: post says QUEUED, poll passes the message on when its time
 * has come, and its sent event follows then. Order is kept. What would pass by undelayed (native calls,
 * batches, and one-sided operations where messages are held) is not granted.
 *
 * Accuracy: a message leaves at the poll that is nearest to its due time, early or late by half the time
 * between two polls at most, so that the mean delay is right; and what the shim itself costs a message, about
 * three readings of the clock, is taken off. Nothing spins here: the inner layer is polled all the while, as
 * it would be without the shim, and stays as warm.
 */
#include <stdbool.h>
#include <string.h>

#include "shims/shim.h"

enum { HELD_MAX = 4096, IOV_MAX_HERE = 8 };
#define DELAY_NS_MAX  UINT64_C(10000000000) /* of stalls as well, and of a byte in ps */
#define PS_PER_NS     1000u
#define NS_PER_US     1000u
#define PERIOD_NS_MAX UINT64_C(2000) /* the longest time between two polls that still counts as polling */
/* closer than this, wait does not sleep: waking up may take that long */
#define NO_SLEEP_NS UINT64_C(200000)

struct held {
	uint64_t due_ns, token;
	uint32_t flags, count;
	struct cadge_iov iov[IOV_MAX_HERE];
};

struct delay_chan {
	struct cadge_chan shim;
	bool is_up, is_down;
	bool is_charged;  /* send_ns was spent on what the inner layer was too busy to take */
	bool is_spared;   /* the other end is the one that stalls and works */
	uint64_t free_ns; /* when the next message may begin */
	uint32_t head, held_count;
	struct held held[]; /* ring of depth */
};

struct delay {
	struct cadge_ctx shim;
	uint64_t delay_ns, hold_ns, message_bytes_max, late_messages, held_messages;
	uint64_t stall_ns, stall_every_ns; /* 0: it never stalls */
	uint64_t send_ns, receive_ns, gap_ns, byte_ps;
	uint64_t worked_sends; /* on how many send_ns was spent, not held */
	uint64_t worked_ns;    /* and for how long, the readings of the clock included */
	uint64_t clock_ns;     /* what one of them costs */
	uint64_t steps_per_us; /* of step() */
	uint64_t one_end;
	bool holds;
	uint32_t depth, iov_max;
	uint64_t polled_ns, half_period_ns; /* time of the last poll; half the usual time between two */
	int further_events;                 /* delivered by the shim itself during an inner poll */
	uint64_t own_names[];               /* hashes of our addresses, by peer */
};

static struct delay_chan *chan_of(const struct delay *delay, uint32_t peer)
{
	return (struct delay_chan *)delay->shim.chans[peer];
}

static int take_setting(struct cadge_ctx *ctx, const char *name, const char *value)
{
	struct delay *delay = (struct delay *)ctx;
	const struct {
		const char *name;
		uint64_t *number;
	} known[] = {{"delay_ns", &delay->delay_ns},
		     {"stall_ns", &delay->stall_ns},
		     {"send_ns", &delay->send_ns},
		     {"receive_ns", &delay->receive_ns},
		     {"gap_ns", &delay->gap_ns},
		     {"byte_ps", &delay->byte_ps},
		     {"stall_every_ns", &delay->stall_every_ns}};

	if (strcmp(name, "one_end") == 0)
		return shim_number(value, 1, &delay->one_end);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(name, known[i].name) == 0)
			return shim_number(value, DELAY_NS_MAX, known[i].number);
	return CADGE_E_ARGUMENT;
}

/* When a message may leave that is due at a time: then, or at the end of the stall that it falls into. */
static uint64_t after_stall(const struct delay *delay, const struct delay_chan *chan, uint64_t due_ns)
{
	const uint64_t into_ns =
		delay->stall_ns && !chan->is_spared ? due_ns % delay->stall_every_ns : delay->stall_ns;

	return into_ns < delay->stall_ns ? due_ns + delay->stall_ns - into_ns : due_ns;
}

/* Keeps the processor for so many steps, each of which waits for the one before it. */
static void step(uint64_t steps)
{
	uint64_t value = steps;

	for (; steps; steps--) {
		value = value * 3 + 1;
		__asm__ volatile("" : "+r"(value));
	}
}

/*
 * Keeps its thread for so long, as a library does that works. It is the processor's time that is meant: where another
 * thread was given the processor between two readings of the clock, that does not count. The last part is done by steps, not by
 * readings, which are too coarse: some 18 ns each. Returns how long it worked, by the first and the last reading.
 */
static uint64_t spin(const struct delay *delay, uint64_t begin_ns, uint64_t span_ns)
{
	const uint64_t coarse_ns = span_ns > 3 * delay->clock_ns ? span_ns - 3 * delay->clock_ns : 0;
	uint64_t before_ns = begin_ns, time_ns = begin_ns;

	while (time_ns - begin_ns < coarse_ns) {
		time_ns = shim_now_ns();
		if (time_ns - before_ns > PERIOD_NS_MAX)
			begin_ns += time_ns - before_ns;
		before_ns = time_ns;
	}
	if (time_ns - begin_ns < span_ns)
		step((span_ns - (time_ns - begin_ns)) * delay->steps_per_us / NS_PER_US);
	time_ns = shim_now_ns();
	return time_ns - before_ns > PERIOD_NS_MAX ? span_ns : time_ns - begin_ns;
}

/* Works for what goes out at once, and only once where it has to be tried again. */
static void work(struct delay *delay, struct delay_chan *chan)
{
	if (!delay->send_ns || chan->is_spared || chan->is_charged)
		return;
	delay->worked_ns += spin(delay, shim_now_ns(), delay->send_ns) + delay->clock_ns;
	chan->is_charged = true;
	delay->worked_sends++;
}

static int worked(struct delay_chan *chan, int code)
{
	chan->is_charged = chan->is_charged && code == CADGE_BUSY;
	return code;
}

/* When a message that is posted now will have left; and the channel is taken for as long. */
static uint64_t due_ns(const struct delay *delay, struct delay_chan *chan, uint64_t time_ns, uint64_t bytes)
{
	const uint64_t bytes_ns = bytes ? (bytes - 1) * delay->byte_ps / PS_PER_NS : 0;
	const uint64_t begin_ns = time_ns > chan->free_ns ? time_ns : chan->free_ns;

	chan->free_ns = begin_ns + delay->gap_ns + bytes_ns;
	return after_stall(delay, chan, begin_ns + bytes_ns + delay->hold_ns);
}

/* ---- from the inner layer ---- */

static void finish_first(const struct delay *delay, struct delay_chan *chan, int code)
{
	const uint64_t token = chan->held[chan->head].token;

	chan->head = chan->head + 1 < delay->depth ? chan->head + 1 : 0;
	chan->held_count--;
	delay->shim.outer->sent(delay->shim.outer, chan->shim.peer, token, code);
}

static void on_up(struct cadge_sink *self, uint32_t peer)
{
	chan_of((struct delay *)self, peer)->is_up = true;
	shim_on_up(self, peer);
}

static void on_down(struct cadge_sink *self, uint32_t peer, int code)
{
	struct delay *delay = (struct delay *)self;
	struct delay_chan *chan = chan_of(delay, peer);

	chan->is_down = true;
	for (uint32_t left = chan->held_count; left; left--, delay->further_events++)
		finish_first(delay, chan, CADGE_E_DOWN);
	shim_on_down(self, peer, code);
}

static enum cadge_keep on_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	const struct delay *delay = (const struct delay *)self;

	if (delay->receive_ns)
		spin(delay, shim_now_ns(), delay->receive_ns);
	return shim_on_recv(self, peer, data, bytes, lend);
}

static void on_notified(struct cadge_sink *self, uint32_t peer, struct cadge_region *region,
			uint64_t offset_bytes, uint64_t bytes)
{
	const struct delay *delay = (const struct delay *)self;

	if (delay->receive_ns)
		spin(delay, shim_now_ns(), delay->receive_ns);
	shim_on_notified(self, peer, region, offset_bytes, bytes);
}

/* ---- slots ---- */

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

/* How many steps a microsecond has: the most of 16 readings, since anything else that happens only takes them away. */
static uint64_t steps_per_us(uint64_t clock_ns)
{
	enum { STEPS = 4096 };
	uint64_t most = 1;

	for (int i = 0; i < 16; i++) {
		const uint64_t begin_ns = shim_now_ns();
		uint64_t spent_ns;

		step(STEPS);
		spent_ns = shim_now_ns() - begin_ns;
		spent_ns -= spent_ns > clock_ns ? clock_ns : 0;
		if (spent_ns && STEPS * UINT64_C(1000) / spent_ns > most)
			most = STEPS * UINT64_C(1000) / spent_ns;
	}
	return most;
}

static int delay_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	struct delay *delay = shim_new(args, sizeof(*delay) + args->peers_max * sizeof(delay->own_names[0]));
	uint64_t own_ns;
	int code;

	if (!delay)
		return CADGE_E_MEMORY;
	delay->shim.sink.up = on_up;
	delay->shim.sink.down = on_down;
	delay->shim.sink.recv = on_recv;
	delay->shim.sink.notified = on_notified;
	code = shim_open_inner(&delay->shim, args, "delay", take_setting);
	if (code == CADGE_DONE && (delay->stall_ns || delay->stall_every_ns) &&
	    (!delay->stall_ns || delay->stall_ns >= delay->stall_every_ns))
		code = shim_refuse(args, CADGE_E_ARGUMENT,
				   "shim-delay stalls for delay.stall_ns in every delay.stall_every_ns: give "
				   "both, and the second larger than the first");
	if (code == CADGE_DONE && delay->one_end && !delay->stall_ns && !delay->send_ns)
		code = shim_refuse(args, CADGE_E_ARGUMENT,
				   "delay.one_end is for stalls and for work to send: give delay.stall_ns or "
				   "delay.send_ns as well");
	if (code < 0) {
		shim_close(&delay->shim);
		return code;
	}
	delay->holds = delay->delay_ns || delay->stall_ns || delay->gap_ns || delay->byte_ps;
	if (delay->holds || delay->send_ns || delay->receive_ns)
		delay->clock_ns = clock_cost_ns();
	if (delay->send_ns || delay->receive_ns)
		delay->steps_per_us = steps_per_us(delay->clock_ns);
	own_ns = delay->holds ? 3 * delay->clock_ns : 0;
	delay->hold_ns = delay->delay_ns > own_ns ? delay->delay_ns - own_ns : 0;
	delay->shim.inner->limits(delay->shim.inner_ctx, &limits);
	delay->message_bytes_max = limits.message_bytes_max;
	delay->iov_max = limits.iov_max < IOV_MAX_HERE ? limits.iov_max : IOV_MAX_HERE;
	delay->depth = limits.depth_max < HELD_MAX ? limits.depth_max : HELD_MAX;
	*ctx_out = &delay->shim;
	return CADGE_DONE;
}

static void delay_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct delay *delay = (const struct delay *)ctx;
	struct cadge_limits limits = shim_limits_of_messages(ctx);

	if (delay->holds) {
		limits.depth_max = delay->depth;
		limits.iov_max = delay->iov_max;
	} else {
		struct cadge_limits inner = {.bytes = sizeof(inner)};

		ctx->inner->limits(ctx->inner_ctx, &inner);
		limits.caps |= inner.caps & SHIM_CAPS_ONE_SIDED;
		limits.rma_bytes_max = inner.rma_bytes_max;
	}
	cadge_fill(limits_out, &limits, sizeof(limits));
}

/* What an address is compared by (FNV-1a): of two ends each has both. */
static uint64_t name_of(const unsigned char *blob, size_t bytes)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ blob[i]) * UINT64_C(1099511628211);
	return hash;
}

static int delay_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	const int code = shim_address(ctx, peer, blob, bytes_inout);

	if (code == CADGE_DONE && peer < ctx->peers)
		((struct delay *)ctx)->own_names[peer] = name_of(blob, *bytes_inout);
	return code;
}

static int delay_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			 struct cadge_chan **chan_out)
{
	const struct delay *delay = (const struct delay *)ctx;
	const size_t held_bytes = delay->holds ? delay->depth * sizeof(struct held) : 0;
	const int code =
		shim_connect_as(ctx, sizeof(struct delay_chan) + held_bytes, peer, blob, bytes, chan_out);

	if (code >= 0)
		((struct delay_chan *)*chan_out)->is_spared =
			delay->one_end && delay->own_names[peer] > name_of(blob, bytes);
	return code;
}

static int delay_post(struct cadge_chan *shim_chan, const struct cadge_iov *iov, uint32_t count,
		      uint32_t flags, uint64_t token)
{
	struct delay *delay = (struct delay *)shim_chan->ctx;
	struct delay_chan *chan = (struct delay_chan *)shim_chan;
	uint64_t time_ns;
	struct held *held;
	size_t bytes;
	uint32_t at;
	int code;

	if (!delay->holds) {
		work(delay, chan);
		return worked(chan, delay->shim.inner->post(shim_chan->inner, iov, count, flags & ~CADGE_MORE,
							    token));
	}
	time_ns = shim_now_ns();
	code = cadge_iov_check(iov, count, delay->iov_max, delay->message_bytes_max, &bytes);
	if (code != CADGE_DONE)
		return code;
	if (chan->is_down)
		return CADGE_E_DOWN;
	if (!chan->is_up || chan->held_count == delay->depth)
		return CADGE_BUSY;
	at = chan->head + chan->held_count++;
	held = &chan->held[at < delay->depth ? at : at - delay->depth];
	if (delay->send_ns && !chan->is_spared) {
		spin(delay, time_ns, delay->send_ns);
		time_ns += delay->send_ns;
	}
	held->due_ns = due_ns(delay, chan, time_ns, bytes);
	held->token = token;
	held->flags = flags & ~CADGE_MORE; /* one by one, each at its own time */
	held->count = count;
	for (uint32_t i = 0; i < count; i++)
		held->iov[i] = iov[i];
	return CADGE_QUEUED;
}

static int delay_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
			uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	if (((const struct delay *)ctx)->holds)
		return CADGE_E_UNSUPPORTED;
	return shim_expose(ctx, base, bytes, rights, peer, flags, key, key_bytes_inout, region_out);
}

static int delay_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
			uint32_t flags, struct cadge_remote **remote_out)
{
	if (((const struct delay *)chan->ctx)->holds)
		return CADGE_E_UNSUPPORTED;
	return shim_attach(chan, key, key_bytes, intent, flags, remote_out);
}

/* A one-sided operation of the inner layer, worked for. */
#define WORKED(chan, slot, ...)                                                                              \
	do {                                                                                                 \
		struct delay *delay = (struct delay *)(chan)->ctx;                                           \
                                                                                                             \
		if (delay->holds || !delay->shim.inner->slot)                                                \
			return CADGE_E_UNSUPPORTED;                                                          \
		work(delay, (struct delay_chan *)(chan));                                                    \
		return worked((struct delay_chan *)(chan),                                                   \
			      delay->shim.inner->slot((chan)->inner, __VA_ARGS__));                          \
	} while (0)

static int delay_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	WORKED(chan, put, local, bytes, remote, offset_bytes, flags & ~CADGE_MORE, token);
}

static int delay_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	WORKED(chan, get, local, bytes, remote, offset_bytes, flags & ~CADGE_MORE, token);
}

static int delay_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
			   struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	WORKED(chan, fetch_add, addend, before_out, remote, offset_bytes, flags & ~CADGE_MORE, token);
}

static int delay_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired,
			      uint64_t *before_out, struct cadge_remote *remote, uint64_t offset_bytes,
			      uint32_t flags, uint64_t token)
{
	WORKED(chan, compare_swap, expected, desired, before_out, remote, offset_bytes, flags & ~CADGE_MORE,
	       token);
}

static int delay_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	if (((const struct delay *)chan->ctx)->holds)
		return CADGE_E_UNSUPPORTED;
	return shim_quiet(chan, flags, token);
}

static void delay_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	if (((const struct delay *)ctx)->holds)
		shim_semantics_of_messages(ctx, semantics_out);
	else
		shim_semantics(ctx, semantics_out);
}

/* Passes on what is due, or nearer to its time now than at the next poll. Returns the number of events. */
static int pass_on(struct delay *delay, struct delay_chan *chan, uint64_t time_ns)
{
	const struct cadge_layer *inner = delay->shim.inner;
	int events = 0;

	for (uint32_t left = chan->held_count; left && !chan->is_down; left--) {
		struct held *held = &chan->held[chan->head];
		int code;

		if (time_ns + delay->half_period_ns < held->due_ns)
			break;
		code = inner->post(chan->shim.inner, held->iov, held->count, held->flags, held->token);
		if (code == CADGE_BUSY)
			break;
		delay->held_messages++;
		delay->late_messages += time_ns > held->due_ns + PERIOD_NS_MAX;
		if (code == CADGE_QUEUED) {
			/* The inner layer's own event will carry the token. */
			chan->head = chan->head + 1 < delay->depth ? chan->head + 1 : 0;
			chan->held_count--;
			continue;
		}
		finish_first(delay, chan, code);
		events++;
	}
	return events;
}

static bool holds_any(const struct delay *delay)
{
	for (uint32_t i = 0; i < delay->shim.peers; i++)
		if (chan_of(delay, i) && chan_of(delay, i)->held_count)
			return true;
	return false;
}

/* The clock is read only while something is held. */
static int release_due(struct delay *delay)
{
	const uint64_t time_ns = shim_now_ns(), period_ns = time_ns - delay->polled_ns;
	int events = 0;

	if (delay->polled_ns && period_ns <= PERIOD_NS_MAX)
		delay->half_period_ns = (7 * delay->half_period_ns + period_ns / 2) / 8;
	for (uint32_t i = 0; i < delay->shim.peers; i++)
		if (chan_of(delay, i) && chan_of(delay, i)->held_count)
			events += pass_on(delay, chan_of(delay, i), time_ns);
	delay->polled_ns = events ? 0 : time_ns;
	return events;
}

static int delay_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct delay *delay = (struct delay *)ctx;
	int events = 0, code;

	ctx->outer = sink;
	if (holds_any(delay))
		events = release_due(delay);
	else
		delay->polled_ns = 0;
	delay->further_events = 0;
	code = ctx->inner->poll(ctx->inner_ctx, &ctx->sink);
	return code < 0 ? code : events + code + delay->further_events;
}

static int delay_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct delay *delay = (const struct delay *)chan->ctx;
	struct cadge_path path = {.bytes = sizeof(path)};
	const int code = chan->ctx->inner->describe_path(chan->inner, &path);

	if (code != CADGE_DONE)
		return code;
	if (delay->holds)
		shim_add_note(&path, "messages are held back for %llu ns",
			      (unsigned long long)delay->delay_ns);
	if (delay->send_ns || delay->receive_ns)
		shim_add_note(&path, "%llu ns of work to send, %llu to receive",
			      (unsigned long long)delay->send_ns, (unsigned long long)delay->receive_ns);
	if (delay->stall_ns)
		shim_add_note(&path, "none leaves for %llu of every %llu ns",
			      (unsigned long long)delay->stall_ns, (unsigned long long)delay->stall_every_ns);
	if (delay->one_end)
		shim_add_note(&path, "of two ends this is the one that %s",
			      ((const struct delay_chan *)chan)->is_spared ? "does not" : "does");
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

/* How long a caller may sleep for what is held: UINT64_MAX where nothing is, 0 where it is nearly due. */
static uint64_t sleep_ns(const struct delay *delay)
{
	uint64_t due_ns = UINT64_MAX, time_ns;

	for (uint32_t i = 0; i < delay->shim.peers; i++) {
		const struct delay_chan *chan = chan_of(delay, i);

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
	most_ns = sleep_ns((const struct delay *)ctx);
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
	most_ns = sleep_ns((const struct delay *)ctx);
	if (!most_ns)
		return CADGE_BUSY;
	code = ctx->inner->event(ctx->inner_ctx, fd_out, &due_ns);
	if (code == CADGE_DONE)
		*due_ns_out = due_ns < most_ns ? due_ns : most_ns;
	return code;
}

static void delay_counters(const struct cadge_ctx *ctx,
			   void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	const struct delay *delay = (const struct delay *)ctx;

	each(arg, "delay.held_messages", delay->held_messages);
	each(arg, "delay.late_messages", delay->late_messages);
	each(arg, "delay.worked_sends", delay->worked_sends);
	each(arg, "delay.worked_ns", delay->worked_ns);
	shim_counters(ctx, each, arg);
}

static const struct cadge_option delay_options[] = {
	{"delay_ns", "0", "How long each message is held back before it is sent, in nanoseconds."},
	{"stall_ns", "0", "For how long nothing is sent, again and again, in nanoseconds; 0: never."},
	{"stall_every_ns", "0", "From the beginning of one stall to that of the next, in nanoseconds."},
	{"one_end", "0",
	 "1: of two connected ends only one stalls, and works to send: that whose address comes first."},
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
	.caps = SHIM_CAPS_OF_MESSAGES | SHIM_CAPS_ONE_SIDED,
	.options = delay_options,
	.open = delay_open,
	.close = shim_close,
	.limits = delay_limits,
	.address = delay_address,
	.connect = delay_connect,
	.disconnect = shim_disconnect,
	.post = delay_post,
	.poll = delay_poll,
	.describe_path = delay_describe_path,
	.library = shim_library,
	.semantics = delay_semantics,
	.traits = shim_traits,
	.wait = delay_wait,
	.event = delay_event,
	.release = shim_release,
	.expose = delay_expose,
	.unexpose = shim_unexpose,
	.attach = delay_attach,
	.detach = shim_detach,
	.put = delay_put,
	.get = delay_get,
	.fetch_add = delay_fetch_add,
	.compare_swap = delay_compare_swap,
	.quiet = delay_quiet,
	.mem_alloc = shim_mem_alloc,
	.mem_free = shim_mem_free,
	.mem_reg = shim_mem_reg,
	.mem_dereg = shim_mem_dereg,
	.counters = delay_counters,
	.why = shim_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &delay_layer;
}
