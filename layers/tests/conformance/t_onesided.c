/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get, fetch-and-add: values, visibility, and who does the work at the target. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cadge/check.h"
#include "rma.h"

#define REGION_BYTES (1024u * 1024u)
/* How long an operation may take while its target is stopped. */
#define STOPPED_NS (150 * NS_PER_MS)

/* Starts and opens a region. 1: this layer has none of `caps` (skip was called). */
static int begin(struct rank *r, uint64_t caps, struct endpoint **ep_out, struct rma *rma)
{
	if (endpoint_start(r, &wishes_default, ep_out) < 0)
		return -1;
	if (!((*ep_out)->limits.caps & caps)) {
		endpoint_stop(*ep_out);
		skip(r, "no one-sided operation of this kind is granted");
		return 1;
	}
	return rma_open(rma, *ep_out, REGION_BYTES);
}

static void end(struct rma *rma)
{
	if (rma_close(rma) == 0)
		endpoint_stop(rma->ep);
}

struct spot {
	uint64_t offset, bytes;
};

static size_t spots_fill(struct spot *spots, size_t spots_max, uint64_t bytes_max)
{
	static const uint32_t sizes[] = {1,   2,   3,    7,    8,    9,    15,   16,    63,    64,    65,
					 100, 255, 1000, 4095, 4096, 4099, 8191, 30000, 65536, 65537, 200000};
	size_t count = 0;
	uint64_t at = 64;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && count < spots_max; i++) {
		if (sizes[i] > bytes_max || at + sizes[i] + 64 > REGION_BYTES)
			break;
		spots[count].offset = at;
		spots[count++].bytes = sizes[i];
		at += sizes[i] + 3 + i % 5; /* odd gaps, which must stay untouched */
	}
	return count;
}

/* What the region must hold after the puts: patterns at the spots and 0 elsewhere. */
static int spots_check(struct rank *r, const unsigned char *base, const struct spot *spots, size_t count,
		       uint64_t seed)
{
	uint64_t at = 0;
	size_t wrong;

	for (size_t i = 0; i <= count; i++) {
		uint64_t end_of_gap = i < count ? spots[i].offset : REGION_BYTES;

		for (; at < end_of_gap; at++)
			if (base[at])
				return fail(r,
					    "put touched the byte at offset %llu, which lies outside of what "
					    "was put",
					    (unsigned long long)at);
		if (i == count)
			break;
		if (!pattern_check(base + at, (size_t)spots[i].bytes, seed, i, &wrong))
			return fail(r,
				    "a put of %llu bytes is wrong at offset %zu after quiet and a message "
				    "out of band",
				    (unsigned long long)spots[i].bytes, wrong);
		at += spots[i].bytes;
	}
	return 0;
}

static int put_values(struct rma *rma, const struct spot *spots, size_t count)
{
	struct rank *r = rma->ep->r;

	if (rank_starts(r)) {
		for (size_t i = 0; i < count; i++) {
			pattern_fill(rma->local + spots[i].offset, (size_t)spots[i].bytes, 51, i);
			if (rma_put(rma, rma->local + spots[i].offset, (size_t)spots[i].bytes,
				    spots[i].offset) < 0)
				return -1;
			if (i % 3 == 0 && endpoint_drain(rma->ep) < 0)
				return -1;
		}
		if (rma_quiet(rma) < 0 || endpoint_drain(rma->ep) < 0)
			return -1;
	}
	if (oob_barrier(r) < 0)
		return -1;
	if (rank_answers(r) && spots_check(r, rma->base, spots, count, 51) < 0)
		return -1;
	return oob_barrier(r);
}

static int get_values(struct rma *rma, const struct spot *spots, size_t count)
{
	struct rank *r = rma->ep->r;
	size_t wrong;

	if (rank_answers(r))
		for (size_t i = 0; i < count; i++)
			pattern_fill(rma->base + spots[i].offset, (size_t)spots[i].bytes, 52, i);
	if (oob_barrier(r) < 0)
		return -1;
	if (!rank_starts(r))
		return oob_barrier(r);
	memset(rma->local, 0xcc, rma->bytes);
	for (size_t i = 0; i < count; i++) {
		unsigned char *at = rma->local + spots[i].offset;

		if (rma_get(rma, at, (size_t)spots[i].bytes, spots[i].offset) < 0 ||
		    endpoint_drain(rma->ep) < 0)
			return -1;
		if (!pattern_check(at, (size_t)spots[i].bytes, 52, i, &wrong))
			return fail(r, "a get of %llu bytes is wrong at offset %zu",
				    (unsigned long long)spots[i].bytes, wrong);
		if (at[-1] != 0xcc || at[spots[i].bytes] != 0xcc)
			return fail(r, "a get of %llu bytes wrote outside of its buffer",
				    (unsigned long long)spots[i].bytes);
	}
	return oob_barrier(r);
}

#define ADDS 64u

static int fetch_add_values(struct rma *rma)
{
	const uint64_t addend = UINT64_C(0x100000001), first = UINT64_MAX - 5;
	uint64_t *before = (uint64_t *)(void *)rma->local, word;
	struct rank *r = rma->ep->r;
	unsigned char seen[ADDS] = {0};

	if (rank_answers(r)) {
		memset(rma->base, 0, 256);
		memcpy(rma->base + 72, &first, 8);
	}
	if (oob_barrier(r) < 0)
		return -1;
	if (rank_starts(r)) {
		/* Many at once on one word: each must see another multiple. */
		for (unsigned int i = 0; i < ADDS; i++)
			if (rma_fetch_add(rma, addend, &before[i], 128) < 0)
				return -1;
		if (endpoint_drain(rma->ep) < 0)
			return -1;
		for (unsigned int i = 0; i < ADDS; i++) {
			word = before[i] / addend;
			if (before[i] % addend || word >= ADDS || seen[word]++)
				return fail(r, "%u fetch_adds of 0x%llx on a zero: one saw 0x%llx before",
					    ADDS, (unsigned long long)addend, (unsigned long long)before[i]);
		}
		/* Over the top of 64 bits. */
		if (rma_fetch_add(rma, 10, &before[0], 72) < 0 || endpoint_drain(rma->ep) < 0 ||
		    rma_fetch_add(rma, 0, &before[1], 72) < 0 || endpoint_drain(rma->ep) < 0)
			return -1;
		if (before[0] != first || before[1] != first + 10)
			return fail(r, "fetch_add(10) on 0x%llx saw 0x%llx, and left 0x%llx",
				    (unsigned long long)first, (unsigned long long)before[0],
				    (unsigned long long)before[1]);
	}
	if (oob_barrier(r) < 0)
		return -1;
	if (rank_answers(r)) {
		memcpy(&word, rma->base + 128, 8);
		if (word != addend * ADDS)
			return fail(r, "after %u fetch_adds the target holds 0x%llx", ADDS,
				    (unsigned long long)word);
		memcpy(&word, rma->base + 120, 8);
		if (word)
			return fail(r, "fetch_add touched the word before its own");
	}
	return oob_barrier(r);
}

/* Swaps where the word is as expected, and leaves it alone where not; a chain of swaps counts up. */
static int compare_swap_values(struct rma *rma)
{
	uint64_t *before = (uint64_t *)(void *)rma->local, word;
	struct rank *r = rma->ep->r;

	if (rank_answers(r))
		memset(rma->base, 0, 256);
	if (oob_barrier(r) < 0)
		return -1;
	if (rank_starts(r)) {
		if (rma_compare_swap(rma, 1, 99, &before[0], 192) < 0 || endpoint_drain(rma->ep) < 0)
			return -1;
		for (uint64_t i = 0; i < 20; i++) {
			if (before[0] != i)
				return fail(r, "compare_swap saw 0x%llx where 0x%llx was written",
					    (unsigned long long)before[0], (unsigned long long)i);
			if (rma_compare_swap(rma, i, i + 1, &before[0], 192) < 0 ||
			    endpoint_drain(rma->ep) < 0)
				return -1;
			if (before[0] != i)
				return fail(r, "compare_swap(0x%llx) saw 0x%llx before",
					    (unsigned long long)i, (unsigned long long)before[0]);
			before[0] = i + 1;
		}
	}
	if (oob_barrier(r) < 0)
		return -1;
	if (rank_answers(r)) {
		memcpy(&word, rma->base + 192, 8);
		if (word != 20)
			return fail(r, "after 20 swaps, each by one, the target holds 0x%llx",
				    (unsigned long long)word);
		memcpy(&word, rma->base + 200, 8);
		if (word)
			return fail(r, "compare_swap touched the word behind its own");
	}
	return oob_barrier(r);
}

void test_put_get_fetch_add(struct rank *r)
{
	struct spot spots[32];
	struct endpoint *ep;
	struct rma rma;
	uint64_t token;
	size_t count;
	int rc;

	if (begin(r, RMA_CAPS, &ep, &rma) != 0)
		return;
	count = spots_fill(spots, 32, ep->limits.rma_bytes_max);
	if ((ep->limits.caps & CADGE_CAP_PUT) && put_values(&rma, spots, count) < 0)
		return;
	if ((ep->limits.caps & CADGE_CAP_GET) && get_values(&rma, spots, count) < 0)
		return;
	if ((ep->limits.caps & CADGE_CAP_FETCH_ADD) && fetch_add_values(&rma) < 0)
		return;
	if ((ep->limits.caps & CADGE_CAP_COMPARE_SWAP) && compare_swap_values(&rma) < 0)
		return;
	if ((ep->limits.caps & CADGE_CAP_PUT) && !(ep->limits.caps & CADGE_CAP_NOTIFY) && rank_starts(r)) {
		rc = ep->layer->put(ep->peer[0].chan, rma.local, 8, rma.remote, 0, CADGE_NOTIFY, 1);
		if (rc != CADGE_E_UNSUPPORTED) {
			fail(r, "NOTIFY is not granted; put with it returned %d (%s), not 'unsupported'", rc,
			     cadge_code_name(rc));
			return;
		}
	}
	if ((ep->limits.caps & CADGE_CAP_PUT) && rank_starts(r) && ep->limits.rma_bytes_max < REGION_BYTES) {
		token = token_new(ep, NULL);
		rc = ep->layer->put(ep->peer[0].chan, rma.local, (size_t)ep->limits.rma_bytes_max + 1,
				    rma.remote, 0, 0, token);
		if (rc != CADGE_E_TOO_LARGE) {
			fail(r, "put of rma_bytes_max + 1 bytes returned %d (%s), not 'too large'", rc,
			     cadge_code_name(rc));
			return;
		}
		token_drop(ep, token);
	}
	end(&rma);
}

#define ROUNDS 200u
#define PUTS   8u

void test_quiet_is_visible(struct rank *r)
{
	struct endpoint *ep;
	struct rma rma;
	unsigned char seen[2048];
	size_t bytes, wrong = 0;
	int visible;

	if (begin(r, CADGE_CAP_PUT, &ep, &rma) != 0)
		return;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (rank_starts(r)) {
			for (unsigned int i = 0; i < PUTS; i++) {
				bytes = 16 + (round * 131 + i * 57) % 2000;
				pattern_fill(rma.local + i * 2048, bytes, 53 + round, i);
				if (rma_put(&rma, rma.local + i * 2048, bytes, i * 2048) < 0)
					return;
			}
			if (rma_quiet(&rma) < 0)
				return;
			visible = round % 3 == 2 ? rma_quiet_again(&rma) : 0;
			if (visible < 0 || (!visible && endpoint_drain(ep) < 0))
				return;
			/* Now, before anybody is told. */
			for (unsigned int i = 0; i < PUTS && rma.can_peek; i++) {
				bytes = 16 + (round * 131 + i * 57) % 2000;
				if (rma_peek(&rma, i * 2048, seen, bytes) < 0 ||
				    !pattern_check(seen, bytes, 53 + round, i, &wrong)) {
					fail(r,
					     "quiet was complete, and put %u of round %u (%zu bytes) was not "
					     "yet in the "
					     "target's memory at offset %zu",
					     i, round, bytes, wrong);
					return;
				}
			}
			if (endpoint_drain(ep) < 0)
				return;
		}
		/* Without the right to look from outside the target looks; meeting in each round is dear. */
		if (rma.can_peek && round % 20 != 19)
			continue;
		if (oob_barrier(r) < 0)
			return;
		for (unsigned int i = 0; rank_answers(r) && i < PUTS; i++) {
			bytes = 16 + (round * 131 + i * 57) % 2000;
			if (!pattern_check(rma.base + i * 2048, bytes, 53 + round, i, &wrong)) {
				fail(r, "put %u of round %u is wrong at offset %zu after quiet", i, round,
				     wrong);
				return;
			}
		}
		if (oob_barrier(r) < 0)
			return;
	}
	end(&rma);
}

/* Polls for at most limit_ns. 1: nothing is outstanding any more; 0: still something; -1 after fail(). */
static int poll_for(struct endpoint *ep, uint64_t limit_ns)
{
	uint64_t began = now_ns();
	int got;

	while (ep->outstanding && now_ns() - began < limit_ns) {
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got && ep->r->opt->wait_mode == CADGE_WAIT_POLL)
			endpoint_idle(ep);
	}
	return !ep->outstanding;
}

struct proof {
	const char *name;
	uint64_t cap;
	enum cadge_progress claimed;
	bool direct; /* completed and was visible while the target was stopped */
};

/* One operation of each kind against a stopped target. `size` bytes for put and get. */
static int prove(struct rma *rma, struct proof *proof, size_t size, uint64_t round)
{
	struct endpoint *ep = rma->ep;
	uint64_t *word = (uint64_t *)(void *)(rma->local + REGION_BYTES - 64), seen = 0;
	unsigned char *at = rma->local;
	int done = 0;
	size_t wrong = 0;
	void *copy = malloc(size);

	if (!copy)
		return fail(ep->r, "the suite is out of memory");
	proof->direct = false;
	switch (proof->cap) {
	case CADGE_CAP_PUT:
		pattern_fill(at, size, 60 + round, 0);
		if (rma_put(rma, at, size, 0) < 0 || rma_quiet(rma) < 0)
			break;
		done = poll_for(ep, STOPPED_NS);
		proof->direct =
			done > 0 && (!rma->can_peek || (rma_peek(rma, 0, copy, size) == 0 &&
							pattern_check(copy, size, 60 + round, 0, &wrong)));
		break;
	case CADGE_CAP_GET:
		memset(at, 0, size);
		if (rma_get(rma, at, size, 512 * 1024) < 0)
			break;
		done = poll_for(ep, STOPPED_NS);
		proof->direct = done > 0 && pattern_check(at, size, 59, 0, &wrong);
		break;
	case CADGE_CAP_COMPARE_SWAP:
		if (rma_compare_swap(rma, 0, 7, word, REGION_BYTES - 192) < 0)
			break;
		done = poll_for(ep, STOPPED_NS);
		proof->direct =
			done > 0 && (!rma->can_peek || (rma_peek(rma, REGION_BYTES - 192, &seen, 8) == 0 &&
							seen == 7 && *word == 0));
		break;
	default:
		if (rma_fetch_add(rma, 7, word, REGION_BYTES - 128) < 0)
			break;
		done = poll_for(ep, STOPPED_NS);
		proof->direct =
			done > 0 && (!rma->can_peek ||
				     (rma_peek(rma, REGION_BYTES - 128, &seen, 8) == 0 && seen == *word + 7));
		break;
	}
	free(copy);
	return ep->r->verdict == VERDICT_NONE ? 0 : -1;
}

static int stop_target(struct rank *r, pid_t pid)
{
	struct timespec nap = {.tv_nsec = 1000000};

	if (kill(pid, SIGSTOP) < 0)
		return fail(r, "the suite cannot stop the peer");
	for (unsigned int i = 0; i < 1000 && !process_is_stopped(pid); i++)
		nanosleep(&nap, NULL);
	return process_is_stopped(pid) ? 0 : fail(r, "the peer did not stop");
}

static const char *progress_name(enum cadge_progress progress)
{
	static const char *const names[] = {"none", "direct", "library", "cadge"};

	return progress <= CADGE_PROGRESS_CADGE ? names[progress] : "out of range";
}

static int semantics_rounds(struct rma *rma, struct proof *proof)
{
	/* get reads a pattern of each size from the same place, so the place holds one for each round */
	static const size_t sizes[] = {8, 256, 4096};
	struct rank *r = rma->ep->r;
	unsigned int direct = 0, rounds = proof->cap == CADGE_CAP_PUT || proof->cap == CADGE_CAP_GET ? 3 : 1;
	int rc;

	for (unsigned int i = 0; i < rounds; i++) {
		if (rank_answers(r))
			pattern_fill(rma->base + 512 * 1024, sizes[i], 59, 0);
		if (oob_barrier(r) < 0)
			return -1;
		if (rank_starts(r)) {
			if (stop_target(r, r->pids[1]) < 0)
				return -1;
			rc = prove(rma, proof, sizes[i], i);
			if (kill(r->pids[1], SIGCONT) < 0 || rc < 0)
				return rc < 0 ? -1 : fail(r, "the suite cannot continue the peer");
			if (endpoint_drain(rma->ep) < 0)
				return -1;
			direct += proof->direct;
			if (proof->claimed == CADGE_PROGRESS_DIRECT && !proof->direct)
				return fail(r,
					    "%s is claimed to be direct, but %zu bytes were not there while "
					    "the target "
					    "was stopped",
					    proof->name, sizes[i]);
		}
		if (oob_barrier(r) < 0)
			return -1;
	}
	/* Without a look from outside, completion alone does not prove that the claim is too modest. */
	if (rank_starts(r) && rma->can_peek && direct == rounds && proof->claimed != CADGE_PROGRESS_DIRECT)
		return fail(r,
			    "%s is claimed to be %s, but it completed and was visible while the target was "
			    "stopped",
			    proof->name, progress_name(proof->claimed));
	return 0;
}

void test_semantics_proved(struct rank *r)
{
	struct cadge_semantics said = {.bytes = sizeof(said)};
	struct endpoint *ep;
	struct rma rma;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	ep->layer->semantics(ep->ctx, &said);
	if (said.message == CADGE_PROGRESS_NONE || said.message > CADGE_PROGRESS_CADGE) {
		fail(r, "semantics states that messages are '%s'", progress_name(said.message));
		return;
	}
	struct proof proofs[] = {
		{.name = "put", .cap = CADGE_CAP_PUT, .claimed = said.put},
		{.name = "get", .cap = CADGE_CAP_GET, .claimed = said.get},
		{.name = "fetch_add", .cap = CADGE_CAP_FETCH_ADD, .claimed = said.fetch_add},
		{.name = "compare_swap", .cap = CADGE_CAP_COMPARE_SWAP, .claimed = said.compare_swap}};
	const unsigned int proofs_count = sizeof(proofs) / sizeof(proofs[0]);

	for (unsigned int i = 0; i < proofs_count; i++)
		if (!(ep->limits.caps & proofs[i].cap) != (proofs[i].claimed == CADGE_PROGRESS_NONE)) {
			fail(r, "%s is %s, and semantics says '%s'", proofs[i].name,
			     ep->limits.caps & proofs[i].cap ? "granted" : "not granted",
			     progress_name(proofs[i].claimed));
			return;
		}
	if (!(ep->limits.caps & RMA_CAPS)) {
		endpoint_stop(ep);
		return;
	}
	if (rma_open(&rma, ep, REGION_BYTES) < 0)
		return;
	for (unsigned int i = 0; i < proofs_count; i++)
		if ((ep->limits.caps & proofs[i].cap) && semantics_rounds(&rma, &proofs[i]) < 0)
			return;
	end(&rma);
}

/* Exposes `bytes` at `base` with these rights, and tells `to` the key. -1 after fail(). */
static int grant(struct endpoint *ep, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		 unsigned int to, struct cadge_region **region_out)
{
	unsigned char key[2048];
	size_t key_bytes = sizeof(key);
	const int rc = ep->layer->expose(ep->ctx, base, bytes, rights, peer, 0, key, &key_bytes, region_out);

	if (rc != CADGE_DONE)
		return fail(ep->r, "expose with rights %u returned %d (%s)", rights, rc, cadge_code_name(rc));
	return oob_send(ep->r, to, key, key_bytes);
}

static int attach_as(struct endpoint *ep, uint32_t peer, const void *key, size_t key_bytes, uint32_t intent,
		     int want, struct cadge_remote **remote_out)
{
	const int rc = ep->layer->attach(ep->peer[peer].chan, key, key_bytes, intent, 0, remote_out);

	return rc == want ? 0
			  : fail(ep->r, "attach for intent %u returned %d (%s), it should be %d (%s)", intent,
				 rc, cadge_code_name(rc), want, cadge_code_name(want));
}

/* An operation that must be refused, at once or by its event. */
static int refused_op(struct endpoint *ep, int rc, uint64_t token, const char *what)
{
	const unsigned int before = ep->refused;

	if (rc == CADGE_E_REFUSED) {
		token_drop(ep, token);
		return 0;
	}
	if (rc != CADGE_QUEUED)
		return fail(ep->r, "%s without the right for it returned %d (%s), not 'refused'", what, rc,
			    cadge_code_name(rc));
	if (endpoint_drain(ep) < 0)
		return -1;
	return ep->refused > before ? 0 : fail(ep->r, "%s without the right for it was carried out", what);
}

/* The starter's side: the key allows reading alone. */
static int may_only_read(struct endpoint *ep, const void *key, size_t key_bytes, unsigned char *local)
{
	struct cadge_remote *remote;
	uint64_t token;
	size_t wrong;
	int busy;

	if (attach_as(ep, 0, key, key_bytes, CADGE_MAY_WRITE, CADGE_E_REFUSED, &remote) < 0 ||
	    attach_as(ep, 0, key, key_bytes, CADGE_MAY_ALL, CADGE_E_REFUSED, &remote) < 0 ||
	    attach_as(ep, 0, key, key_bytes, CADGE_MAY_READ, CADGE_DONE, &remote) < 0)
		return -1;
	token = token_new(ep, NULL);
	busy = endpoint_account(ep, ep->layer->get(ep->peer[0].chan, local, 64, remote, 0, 0, token), token,
				"get");
	if (busy || endpoint_drain(ep) < 0)
		return busy > 0 ? fail(ep->r, "get was BUSY with nothing outstanding") : -1;
	if (!pattern_check(local, 64, 88, 0, &wrong))
		return fail(ep->r, "a permitted get is wrong at offset %zu", wrong);
	memset(local, 0xee, 64);
	token = token_new(ep, NULL);
	if (refused_op(ep, ep->layer->put(ep->peer[0].chan, local, 64, remote, 0, 0, token), token, "put") <
	    0)
		return -1;
	ep->layer->detach(ep->peer[0].chan, remote);
	return 0;
}

/* Rank 1 exposes to rank 0 alone, and for reading alone; rank 2 tries with the same key. */
void test_rights_hold(struct rank *r)
{
	struct cadge_region *region = NULL;
	struct cadge_remote *remote;
	unsigned char key[2048], *memory, *local;
	struct endpoint *ep;
	uint32_t peer;
	size_t key_bytes, wrong;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (!(ep->limits.caps & CADGE_CAP_RIGHTS) || !(ep->limits.caps & CADGE_CAP_GET) ||
	    !(ep->limits.caps & CADGE_CAP_PUT)) {
		endpoint_stop(ep);
		skip(r, "RIGHTS with put and get are not granted");
		return;
	}
	ep->may_be_refused = true;
	memory = buffer_new(ep, 4096);
	local = buffer_new(ep, 4096);
	if (!memory || !local || oob_barrier(r) < 0)
		return;
	if (rank_answers(r)) {
		pattern_fill(memory, 64, 88, 0);
		peer = 0; /* rank 0 is the first peer of rank 1, and of itself at place self */
		if (grant(ep, memory, 4096, CADGE_MAY_READ, peer, 0, &region) < 0)
			return;
	}
	if (rank_starts(r)) {
		if (oob_recv(r, r->count > 1 ? 1 : 0, key, sizeof(key), &key_bytes) < 0 ||
		    may_only_read(ep, key, key_bytes, local) < 0)
			return;
		if (r->count > 2 && oob_send(r, 2, key, key_bytes) < 0)
			return;
	}
	if (r->number == 2) {
		if (oob_recv(r, 0, key, sizeof(key), &key_bytes) < 0 ||
		    attach_as(ep, 1, key, key_bytes, CADGE_MAY_READ, CADGE_E_REFUSED, &remote) < 0)
			return;
	}
	if (oob_barrier(r) < 0)
		return;
	if (rank_answers(r) && !pattern_check(memory, 64, 88, 0, &wrong)) {
		fail(r, "a put without the right for it changed the byte at offset %zu", wrong);
		return;
	}
	if (region)
		ep->layer->unexpose(ep->ctx, region);
	if (oob_barrier(r) < 0)
		return;
	buffer_free(ep, memory, 4096);
	buffer_free(ep, local, 4096);
	endpoint_stop(ep);
}

#define NOTICES 60u

struct notices {
	struct rma *rma;
	unsigned int seen;
};

static uint64_t notice_bytes(unsigned int i)
{
	return 16 + i * 131 % 2000;
}

static void notice_seen(struct endpoint *ep, uint32_t peer, struct cadge_region *region,
			uint64_t offset_bytes, uint64_t bytes)
{
	struct notices *n = ep->arg;
	const uint64_t i = offset_bytes / 4096;
	size_t wrong;

	(void)peer;
	n->seen++;
	if (region != n->rma->region)
		fail(ep->r, "a notification names another region than the one that was written");
	else if (offset_bytes % 4096 || i >= NOTICES || bytes != notice_bytes((unsigned int)i))
		fail(ep->r, "a notification states %llu bytes at offset %llu, which no put wrote",
		     (unsigned long long)bytes, (unsigned long long)offset_bytes);
	else if (!pattern_check(n->rma->base + offset_bytes, (size_t)bytes, 89, i, &wrong))
		fail(ep->r, "the target was notified of put %llu before byte %zu of it was there",
		     (unsigned long long)i, wrong);
}

void test_put_notifies(struct rank *r)
{
	struct endpoint *ep;
	struct rma rma;
	struct notices n = {.rma = &rma};
	uint64_t began;

	if (begin(r, CADGE_CAP_NOTIFY, &ep, &rma) != 0)
		return;
	ep->arg = &n;
	ep->on_notified = notice_seen;
	if (oob_barrier(r) < 0)
		return;
	for (unsigned int i = 0; rank_starts(r) && i < NOTICES; i++) {
		unsigned char *at = rma.local + i * 4096;

		pattern_fill(at, (size_t)notice_bytes(i), 89, i);
		/* Every fourth put is silent: only the others are told of. */
		if (rma_put_with(&rma, at, (size_t)notice_bytes(i), i * 4096, i % 4 == 3 ? 0 : CADGE_NOTIFY) <
		    0)
			return;
	}
	for (began = now_ns(); rank_answers(r) && n.seen < NOTICES - NOTICES / 4;) {
		const int got = endpoint_poll(ep);

		if (got < 0)
			return;
		if (!got)
			endpoint_idle(ep);
		if (now_ns() - began > 8 * NS_PER_S) {
			fail(r, "%u of %u notifications came", n.seen, NOTICES - NOTICES / 4);
			return;
		}
	}
	if (endpoint_drain(ep) < 0 || oob_barrier(r) < 0 || endpoint_poll(ep) < 0)
		return;
	if (rank_answers(r) && n.seen != NOTICES - NOTICES / 4)
		fail(r, "notifications: %u came, %u were asked for", n.seen, NOTICES - NOTICES / 4);
	if (r->verdict == VERDICT_NONE)
		end(&rma);
}
