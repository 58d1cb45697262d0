/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that end before their answer comes: deadlines of their own, and calls that are cancelled. */
#include "caller.h"

enum { BYTES = 40 };

/* A call under `arg`, whose result goes to t.out. */
static void call_as(void *arg, uint32_t bytes)
{
	const struct pgr_iov in = {pattern, bytes}, out = {t.out, sizeof(t.out)};

	t.seen_count = 0;
	CHECK(pgr_call(t.peer, ECHO, NULL, &in, 1, &out, 1, 0, on_done, arg) == PGR_QUEUED);
}

static void poll_once(void)
{
	t.seen_count = 0;
	pgr_poll(t.pgr);
}

static bool ended(unsigned int done, int code)
{
	return t.done == done && t.code == code;
}

/* What comes after the end changes nothing, and the server need not keep it. */
static void test_deadline(void)
{
	struct pgr_header result;
	uint64_t sequence;
	int one_call, another;

	open_endpoint(NULL);
	learn_server();
	memset(t.out, 0x55, sizeof(t.out));
	call_as(&one_call, BYTES);
	result = result_of(BYTES);
	sequence = result.sequence;
	CHECK(pgr_deadline(t.peer, &another, MS) == 0);
	CHECK(pgr_deadline(t.peer, &one_call, 30 * MS) == 1 && pgr_next_due(t.pgr) <= net_now_ns() + 30 * MS);
	pass(29 * MS);
	CHECK(t.done == 0);
	pass(2 * MS);
	CHECK(ended(1, PGR_E_DEADLINE) && pgr_deadline(t.peer, &one_call, 0) == 0);
	t.seen_count = 0;
	put(&result, pattern);
	CHECK(t.done == 1 && t.out[0] == 0x55);
	/* an idle slot says that it needs nothing */
	pass(25 * MS);
	CHECK(t.seen_count && t.seen[t.seen_count - 1].packet.head.type == PGR_ACK &&
	      t.seen[t.seen_count - 1].packet.head.sequence == sequence &&
	      t.seen[t.seen_count - 1].packet.head.packet_number == 1 &&
	      !t.seen[t.seen_count - 1].packet.head.packet_bytes);
	/* the number is spent; the next call has no deadline, and succeeds */
	call_as(&one_call, BYTES);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->sequence == sequence + 1);
	pass(SECOND);
	CHECK(t.done == 1);
	result = result_of(BYTES);
	put(&result, pattern);
	CHECK(ended(2, PGR_OK) && !memcmp(t.out, pattern, BYTES));
}

/* The earlier one of two deadlines holds; words of the server put no deadline off. */
static void test_two_deadlines(void)
{
	int arg;

	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < 2; i++) {
		struct pgr_header alive;

		t.done = 0;
		call_as(&arg, BYTES);
		alive = answer_of(PGR_ALIVE);
		CHECK(pgr_deadline(t.peer, &arg, (i ? 20 : 50) * MS) == 1 &&
		      pgr_deadline(t.peer, &arg, (i ? 50 : 20) * MS) == 1);
		put(&alive, NULL);
		pass(18 * MS);
		put(&alive, NULL);
		CHECK(t.done == 0);
		pass(4 * MS);
		CHECK(ended(1, PGR_E_DEADLINE));
	}
	/* none at all, and one that never comes */
	t.done = 0;
	call_as(&arg, BYTES);
	CHECK(pgr_deadline(t.peer, &arg, UINT64_MAX) == 1);
	pass(9 * SECOND);
	CHECK(t.done == 0);
	CHECK(pgr_deadline(t.peer, &arg, 0) == 1);
	pass(MS);
	CHECK(ended(1, PGR_E_DEADLINE));
}

/* `done` runs in the next poll, whatever else that has to do; all calls of this arg are meant, and no others. */
static void test_cancel(void)
{
	int first, second;
	struct pgr_header result;

	open_endpoint(NULL);
	learn_server();
	call_as(&first, BYTES);
	call_as(&first, BYTES);
	call_as(&second, BYTES);
	result = result_of(BYTES);
	CHECK(pgr_cancel(t.peer, &t) == 0 && pgr_cancel(t.peer, &first) == 2 && t.done == 0);
	net_inject(t.pgr, &t.to, &result, 10); /* junk, so that there is something to receive */
	poll_once();
	CHECK(ended(2, PGR_E_CANCELLED));
	put(&result, pattern);
	CHECK(ended(3, PGR_OK));
	CHECK(pgr_cancel(t.peer, &second) == 0);
}

/* One that waits for credits leaves nothing behind, and is never sent. */
static void test_cancel_before_it_left(void)
{
	static int args[PGR_SLOTS];
	unsigned int sent = 0;

	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < PGR_SLOTS; i++) {
		call_as(&args[i], BYTES);
		sent += t.seen_count;
	}
	CHECK(sent == CREDITS);
	for (unsigned int i = 0; i < PGR_SLOTS; i++)
		CHECK(pgr_cancel(t.peer, &args[i]) == 1);
	poll_once();
	CHECK(ended(PGR_SLOTS, PGR_E_CANCELLED) && t.seen_count == 0 && !t.peer->queued &&
	      !t.peer->under_way);
	/* only what left is acknowledged */
	pass(25 * MS);
	CHECK(t.seen_count == CREDITS && t.seen[0].packet.head.type == PGR_ACK);
}

/* Part of a long result is here: the rest goes nowhere, and the server is told that it is not needed. */
static void test_cancel_a_long_one(void)
{
	const uint32_t bytes = 5 * DATA_BYTES;
	struct pgr_header head;
	int arg;

	open_endpoint(NULL);
	learn_server();
	call_as(&arg, bytes);
	head = answer_of(PGR_RESULT);
	memset(t.out, 0x55, sizeof(t.out));
	for (uint32_t i = 0; i < 2; i++) {
		part(&head, bytes, i);
		put(&head, pattern + i * DATA_BYTES);
	}
	CHECK(!memcmp(t.out, pattern, 2 * DATA_BYTES) && t.done == 0);
	CHECK(pgr_cancel(t.peer, &arg) == 1);
	poll_once();
	CHECK(ended(1, PGR_E_CANCELLED) && !t.peer->under_way);
	part(&head, bytes, 2);
	put(&head, pattern + 2 * DATA_BYTES);
	CHECK(t.out[2 * DATA_BYTES] == 0x55);
	pass(25 * MS);
	CHECK(t.seen_count && t.seen[t.seen_count - 1].packet.head.type == PGR_ACK &&
	      t.seen[t.seen_count - 1].packet.head.packet_number == 1 &&
	      !t.seen[t.seen_count - 1].packet.head.packet_bytes);
	call_as(&arg, BYTES);
	head = result_of(BYTES);
	put(&head, pattern);
	CHECK(ended(2, PGR_OK));
}

/* The server: a result that nobody needs is let go, whatever its length, and not asked for again. */
static void test_server_hears_so(void)
{
	struct pgr_header ack;

	open_endpoint(NULL);
	make_known();
	put_call(1, LONG, 0, 0);
	CHECK(t.seen_count == LONG_PACKETS && t.sent == 0);
	ack = bare_of(PGR_ACK, 1);
	ack.packet_number = 1;
	ack.packet_bytes = 0;
	put(&ack, NULL);
	CHECK(silent() && t.sent == 1 && stats()->pool_bytes == t.pgr->works_count * sizeof(struct pgr_work));
}

/* On a wire that loses nothing: no packet more than the call. */
static void test_reliable(void)
{
	struct pgr_header result;
	int arg;

	t.reliable = true;
	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < 2; i++) {
		t.done = 0;
		call_as(&arg, BYTES);
		CHECK(t.seen_count == 1);
		result = result_of(BYTES);
		CHECK(i ? pgr_cancel(t.peer, &arg) == 1 : pgr_deadline(t.peer, &arg, 5 * MS) == 1);
		pass(6 * MS);
		CHECK(ended(1, i ? PGR_E_CANCELLED : PGR_E_DEADLINE));
		t.seen_count = 0;
		put(&result, pattern);
		pass(30 * MS);
		CHECK(t.done == 1 && silent());
	}
	t.done = 0;
	call_as(&arg, BYTES);
	result = result_of(BYTES);
	put(&result, pattern);
	pass(SECOND / 4);
	CHECK(ended(1, PGR_OK));
}

const struct protocol_test protocol_client_hasty[] = {
	{"client: a deadline", test_deadline},
	{"client: two deadlines", test_two_deadlines},
	{"client: cancelled calls", test_cancel},
	{"client: cancelled before it left", test_cancel_before_it_left},
	{"client: cancelled in the middle of a result", test_cancel_a_long_one},
	{"server: a result that is not needed", test_server_hears_so},
	{"client: deadlines on a wire that loses nothing", test_reliable},
	{NULL, NULL},
};
