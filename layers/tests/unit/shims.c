/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shims: how exact shim-delay is, and that it keeps order, depth and ends; what shim-fault drops; what shim-trace counts.
 */
#include <stdlib.h>
#include <string.h>

#include "cadge/sanitized.h"
#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

enum { MESSAGES = 2001 };

static int compare(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* The null layer, wrapped or not, connected to itself. */
static void open_self(struct pair_end *end, const struct cadge_layer *layer, const struct cadge_layer *inner,
		      const struct cadge_setting *settings, size_t settings_count)
{
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);

	args.place = CADGE_PLACE_SELF;
	args.inner = inner;
	args.settings = settings;
	args.settings_count = settings_count;
	if (pair_open(end, layer, &args) < 0)
		tap_bail(args.error);
	if (layer->connect(end->ctx, 0, end->blob, end->blob_bytes, &end->chan) < 0 ||
	    !pair_poll_until(end, NULL, &end->seen.ups, 1, 1000))
		tap_bail("the context does not reach itself");
}

/* Median time from post to recv. */
static uint64_t median_ns(const struct cadge_layer *layer, const struct cadge_layer *inner, const char *delay)
{
	static uint64_t spent_ns[MESSAGES];
	const struct cadge_setting setting = {"delay.delay_ns", delay};
	unsigned char payload[64] = {0};
	const struct cadge_iov iov = {payload, sizeof(payload)};
	struct pair_end end;

	open_self(&end, layer, inner, &setting, delay != NULL);
	for (int i = 0; i < MESSAGES; i++) {
		const uint64_t begin_ns = pair_now_ns();

		if (layer->post(end.chan, &iov, 1, 0, 1) < 0)
			tap_bail("post failed");
		while (end.seen.received <= i)
			if (layer->poll(end.ctx, &end.seen.sink) < 0)
				tap_bail("poll failed");
		spent_ns[i] = pair_now_ns() - begin_ns;
	}
	pair_close(&end);
	qsort(spent_ns, MESSAGES, sizeof(*spent_ns), compare);
	return spent_ns[MESSAGES / 2];
}

static void delay_is_exact(void)
{
	static const char *const delays[] = {"5000", "20000", "100000"};
	const struct cadge_layer *null = pair_load("null-self"), *shim = pair_load("shim-delay");

	for (size_t i = 0; i < sizeof(delays) / sizeof(*delays); i++) {
		const double asked = atof(delays[i]);
		/* Half a per cent, and the reading of the test's own clock; sanitized code is slower
		 * everywhere. */
		const double tolerance = asked * 0.005 + (CADGE_SANITIZED ? 2000 : 60);
		double error = 0;

		/* The median of one run is moved by what else the machine does; three tries. */
		for (int attempt = 0; attempt < 3; attempt++) {
			const uint64_t plain_ns = median_ns(null, NULL, NULL);

			error = (double)median_ns(shim, null, delays[i]) - (double)plain_ns - asked;
			if (error <= tolerance && error >= -tolerance)
				break;
		}
		ok(error <= tolerance && error >= -tolerance,
		   "shim-delay: a delay of %s ns is wrong by %.0f ns", delays[i], error);
	}
}

/* Through a real layer: many messages held at a time, in order, each with one sent event. */
static void delay_keeps_order(void)
{
	enum { BATCH = 60 };
	static const struct cadge_setting settings[] = {{"delay.delay_ns", "200000"},
							{"send_buffer_bytes", "300000"}};
	const struct cadge_layer *shim = pair_load("shim-delay");
	struct cadge_open_args args = pair_args(CADGE_WAIT_BLOCK);
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	static uint32_t numbers[BATCH], landing[BATCH];
	struct pair_end a, b;
	uint64_t begin_ns, first_ns = 0;
	bool in_order = true;
	int code;

	args.inner = pair_load("sockets-unix");
	args.settings = settings;
	args.settings_count = 2;
	if (pair_open(&a, shim, &args) < 0 || pair_open(&b, shim, &args) < 0 || !pair_bring_up(&a, &b))
		tap_bail(args.error);
	shim->limits(a.ctx, &limits);
	ok((limits.caps & CADGE_CAP_ORDERED) && (limits.caps & CADGE_CAP_WAIT) &&
		   !(limits.caps & CADGE_CAP_RPC),
	   "shim-delay: what the inner layer grants is granted");
	b.seen.data = (unsigned char *)landing;
	b.seen.data_room_bytes = sizeof(landing);
	begin_ns = pair_now_ns();
	for (uint32_t i = 0; i < BATCH; i++) {
		numbers[i] = i;
		if (pair_post(&a, NULL, &numbers[i], sizeof(numbers[i]), i) != CADGE_QUEUED)
			tap_bail("a message is not held");
	}
	while (b.seen.received < BATCH && pair_now_ns() - begin_ns < UINT64_C(2000000000)) {
		if (shim->poll(a.ctx, &a.seen.sink) < 0 || shim->poll(b.ctx, &b.seen.sink) < 0)
			tap_bail("poll failed");
		if (b.seen.received && !first_ns)
			first_ns = pair_now_ns() - begin_ns;
		if (b.seen.received < BATCH && shim->wait(a.ctx, 1000000000) < 0)
			tap_bail("wait failed");
	}
	for (uint32_t i = 0; i < BATCH; i++)
		in_order &= landing[i] == i && a.seen.sent_tokens[i] == i;
	ok(b.seen.received == BATCH && a.seen.sent == BATCH && in_order,
	   "shim-delay: %d held messages arrive in order, each with one sent event", b.seen.received);
	ok(first_ns >= 190000 && first_ns < 100000000,
	   "shim-delay: none early, and wait does not oversleep (%llu us)",
	   (unsigned long long)first_ns / 1000);
	for (code = 0;
	     code < 1000 && shim->post(a.chan, &(struct cadge_iov){numbers, 4}, 1, 0, 9) == CADGE_QUEUED;)
		code++;
	ok(code == (int)limits.depth_max, "shim-delay: BUSY comes at depth");
	a.seen.sent = 0;
	pair_close(&b);
	pair_poll_until(&a, NULL, &a.seen.downs, 1, 2000);
	ok(a.seen.downs == 1 && a.seen.sent == code,
	   "shim-delay: when the peer goes, each held message ends with an event");
	pair_close(&a);
}

/* Stalls of 5 in 20 ms: nothing arrives in one, and what was posted in it arrives when it is over. */
static void delay_stalls(void)
{
	enum { STALL_NS = 5000000, EVERY_NS = 20000000 };
	static const struct cadge_setting settings[] = {{"delay.stall_ns", "5000000"},
							{"delay.stall_every_ns", "20000000"}};
	const struct cadge_layer *shim = pair_load("shim-delay");
	const uint64_t begin_ns = pair_now_ns();
	unsigned char payload[8] = {0};
	const struct cadge_iov iov = {payload, sizeof(payload)};
	int early = 0, stalled = 0, others = 0, quick = 0;
	struct pair_end end;

	open_self(&end, shim, pair_load("null-self"), settings, 2);
	/* ten stalls, or more where other work had the processor in some of them */
	for (int i = 0; pair_now_ns() - begin_ns < (uint64_t)(stalled > 3 ? 10 : 200) * EVERY_NS; i++) {
		const uint64_t posted_ns = pair_now_ns(), into_ns = posted_ns % EVERY_NS;
		uint64_t arrived_ns;

		if (shim->post(end.chan, &iov, 1, 0, 1) < 0)
			tap_bail("post failed");
		while (end.seen.received <= i)
			if (shim->poll(end.ctx, &end.seen.sink) < 0)
				tap_bail("poll failed");
		arrived_ns = pair_now_ns();
		stalled += into_ns < STALL_NS;
		/* it leaves at the poll that is nearest to its time */
		early += into_ns < STALL_NS && arrived_ns - posted_ns + 10000 < STALL_NS - into_ns;
		others += into_ns >= STALL_NS;
		quick += into_ns >= STALL_NS && arrived_ns - posted_ns < 1000000;
	}
	ok(stalled > 3 && !early, "shim-delay: of %d messages posted in a stall, %d left before its end",
	   stalled, early);
	ok(others > 100 && quick * 10 > others * 9,
	   "shim-delay: outside of stalls %d of %d messages leave at once", quick, others);
	pair_close(&end);
}

/* Of two ends that stall for nearly ever one is spared, and says so. */
static void delay_stalls_one_end(void)
{
	static const struct cadge_setting settings[] = {{"delay.stall_ns", "9999000000"},
							{"delay.stall_every_ns", "10000000000"},
							{"delay.one_end", "1"}};
	const struct cadge_layer *shim = pair_load("shim-delay");
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct cadge_path paths[2] = {{.bytes = sizeof(*paths)}, {.bytes = sizeof(*paths)}};
	struct pair_end a, b;
	uint64_t begin_ns;

	args.inner = pair_load("sockets-unix");
	args.settings = settings;
	args.settings_count = 3;
	if (pair_open(&a, shim, &args) < 0 || pair_open(&b, shim, &args) < 0 || !pair_bring_up(&a, &b))
		tap_bail(args.error);
	while (pair_now_ns() % UINT64_C(10000000000) > UINT64_C(9900000000))
		; /* a stall is about to end */
	if (pair_post(&a, NULL, "a", 1, 1) < 0 || pair_post(&b, NULL, "b", 1, 1) < 0)
		tap_bail("post failed");
	begin_ns = pair_now_ns();
	while (pair_now_ns() - begin_ns < 20000000)
		if (shim->poll(a.ctx, &a.seen.sink) < 0 || shim->poll(b.ctx, &b.seen.sink) < 0)
			tap_bail("poll failed");
	ok(a.seen.received + b.seen.received == 1, "shim-delay: one end of two stalls");
	if (shim->describe_path(a.chan, &paths[0]) < 0 || shim->describe_path(b.chan, &paths[1]) < 0)
		tap_bail("describe_path failed");
	ok(strstr(paths[a.seen.received].note, "one that does not") &&
		   strstr(paths[b.seen.received].note, "one that does") &&
		   !strstr(paths[b.seen.received].note, "one that does not"),
	   "shim-delay: each end says which: %s", paths[0].note);
	pair_close(&a);
	pair_close(&b);
}

static void keep_work(void *arg, const char *name, uint64_t value)
{
	uint64_t *found = arg;

	if (strcmp(name, "delay.worked_sends") == 0)
		found[0] = value;
	else if (strcmp(name, "delay.worked_ns") == 0)
		found[1] = value;
}

/* What it says that it worked for is what its caller was kept for. */
static void delay_counts_its_work(void)
{
	enum { POSTS = 2000, SEND_NS = 20000 };
	static const struct cadge_setting setting = {"delay.send_ns", "20000"};
	const struct cadge_layer *shim = pair_load("shim-delay");
	static uint64_t spent_ns[POSTS];
	unsigned char payload[8] = {0};
	const struct cadge_iov iov = {payload, sizeof(payload)};
	uint64_t work[2] = {0};
	struct pair_end end;
	double said_ns, seen_ns;

	open_self(&end, shim, pair_load("null-self"), &setting, 1);
	for (int i = 0; i < POSTS; i++) {
		const uint64_t begin_ns = pair_now_ns();

		if (shim->post(end.chan, &iov, 1, 0, 1) < 0)
			tap_bail("post failed");
		spent_ns[i] = pair_now_ns() - begin_ns;
		if (shim->poll(end.ctx, &end.seen.sink) < 0)
			tap_bail("poll failed");
	}
	shim->counters(end.ctx, keep_work, work);
	pair_close(&end);
	qsort(spent_ns, POSTS, sizeof(*spent_ns), compare);
	seen_ns = (double)spent_ns[POSTS / 2];
	said_ns = work[0] ? (double)work[1] / (double)work[0] : 0;
	ok(work[0] == POSTS && said_ns >= SEND_NS &&
		   (CADGE_SANITIZED || (said_ns < seen_ns * 1.01 && said_ns > seen_ns * 0.98)),
	   "shim-delay: says that a send took %.0f ns, and its caller saw %.0f", said_ns, seen_ns);
}

/* A link of LogGP's parameters: when the last of some messages that are posted at once is there. */
static void delay_is_a_link(void)
{
	enum {
		COUNT = 5,
		BYTES = 101,
		SEND = 30000,
		RECEIVE = 70000,
		GAP = 200000,
		BYTE = 1000,
		DELAY = 400000
	};
	/* o_s spans g from post to post, less the first; the receiver works at each, in one thread the last is alone */
	const double known =
		SEND + (COUNT - 1) * (GAP + (BYTES - 1) * BYTE) + (BYTES - 1) * BYTE + DELAY + RECEIVE;
	static const struct cadge_setting settings[] = {{"delay.send_ns", "30000"},
							{"delay.receive_ns", "70000"},
							{"delay.gap_ns", "200000"},
							{"delay.byte_ps", "1000000"},
							{"delay.delay_ns", "400000"}};
	const struct cadge_layer *shim = pair_load("shim-delay");
	unsigned char payload[BYTES] = {0};
	const struct cadge_iov iov = {payload, sizeof(payload)};
	uint64_t least_posts_ns = UINT64_MAX, least_ns = UINT64_MAX;
	struct pair_end end;

	open_self(&end, shim, pair_load("null-self"), settings, 5);
	for (int i = 1; i <= 30; i++) {
		const uint64_t begin_ns = pair_now_ns();
		uint64_t posts_ns, spent_ns;

		for (int message = 0; message < COUNT; message++)
			if (shim->post(end.chan, &iov, 1, 0, 1) != CADGE_QUEUED)
				tap_bail("post failed");
		posts_ns = pair_now_ns() - begin_ns;
		while (end.seen.received < i * COUNT)
			if (shim->poll(end.ctx, &end.seen.sink) < 0)
				tap_bail("poll failed");
		spent_ns = pair_now_ns() - begin_ns;
		least_posts_ns = posts_ns < least_posts_ns ? posts_ns : least_posts_ns;
		least_ns = spent_ns < least_ns ? spent_ns : least_ns;
	}
	pair_close(&end);
	ok(least_posts_ns >= COUNT * SEND && (CADGE_SANITIZED || (double)least_posts_ns < COUNT * SEND * 1.1),
	   "shim-delay: %d posts of %d ns each keep their thread for %llu ns", COUNT, SEND,
	   (unsigned long long)least_posts_ns);
	ok((double)least_ns > known * 0.98 && (CADGE_SANITIZED || (double)least_ns < known * 1.02),
	   "shim-delay: a burst over a link whose parameters say %.0f ns takes %llu ns", known,
	   (unsigned long long)least_ns);
}

/* Posts numbered messages over a link that drops; what arrives of each hundred goes to `arrived`. Returns how many do. */
static int arrivals(const struct cadge_layer *shim, const struct cadge_layer *null,
		    const struct cadge_setting *settings, size_t count, int posts, unsigned char *arrived)
{
	int received = 0;
	struct pair_end end;

	open_self(&end, shim, null, settings, count);
	for (int i = 0; i < posts; i++) {
		uint64_t words[2] = {(uint64_t)i, 4711};

		if (shim->post(end.chan, &(struct cadge_iov){words, sizeof(words)}, 1, 0, 1) < 0 ||
		    shim->poll(end.ctx, &end.seen.sink) < 0)
			tap_bail("post or poll failed");
		arrived[i] = (unsigned char)(end.seen.received - received);
		received = end.seen.received;
	}
	pair_close(&end);
	return received;
}

static void fault_drops_as_told(void)
{
	enum { POSTS = 100000 };
	static unsigned char first[POSTS], again[POSTS], other[POSTS];
	static const struct cadge_setting one[] = {{"fault.drop_ppm", "10000"}, {"fault.seed", "7"}},
					  two[] = {{"fault.drop_ppm", "10000"}, {"fault.seed", "8"}},
					  runs[] = {{"fault.drop_ppm", "10000"}, {"fault.run", "20"}},
					  none[] = {{"fault.seed", "7"}}, bad[] = {{"fault.run", "0"}};
	const struct cadge_layer *shim = pair_load("shim-fault"), *null = pair_load("null-self");
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct cadge_ctx *ctx;
	struct pair_end end;
	int dropped = POSTS - arrivals(shim, null, one, 2, POSTS, first), changes = 0;

	/* 1000 on average, with a deviation of 31 */
	ok(dropped > 840 && dropped < 1160, "shim-fault: %d of 100000 are dropped where 1 %% should be",
	   dropped);
	arrivals(shim, null, one, 2, POSTS, again);
	arrivals(shim, null, two, 2, POSTS, other);
	ok(!memcmp(first, again, POSTS) && memcmp(first, other, POSTS),
	   "shim-fault: a seed repeats what is dropped, and another drops others");
	dropped = POSTS - arrivals(shim, null, runs, 2, POSTS, other);
	for (int i = 1; i < POSTS; i++)
		changes += other[i - 1] != other[i];
	/* 50 runs on average, with a deviation of 7 */
	ok(dropped > 400 && dropped < 1800 && changes < dropped / 5,
	   "shim-fault: %d are dropped in runs of 20, which begin or end %d times", dropped, changes);
	ok(arrivals(shim, null, none, 1, 1000, other) == 1000, "shim-fault: drops nothing unless told to");
	open_self(&end, shim, null, one, 2);
	shim->limits(end.ctx, &limits);
	ok(!(limits.caps & CADGE_CAP_RELIABLE), "shim-fault: what drops is not reliable");
	pair_close(&end);
	open_self(&end, shim, null, none, 1);
	shim->limits(end.ctx, &limits);
	ok(limits.caps & CADGE_CAP_RELIABLE, "shim-fault: what drops nothing is");
	pair_close(&end);
	args.place = CADGE_PLACE_SELF;
	args.inner = null;
	args.settings = bad;
	args.settings_count = 1;
	ok(shim->open(&args, &ctx) == CADGE_E_ARGUMENT, "%s", args.error);
}

static void settings_and_inner(void)
{
	const struct cadge_layer *shim = pair_load("shim-delay"), *null = pair_load("null-self");
	static const struct cadge_setting unknown = {"delay.height", "1"}, word = {"delay.delay_ns", "long"},
					  inner = {"delay_ns", "1"}, alone = {"delay.stall_ns", "5"},
					  one_end = {"delay.one_end", "1"};
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct cadge_ctx *ctx;

	args.place = CADGE_PLACE_SELF;
	ok(shim->open(&args, &ctx) == CADGE_E_ARGUMENT, "shim-delay: %s", args.error);
	args.inner = pair_load("shim-trace");
	ok(shim->open(&args, &ctx) == CADGE_E_UNSUPPORTED, "shim-delay: %s", args.error);
	args.inner = null;
	args.settings = &unknown;
	args.settings_count = 1;
	ok(shim->open(&args, &ctx) == CADGE_E_ARGUMENT, "%s", args.error);
	args.settings = &word;
	ok(shim->open(&args, &ctx) == CADGE_E_ARGUMENT, "%s", args.error);
	args.settings = &alone;
	ok(shim->open(&args, &ctx) == CADGE_E_ARGUMENT, "%s", args.error);
	args.settings = &one_end;
	ok(shim->open(&args, &ctx) == CADGE_E_ARGUMENT, "%s", args.error);
	args.settings = &inner;
	ok(shim->open(&args, &ctx) == CADGE_E_ARGUMENT, "a setting without prefix is the inner layer's: %s",
	   args.error);
}

struct count {
	uint64_t posts, polls, received, ring, ring_first;
};

static void add(void *arg, const char *name, uint64_t value)
{
	struct count *count = arg;

	if (strcmp(name, "calls.post") == 0)
		count->posts = value;
	else if (strcmp(name, "calls.poll") == 0)
		count->polls = value;
	else if (strcmp(name, "events.recv") == 0)
		count->received = value;
	else if (strncmp(name, "ring.", 5) == 0 && !count->ring++)
		count->ring_first = strtoull(name + 5, NULL, 10);
}

static void trace_counts(void)
{
	const struct cadge_setting setting = {"trace.entries", "16"};
	const struct cadge_layer *shim = pair_load("shim-trace"), *null = pair_load("null-self");
	struct cadge_limits limits = {.bytes = sizeof(limits)},
			    inner_limits = {.bytes = sizeof(inner_limits)};
	struct count count = {0};
	struct pair_end end, plain;

	open_self(&end, shim, null, &setting, 1);
	open_self(&plain, null, NULL, NULL, 0);
	shim->limits(end.ctx, &limits);
	null->limits(plain.ctx, &inner_limits);
	ok(limits.caps == (inner_limits.caps | CADGE_CAP_COUNTERS),
	   "shim-trace: grants what the inner layer grants");
	for (int i = 0; i < 100; i++)
		if (pair_post(&end, NULL, "x", 1, 1) < 0 ||
		    !pair_poll_until(&end, NULL, &end.seen.received, i + 1, 100))
			tap_bail("a message is missing");
	shim->counters(end.ctx, add, &count);
	ok(count.posts == 100 && count.received == 100 && count.polls >= 100,
	   "shim-trace: counts %llu posts, %llu messages, %llu polls", (unsigned long long)count.posts,
	   (unsigned long long)count.received, (unsigned long long)count.polls);
	ok(count.ring == 16 && count.ring_first > 100,
	   "shim-trace: keeps the last 16 entries, from number %llu on",
	   (unsigned long long)count.ring_first);
	ok(shim->flush(end.chan) == CADGE_E_UNSUPPORTED,
	   "shim-trace: a slot that the inner layer lacks says so");
	pair_close(&end);
	pair_close(&plain);
}

int main(void)
{
	delay_is_exact();
	delay_keeps_order();
	delay_stalls();
	delay_stalls_one_end();
	delay_counts_its_work();
	delay_is_a_link();
	fault_drops_as_told();
	settings_and_inner();
	trace_counts();
	return tap_done();
}
