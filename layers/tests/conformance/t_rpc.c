/* SPDX-License-Identifier: BSD-3-Clause */
/* Native calls: arguments, results, failures, delegation. */
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "conformance.h"

#define CALLS   48u
#define OP_FAIL 1000u /* and above: the server answers with an error */

struct served {
	uint32_t op;
	struct cadge_reply_to reply_to;
	bool due;
};

struct rpc {
	uint64_t seed;
	size_t bytes_max;
	/* server */
	struct served calls[CALLS];
	unsigned char *results;
	unsigned int calls_count;
	bool in_sink, later;
	/* client */
	unsigned char *args, *out;
	bool finished[CALLS];
	unsigned int finished_count;
	struct cadge_lend *kept;
	const void *kept_data;
	size_t kept_bytes;
	unsigned int kept_call;
};

/* Length of the arguments and of the result of call i. */
static size_t call_bytes(const struct rpc *rpc, unsigned int i, unsigned int side)
{
	static const uint32_t sizes[] = {0, 1, 8, 16, 64, 100, 1000, 4096, 5000, 20000};
	size_t bytes = sizes[(i * 7 + side * 3) % 10];

	return bytes < rpc->bytes_max ? bytes : rpc->bytes_max;
}

static bool placed_wanted(unsigned int i)
{
	return i % 3 != 0;
}

/* Answers call i. 0; 1: BUSY; -1 after fail(). */
static int answer(struct endpoint *ep, struct rpc *rpc, unsigned int i)
{
	unsigned int id = rpc->calls[i].op % OP_FAIL;
	size_t bytes = call_bytes(rpc, id, 1);
	struct cadge_iov iov[2];
	uint64_t token;
	int rc;

	if (rpc->calls[i].op >= OP_FAIL) {
		rc = ep->layer->fail(ep->ctx, &rpc->calls[i].reply_to, CADGE_E_ARGUMENT, 0);
		if (rc != CADGE_BUSY && rc != CADGE_DONE)
			return fail(ep->r, "the slot fail returned %d (%s)", rc, cadge_code_name(rc));
		return rc == CADGE_BUSY;
	}
	iov[0] = (struct cadge_iov){.base = rpc->results + id * rpc->bytes_max, .bytes = bytes / 2};
	iov[1] = (struct cadge_iov){.base = rpc->results + id * rpc->bytes_max + bytes / 2,
				    .bytes = bytes - bytes / 2};
	pattern_fill(iov[0].base, bytes, rpc->seed + 1, id);
	token = token_new(ep, NULL);
	rc = ep->layer->reply(ep->ctx, &rpc->calls[i].reply_to, iov, 2, 0, token);
	return endpoint_account(ep, rc, token, "reply");
}

static bool delivered_twice(struct endpoint *ep, const struct rpc *rpc, uint32_t op)
{
	for (unsigned int i = 0; i < rpc->calls_count; i++)
		if (rpc->calls[i].op == op) {
			fail(ep->r, "call %u was delivered twice", op % OP_FAIL);
			return true;
		}
	return false;
}

static void rpc_on_call(struct endpoint *ep, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			const struct cadge_reply_to *reply_to)
{
	struct rpc *rpc = ep->arg;
	struct served *call;
	size_t wrong;
	int busy;

	(void)peer;
	if (delivered_twice(ep, rpc, op))
		return;
	if (rpc->calls_count == CALLS || op % OP_FAIL >= CALLS) {
		fail(ep->r, "unexpected call of procedure %u: nobody made it", op);
		return;
	}
	if (bytes != call_bytes(rpc, op % OP_FAIL, 0) ||
	    !pattern_check(args, bytes, rpc->seed, op % OP_FAIL, &wrong)) {
		fail(ep->r, "the %zu bytes of arguments of call %u did not arrive as given", bytes,
		     op % OP_FAIL);
		return;
	}
	call = &rpc->calls[rpc->calls_count];
	call->op = op;
	call->reply_to = *reply_to;
	call->due = true;
	/* Half of them at once, half of them later and in another order, as far as that is granted. */
	if (rpc->in_sink && (op % 2 || !rpc->later)) {
		busy = answer(ep, rpc, rpc->calls_count);
		call->due = busy > 0;
		if (busy > 0 && !rpc->later)
			fail(ep->r, "reply inside the sink returned BUSY, but REPLY_LATER is not granted");
	}
	rpc->calls_count++;
}

static enum cadge_keep rpc_on_replied(struct endpoint *ep, void *token_arg, int code,
				      enum cadge_placement placement, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct rpc *rpc = ep->arg;
	unsigned int i = (unsigned int)(uintptr_t)token_arg;
	struct rank *r = ep->r;
	size_t wrong = 0;

	if (i >= CALLS || rpc->finished[i]) {
		fail(r, "a result came for a call that has one");
		return CADGE_TAKEN;
	}
	rpc->finished[i] = true;
	rpc->finished_count++;
	if (i % 5 == 4) {
		if (code != CADGE_E_ARGUMENT)
			fail(r, "the server failed a call with %d, the caller got %d", CADGE_E_ARGUMENT,
			     code);
		return CADGE_TAKEN;
	}
	if (code != CADGE_DONE)
		fail(r, "call %u ended with %d (%s)", i, code, cadge_code_name(code));
	else if (bytes != call_bytes(rpc, i, 1))
		fail(r, "the result of call %u has %zu bytes, %zu were given", i, bytes,
		     call_bytes(rpc, i, 1));
	else if (placement == CADGE_PLACED && !placed_wanted(i))
		fail(r, "the result of call %u is stated as placed, but no out_iov was given", i);
	else if (!pattern_check(placement == CADGE_PLACED ? rpc->out + i * rpc->bytes_max : data, bytes,
				rpc->seed + 1, i, &wrong))
		fail(r, "the result of call %u is wrong at offset %zu (%s)", i, wrong,
		     placement == CADGE_PLACED ? "placed" : "lent");
	if (placement == CADGE_LENT && lend && !rpc->kept && bytes >= 16) {
		rpc->kept = lend;
		rpc->kept_data = data;
		rpc->kept_bytes = bytes;
		rpc->kept_call = i;
		return CADGE_KEEP;
	}
	return CADGE_TAKEN;
}

static int call_one(struct endpoint *ep, uint32_t peer, struct rpc *rpc, unsigned int i)
{
	size_t bytes = call_bytes(rpc, i, 0), room = call_bytes(rpc, i, 1);
	struct cadge_iov in[2], out = {.base = rpc->out + i * rpc->bytes_max, .bytes = room};
	uint64_t token, began = now_ns();
	int rc, busy, got;

	in[0] = (struct cadge_iov){.base = rpc->args + i * rpc->bytes_max, .bytes = bytes / 3};
	in[1] = (struct cadge_iov){.base = rpc->args + i * rpc->bytes_max + bytes / 3,
				   .bytes = bytes - bytes / 3};
	pattern_fill(in[0].base, bytes, rpc->seed, i);
	memset(out.base, 0xee, room);
	for (;;) {
		token = token_new(ep, (void *)(uintptr_t)i);
		rc = ep->layer->call(ep->peer[peer].chan, i % 5 == 4 ? OP_FAIL + i : i, in, 2, &out,
				     placed_wanted(i) ? 1 : 0, 0, token);
		busy = endpoint_account(ep, rc, token, "call");
		if (busy < 0)
			return -1;
		if (rc == CADGE_DONE)
			return fail(ep->r, "call returned DONE, which is not allowed");
		if (!busy)
			return 0;
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
		if (now_ns() - began > 8 * NS_PER_S)
			return fail(ep->r, "call stayed BUSY for 8 s");
	}
}

static int rpc_loop(struct endpoint *ep, uint32_t peer, struct rpc *rpc, bool client, bool server)
{
	unsigned int made = 0, answered = 0;
	uint64_t moved_ns = now_ns();
	int got, busy;

	while ((client && rpc->finished_count < CALLS) || (server && answered < CALLS)) {
		if (client && made < CALLS) {
			if (call_one(ep, peer, rpc, made++) < 0)
				return -1;
		}
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (got)
			moved_ns = now_ns();
		else
			endpoint_idle(ep);
		/*
		 * The last first. Outside the sink, and only when a few have gathered or nothing else
		 * happens.
		 */
		for (unsigned int i = rpc->calls_count;
		     server && i-- > 0 && (!got || rpc->calls_count % 4 == 0);) {
			if (!rpc->calls[i].due)
				continue;
			busy = answer(ep, rpc, i);
			if (busy < 0)
				return -1;
			rpc->calls[i].due = busy > 0;
		}
		for (answered = 0; answered < rpc->calls_count && !rpc->calls[answered].due;)
			answered++;
		if (now_ns() - moved_ns > 8 * NS_PER_S)
			return fail(ep->r, "%u of %u calls were answered, then nothing for 8 s",
				    client ? rpc->finished_count : answered, CALLS);
	}
	return endpoint_drain(ep);
}

static int rpc_buffers(struct endpoint *ep, struct rpc *rpc)
{
	rpc->bytes_max =
		(size_t)(ep->limits.message_bytes_max < 20000 ? ep->limits.message_bytes_max : 20000);
	rpc->in_sink = ep->limits.caps & CADGE_CAP_REPLY_IN_SINK;
	rpc->later = ep->limits.caps & CADGE_CAP_REPLY_LATER;
	rpc->args = buffer_new(ep, CALLS * rpc->bytes_max);
	rpc->out = buffer_new(ep, CALLS * rpc->bytes_max);
	rpc->results = buffer_new(ep, CALLS * rpc->bytes_max);
	ep->arg = rpc;
	ep->on_call = rpc_on_call;
	ep->on_replied = rpc_on_replied;
	return rpc->args && rpc->out && rpc->results ? 0 : -1;
}

static int rpc_finish(struct endpoint *ep, struct rpc *rpc)
{
	size_t wrong;

	if (rpc->kept) {
		if (!pattern_check(rpc->kept_data, rpc->kept_bytes, rpc->seed + 1, rpc->kept_call, &wrong))
			return fail(ep->r, "a kept result changed at offset %zu before it was released",
				    wrong);
		ep->layer->release(ep->ctx, rpc->kept);
	}
	buffer_free(ep, rpc->args, CALLS * rpc->bytes_max);
	buffer_free(ep, rpc->out, CALLS * rpc->bytes_max);
	buffer_free(ep, rpc->results, CALLS * rpc->bytes_max);
	return 0;
}

void test_native_rpc(struct rank *r)
{
	struct rpc rpc = {.seed = 71};
	struct endpoint *ep;
	uint64_t token;
	int rc;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (!(ep->limits.caps & CADGE_CAP_RPC)) {
		endpoint_stop(ep);
		skip(r, "RPC is not granted");
		return;
	}
	if (rpc_buffers(ep, &rpc) < 0 || oob_barrier(r) < 0 ||
	    rpc_loop(ep, 0, &rpc, rank_starts(r), rank_answers(r)) < 0 || oob_barrier(r) < 0)
		return;
	if (rank_starts(r) && ep->limits.message_bytes_max < UINT64_C(1) << 32) {
		struct cadge_iov big = {.base = rpc.args, .bytes = (size_t)ep->limits.message_bytes_max + 1};

		token = token_new(ep, NULL);
		rc = ep->layer->call(ep->peer[0].chan, 1, &big, 1, NULL, 0, 0, token);
		token_drop(ep, token);
		if (rc != CADGE_E_TOO_LARGE) {
			fail(r, "call with message_bytes_max + 1 bytes returned %d (%s), not 'too large'", rc,
			     cadge_code_name(rc));
			return;
		}
	}
	if (oob_barrier(r) < 0 || rpc_finish(ep, &rpc) < 0)
		return;
	endpoint_stop(ep);
}

/*
 * Rank 1 calls rank 0, which delegates each call to rank 2, which answers; rank 1 must not see the
 * difference.
 */
static void delegate_on_call(struct endpoint *ep, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			     const struct cadge_reply_to *reply_to)
{
	struct rpc *rpc = ep->arg;
	struct served *call = &rpc->calls[rpc->calls_count];

	(void)peer;
	if (rpc->calls_count == CALLS || op % OP_FAIL >= CALLS) {
		fail(ep->r, "unexpected call of procedure %u: nobody made it", op);
		return;
	}
	rpc->calls_count++;
	call->op = op;
	call->reply_to = *reply_to;
	call->due = true;
	memcpy(rpc->args + op % OP_FAIL * rpc->bytes_max, args, bytes);
}

static int delegate_loop(struct endpoint *ep, struct rpc *rpc)
{
	uint64_t moved_ns = now_ns(), token;
	unsigned int passed = 0;
	struct cadge_iov iov;
	int got, busy;

	while (passed < CALLS || ep->outstanding) {
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
		if (passed < rpc->calls_count) {
			struct served *call = &rpc->calls[passed];
			unsigned int id = call->op % OP_FAIL;

			iov = (struct cadge_iov){.base = rpc->args + id * rpc->bytes_max,
						 .bytes = call_bytes(rpc, id, 0)};
			token = token_new(ep, NULL);
			busy = endpoint_account(ep,
						ep->layer->delegate(ep->peer[1].chan, &call->reply_to,
								    call->op, &iov, 1, 0, token),
						token, "delegate");
			if (busy < 0)
				return -1;
			passed += !busy;
			moved_ns = now_ns();
		}
		if (now_ns() - moved_ns > 8 * NS_PER_S)
			return fail(ep->r, "%u of %u calls came to be delegated, then nothing for 8 s",
				    passed, CALLS);
	}
	return 0;
}

void test_rpc_delegate(struct rank *r)
{
	struct rpc rpc = {.seed = 72};
	struct endpoint *ep;
	int rc;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (!(ep->limits.caps & CADGE_CAP_DELEGATE)) {
		endpoint_stop(ep);
		skip(r, "DELEGATE is not granted");
		return;
	}
	if (rpc_buffers(ep, &rpc) < 0)
		return;
	if (r->number == 0)
		ep->on_call = delegate_on_call;
	if (oob_barrier(r) < 0)
		return;
	rc = r->number == 0 ? delegate_loop(ep, &rpc) : rpc_loop(ep, 0, &rpc, r->number == 1, r->number == 2);
	if (rc < 0 || oob_barrier(r) < 0 || rpc_finish(ep, &rpc) < 0)
		return;
	endpoint_stop(ep);
}
