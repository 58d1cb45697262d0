/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the contract says of itself as it grows: a slot writes no further than it was given, traits and threads
 * are as granted and stated.
 */
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "conformance.h"

#define CANARY       0xc5u
#define CANARY_BYTES 64u

/* One slot that fills a struct: calls it with `struct_bytes` at `at`. Returns its code. */
typedef int (*fill_fn)(struct endpoint *ep, void *at);

static int fill_limits(struct endpoint *ep, void *at)
{
	ep->layer->limits(ep->ctx, at);
	return CADGE_DONE;
}

static int fill_path(struct endpoint *ep, void *at)
{
	return ep->layer->describe_path(ep->peer[0].chan, at);
}

static int fill_library(struct endpoint *ep, void *at)
{
	(ep->r->inner ? ep->r->inner : ep->layer)->library(at);
	return CADGE_DONE;
}

static int fill_semantics(struct endpoint *ep, void *at)
{
	ep->layer->semantics(ep->ctx, at);
	return CADGE_DONE;
}

static int fill_traits(struct endpoint *ep, void *at)
{
	ep->layer->traits(ep->ctx, at);
	return CADGE_DONE;
}

/* A struct that may grow, and which of its bytes are the same whenever it is filled: no padding, no counts. */
struct growing {
	const char *name;
	fill_fn fill;
	size_t bytes, same_from, same_to;
};

/* The struct as a caller of another version has it, `bytes` long, between canaries. */
static int fill_as(struct endpoint *ep, const struct growing *what, const unsigned char *whole, size_t bytes)
{
	const size_t same_to = bytes < what->same_to ? bytes : what->same_to;
	const size_t whole_bytes = what->bytes;
	const char *name = what->name;
	unsigned char *room = malloc(bytes + 2 * CANARY_BYTES), *at = room + CANARY_BYTES;
	const uint32_t stated = (uint32_t)bytes;
	struct rank *r = ep->r;
	int code;

	if (!room)
		return fail(r, "the suite is out of memory");
	memset(room, CANARY, bytes + 2 * CANARY_BYTES);
	memset(at, 0, bytes);
	memcpy(at, &stated, sizeof(stated));
	code = what->fill(ep, at);
	if (code != CADGE_DONE)
		fail(r, "%s returned %d (%s)", name, code, cadge_code_name(code));
	for (size_t i = 0; i < CANARY_BYTES; i++)
		if (room[i] != CANARY || at[bytes + i] != CANARY)
			fail(r, "%s was given %zu bytes and wrote outside of them (its own version has %zu)",
			     name, bytes, whole_bytes);
	if (memcmp(at, &stated, sizeof(stated)) != 0)
		fail(r, "%s changed `bytes`", name);
	else if (same_to > what->same_from &&
		 memcmp(at + what->same_from, whole + what->same_from, same_to - what->same_from) != 0)
		fail(r, "%s answers differently when given %zu bytes", name, bytes);
	for (size_t i = whole_bytes; i < bytes; i++)
		if (at[i])
			fail(r, "%s wrote into what it cannot know, %zu bytes behind its own version", name,
			     i - whole_bytes);
	free(room);
	return r->verdict == VERDICT_NONE ? 0 : -1;
}

static int fill_all(struct endpoint *ep, const struct growing *what)
{
	const size_t whole_bytes = what->bytes;
	unsigned char *whole = calloc(1, whole_bytes);
	const uint32_t stated = (uint32_t)whole_bytes;
	const size_t sizes[] = {sizeof(uint32_t), 8,           whole_bytes / 2 / 8 * 8,
				whole_bytes - 8,  whole_bytes, whole_bytes + 8,
				whole_bytes + 256};
	int code = whole ? 0 : fail(ep->r, "the suite is out of memory");

	if (whole) {
		memcpy(whole, &stated, sizeof(stated));
		what->fill(ep, whole);
	}
	for (size_t i = 0; code == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++)
		code = fill_as(ep, what, whole, sizes[i]);
	free(whole);
	return code;
}

/* A caller of a later version has longer arguments, and a longer sink. */
static void longer_arguments(struct rank *r)
{
	struct {
		struct cadge_open_args args;
		unsigned char later[256];
	} longer;
	struct cadge_ctx *ctx = NULL;
	char error[256];
	int rc;

	memset(&longer, CANARY, sizeof(longer));
	endpoint_args(r, &wishes_default, error, sizeof(error), &longer.args);
	longer.args.bytes = sizeof(longer);
	rc = r->layer->open(&longer.args, &ctx);
	if (rc != CADGE_DONE)
		fail(r, "open with longer arguments than it knows returned %d (%s): %s", rc,
		     cadge_code_name(rc), error);
	else
		r->layer->close(ctx);
}

void test_structs_may_grow(struct rank *r)
{
	static const struct growing all[] = {
		{"limits", fill_limits, sizeof(struct cadge_limits), 8, sizeof(struct cadge_limits)},
		{"describe_path", fill_path, sizeof(struct cadge_path), 4, offsetof(struct cadge_path, used)},
		{"library", fill_library, sizeof(struct cadge_library), 8, sizeof(struct cadge_library)},
		{"semantics", fill_semantics, sizeof(struct cadge_semantics), 4,
		 sizeof(struct cadge_semantics)},
		{"traits", fill_traits, sizeof(struct cadge_traits), 4, sizeof(struct cadge_traits)},
	};
	struct endpoint *ep;

	if (!(r->caps & CADGE_CAP_ONE_INIT))
		longer_arguments(r);
	if (r->verdict != VERDICT_NONE || endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (fill_all(ep, &all[i]) < 0)
			return;
	endpoint_stop(ep);
}

void test_traits_as_granted(struct rank *r)
{
	struct cadge_traits traits = {.bytes = sizeof(traits)};
	struct endpoint *ep;
	uint64_t caps;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	ep->layer->traits(ep->ctx, &traits);
	caps = ep->limits.caps;
	if (traits.protection > CADGE_PROTECT_KERNEL_OR_NIC || traits.control_transfer > CADGE_CONTROL_NONE ||
	    traits.flow > CADGE_FLOW_LIBRARY || traits.order > CADGE_ORDER_CHANNEL ||
	    traits.waker > CADGE_WAKER_CADGE || traits.thread_role > CADGE_THREADS_PROGRESS ||
	    traits.multiprogramming > 1)
		fail(r, "a trait is outside its range");
	if (!(caps & CADGE_CAP_FLOW_CONTROL) != (traits.flow == CADGE_FLOW_NONE))
		fail(r, "FLOW_CONTROL is %s, and the trait says the opposite",
		     caps & CADGE_CAP_FLOW_CONTROL ? "granted" : "not granted");
	if (!(caps & CADGE_CAP_ORDERED) != (traits.order == CADGE_ORDER_NONE))
		fail(r, "ORDERED is %s, and the trait says the opposite",
		     caps & CADGE_CAP_ORDERED ? "granted" : "not granted");
	if (!(caps & CADGE_CAP_WAIT) != (traits.waker == CADGE_WAKER_NONE))
		fail(r, "WAIT is %s, and the trait says the opposite",
		     caps & CADGE_CAP_WAIT ? "granted" : "not granted");
	if (traits.control_transfer == CADGE_CONTROL_INTERRUPT && !(caps & CADGE_CAP_WAIT))
		fail(r, "an interrupt transfers control in a context that does not sleep");
	if (!(r->caps & CADGE_CAP_OWN_THREADS) && (traits.thread_role || traits.threads_max))
		fail(r, "the traits state threads, but OWN_THREADS is not claimed");
	if (!traits.thread_role != !traits.threads_max)
		fail(r, "the traits say %u threads at most, and a role that does not fit",
		     traits.threads_max);
	endpoint_stop(ep);
}

/* As many threads as stated, and none of them is needed for a message where they are said to keep house. */
void test_threads_as_stated(struct rank *r)
{
	struct flow f = {.seed = 86,
			 .messages = 2000,
			 .bytes_min = 64,
			 .bytes_max = 64,
			 .window = 1,
			 .send = rank_starts(r),
			 .receive = rank_answers(r),
			 .layer_memory = true};
	struct cadge_traits traits = {.bytes = sizeof(traits)};
	struct footprint before, after;
	struct endpoint *ep;
	uint64_t ran;

	footprint_take(&before);
	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	ep->layer->traits(ep->ctx, &traits);
	footprint_take(&after);
	/* MPI is there since the first test: the process has its threads from the beginning. */
	if (r->caps & CADGE_CAP_ONE_INIT)
		before.threads = 1;
	if (after.threads > before.threads + traits.threads_max) {
		fail(r, "the library runs more threads (%u) than stated (%u)", after.threads - before.threads,
		     traits.threads_max);
		return;
	}
	ran = other_threads_ran();
	if (flow_run(ep, 0, &f) < 0)
		return;
	ran = other_threads_ran() - ran;
	if (traits.thread_role == CADGE_THREADS_HOUSEKEEPING && ran > f.messages / 4) {
		fail(r, "threads stated as housekeeping ran %llu times in %llu messages",
		     (unsigned long long)ran, (unsigned long long)f.messages);
		return;
	}
	endpoint_stop(ep);
}

struct built {
	uint64_t seed;
	unsigned int arrived;
	size_t bytes_max;
};

static size_t built_bytes(const struct built *b, unsigned int i)
{
	static const uint32_t sizes[] = {16, 17, 64, 100, 1000, 4096, 5000, 20000, 60000};
	const size_t bytes = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];

	return bytes < b->bytes_max ? bytes : b->bytes_max;
}

static enum cadge_keep built_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct built *b = ep->arg;
	uint64_t sequence = 0;
	size_t wrong;

	(void)peer, (void)lend;
	if (!pattern_sequence(data, bytes, b->seed, &sequence) ||
	    bytes != built_bytes(b, (unsigned int)sequence) ||
	    !pattern_check(data, bytes, b->seed, sequence, &wrong))
		fail(ep->r, "a message of %zu bytes that was built in place did not arrive as built", bytes);
	b->arrived++;
	return CADGE_TAKEN;
}

/* Reserves, polling while BUSY. NULL after fail(). */
static void *reserve(struct endpoint *ep, size_t bytes)
{
	const uint64_t began = now_ns();
	void *base = NULL;
	int rc;

	while ((rc = ep->layer->reserve(ep->peer[0].chan, bytes, 0, &base)) == CADGE_BUSY) {
		const int got = endpoint_poll(ep);

		if (got < 0)
			return NULL;
		if (!got)
			endpoint_idle(ep);
		if (now_ns() - began > 8 * NS_PER_S) {
			fail(ep->r, "reserve stayed BUSY for 8 s");
			return NULL;
		}
	}
	if (rc != CADGE_DONE || !base || (uintptr_t)base % 8) {
		fail(ep->r, "reserve of %zu bytes returned %d (%s) and %p, which must be aligned to 8", bytes,
		     rc, cadge_code_name(rc), base);
		return NULL;
	}
	memset(base, 0xee, bytes); /* all of it is ours */
	return base;
}

static int commit(struct endpoint *ep, void *base, size_t bytes)
{
	const uint64_t began = now_ns();
	int busy, got;

	for (;;) {
		const uint64_t token = token_new(ep, NULL);

		busy = endpoint_account(ep, ep->layer->commit(ep->peer[0].chan, base, bytes, 0, token), token,
					"commit");
		if (busy <= 0)
			return busy;
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
		if (now_ns() - began > 8 * NS_PER_S)
			return fail(ep->r, "commit stayed BUSY for 8 s");
	}
}

/* Gives back everything it can have, again and again: what is not given back runs out. */
static int reserve_all(struct endpoint *ep)
{
	void *bases[256];

	for (unsigned int round = 0; round < 50; round++) {
		unsigned int count = 0;

		while (count < 256 &&
		       ep->layer->reserve(ep->peer[0].chan, 64, 0, &bases[count]) == CADGE_DONE)
			count++;
		if (!count)
			return fail(ep->r, "reserve has nothing left although all was given back");
		for (unsigned int i = 0; i < count; i++)
			memset(bases[i], (int)i, 64);
		while (count)
			ep->layer->cancel(ep->peer[0].chan, bases[--count]);
	}
	return 0;
}

void test_reserve_and_commit(struct rank *r)
{
	struct built b = {.seed = 87};
	const unsigned int messages = 200;
	uint64_t began;
	struct endpoint *ep;
	void *base;
	int rc;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (!(ep->limits.caps & CADGE_CAP_RESERVE)) {
		endpoint_stop(ep);
		skip(r, "RESERVE is not granted");
		return;
	}
	b.bytes_max = (size_t)ep->limits.message_bytes_max;
	ep->arg = &b;
	ep->on_recv = built_recv;
	if (oob_barrier(r) < 0)
		return;
	if (rank_starts(r)) {
		rc = ep->layer->reserve(ep->peer[0].chan, b.bytes_max + 1, 0, &base);
		if (rc != CADGE_E_TOO_LARGE) {
			fail(r, "reserve of message_bytes_max + 1 bytes returned %d (%s), not 'too large'",
			     rc, cadge_code_name(rc));
			return;
		}
		if (reserve_all(ep) < 0)
			return;
	}
	for (unsigned int i = 0; rank_starts(r) && i < messages; i++) {
		/* Every third one is longer than what is sent of it. */
		base = reserve(ep, built_bytes(&b, i) + (i % 3 || b.bytes_max < 60100 ? 0 : 100));
		if (!base)
			return;
		pattern_fill(base, built_bytes(&b, i), b.seed, i);
		if (commit(ep, base, built_bytes(&b, i)) < 0)
			return;
	}
	for (began = now_ns(); rank_answers(r) && b.arrived < messages;) {
		const int got = endpoint_poll(ep);

		if (got < 0)
			return;
		if (!got)
			endpoint_idle(ep);
		if (now_ns() - began > 8 * NS_PER_S * r->opt->scale) {
			fail(r, "%u of %u messages that were built in place arrived", b.arrived, messages);
			return;
		}
	}
	/* What is reserved goes with its channel. */
	if (rank_starts(r) && !reserve(ep, 64))
		return;
	if (oob_barrier(r) == 0)
		endpoint_stop(ep);
}
