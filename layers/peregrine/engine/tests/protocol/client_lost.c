/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client does while nothing comes: time-outs, round-trip times, giving up, calls that others overtake. */
#include "caller.h"

static void test_client_lost(void)
{
	static const unsigned int due_ms[] = {10, 20, 40, 80, 160, 250, 250};
	struct pgr_header head;
	unsigned int waited_ms, tries;

	open_endpoint(NULL);
	call(10, 0);
	/* Nothing comes: said again, with ask, counted; the time-out doubles, to a fortieth of the give-up
	 * time. */
	for (unsigned int i = 0; i < sizeof(due_ms) / sizeof(due_ms[0]); i++) {
		unsigned int halves = 0;

		for (t.seen_count = 0; silent() && halves < 1000; halves++)
			pass(MS / 2);
		CHECK(halves >= 2 * due_ms[i] - 1 && halves <= 2 * due_ms[i] + 1);
		CHECK(one(PGR_CALL) && one(PGR_CALL)->retransmissions == i + 1 &&
		      (one(PGR_CALL)->flags & PGR_FLAG_ASK) && one(PGR_CALL)->sequence == 1);
	}
	/* Karn: no round-trip time from a call that was repeated, whichever sending was answered. */
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	head = result_of(10);
	put(&head, pattern);
	CHECK(t.done == 1 && stats()->rto_ns == 0);
	for (unsigned int i = 0; i < 64; i++) {
		call(10, 0);
		head = result_of(10);
		pass(12 * MS);
		CHECK(t.seen_count == 2);
		put(&head, pattern);
		CHECK(t.done == 1 && stats()->rto_ns == 0);
	}
	/* From one that was not: RFC 6298, of a sample of 4 ms: 4 + 4 * 2. */
	for (unsigned int i = 0; i < 8; i++) {
		call(10, 0);
		head = result_of(10);
		pass(4 * MS);
		put(&head, pattern);
	}
	CHECK(stats()->rto_ns == 12 * MS);
	/* An answer that repeats another count than that of the call is no sample. */
	for (unsigned int i = 0; i < 8; i++) {
		call(10, 0);
		head = result_of(10);
		head.retransmissions = 1;
		pass(MS);
		put(&head, pattern);
	}
	CHECK(stats()->rto_ns == 12 * MS);
	/* Silence: given up after the give-up time, with at least forty tries in it. */
	call(10, 0);
	for (waited_ms = 0, tries = 0; !t.done && waited_ms < 11000; waited_ms++)
		pass(MS);
	tries = t.seen_count;
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP && waited_ms >= 9999 && waited_ms <= 10010 &&
	      tries >= 40 && tries < 60);
	/* What comes after that is dropped. */
	head = result_of(10);
	put(&head, pattern);
	CHECK(t.done == 1 && silent());
}

/*
 * Nobody looks at the clock while nobody polls: a call waits for its answer from when it leaves, however long the
 * endpoint lay idle before. On both ways, the short one included.
 */
static void test_client_idle(void)
{
	for (unsigned int reliable = 0; reliable < 2; reliable++) {
		struct pgr_header head;

		t.reliable = reliable;
		open_endpoint(NULL);
		learn_server();
		for (unsigned int i = 0; i < 4; i++) {
			net_pass_time(11 * SECOND);
			call(10, 0);
			head = result_of(10);
			pass(MS);
			CHECK(t.done == 0 && t.seen_count == 1);
			put(&head, pattern);
			CHECK(t.done == 1 && t.code == PGR_OK);
		}
		/* a long result whose server pauses, and is heard again after a while without polls */
		call(10, 0);
		head = result_of(LONG_BYTES);
		part(&head, LONG_BYTES, 0);
		put(&head, pattern);
		net_pass_time(9 * SECOND);
		part(&head, LONG_BYTES, 1);
		put(&head, pattern + DATA_BYTES);
		pass(2 * SECOND);
		CHECK(t.done == 0);
		close_endpoint();
	}
}

/* Silence doubles the time-out of a long result; a part of it that comes is news, and begins anew. */
static void test_client_part_is_news(void)
{
	unsigned int first = 0;
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	call(10, 0);
	head = result_of(LONG_BYTES);
	for (unsigned int round = 0; round < 2; round++) {
		part(&head, LONG_BYTES, round);
		put(&head, pattern + round * DATA_BYTES);
		for (unsigned int i = 0; i < 4; i++) {
			unsigned int halves = 0;

			for (t.seen_count = 0; silent() && halves < 1000; halves++)
				pass(MS / 2);
			if (!first)
				first = halves;
			CHECK(halves + 1 >= first << i && halves <= (first << i) + 1);
			CHECK(t.seen_count == 1 && t.seen[0].packet.head.retransmissions == i + 1);
		}
	}
	CHECK(first > 1 && t.done == 0);
}

/* The first sample is not the time of two exchanges. */
static void test_client_first_sample(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	call(10, 0);
	pass(4 * MS);
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	pass(4 * MS);
	head = result_of(10);
	put(&head, pattern);
	/* one exchange took 4 ms, not 8 */
	CHECK(t.done == 1 && (stats()->rto_ns == 0 || stats()->rto_ns == 12 * MS));
}

static void test_client_alive(void)
{
	struct pgr_header head;
	unsigned int probes = 0;

	open_endpoint(NULL);
	learn_server();
	call(10, 0);
	/* The server says that it executes the call: from then on it is asked, not told; it may take as long
	 * as it likes. */
	pass(11 * MS);
	CHECK(t.seen_count >= 2 && t.seen[1].packet.head.type == PGR_CALL);
	for (unsigned int i = 0; i < 300; i++) {
		head = answer_of(PGR_ALIVE);
		put(&head, NULL);
		pass(100 * MS);
		for (unsigned int j = 0; j < t.seen_count; j++)
			probes += t.seen[j].packet.head.type == PGR_PROBE;
		CHECK(t.seen_count && probes && t.seen[0].packet.head.type == PGR_PROBE &&
		      (t.seen[0].packet.head.flags & PGR_FLAG_ASK) && t.done == 0);
	}
	/* Not in haste. */
	CHECK(probes < 300 * 6);
	/* Silence from now on: given up. */
	pass(9 * SECOND);
	CHECK(t.done == 0);
	pass(SECOND + 10 * MS);
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP);
	/* It has not got the call (nack of packet 0 with nothing): said again, as a call. */
	call(10, 0);
	pass(11 * MS);
	head = answer_of(PGR_ALIVE);
	put(&head, NULL);
	head = answer_of(PGR_NACK);
	put(&head, NULL);
	CHECK(one(PGR_CALL) != NULL);
	head = result_of(1);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK);
}

/* A procedure that takes 50 ms: after a few calls its client knows, and neither repeats them nor asks for them. */
static void test_client_service_time(void)
{
	struct pgr_header head;
	unsigned int said = 0;

	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < 300; i++) {
		call(10, 0);
		head = result_of(10);
		for (unsigned int ms = 0; ms < 50; ms++) {
			struct pgr_header alive = answer_of(PGR_ALIVE);

			t.seen_count = 0;
			pass(MS);
			said += t.seen_count;
			if (t.seen_count)
				put(&alive, NULL);
		}
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK);
	}
	CHECK(said > 0 && said < 30);
	/* Calls that take no time are soon missed in no time again. */
	for (unsigned int i = 0; i < 400; i++) {
		call(10, 0);
		head = result_of(10);
		pass(MS / 2);
		put(&head, pattern);
		CHECK(t.done == 1);
	}
	CHECK(stats()->rto_ns < 5 * MS);
	/* However long it took, a call is asked for as often as ever. */
	call(10, 0);
	head = result_of(10);
	for (unsigned int i = 0; i < 30; i++) {
		struct pgr_header alive = answer_of(PGR_ALIVE);

		pass(SECOND);
		put(&alive, NULL);
	}
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK);
	call(10, 0);
	pass(251 * MS);
	CHECK(t.seen_count >= 2);
}

/* Answers `count` further calls; returns how often the call in `slot` was repeated meanwhile. */
static unsigned int overtake(uint16_t slot, unsigned int count)
{
	unsigned int repeated = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct pgr_header head;

		call(8, 0);
		head = result_of(8);
		CHECK(head.slot != slot);
		put(&head, pattern);
		for (unsigned int k = 0; k < t.seen_count; k++)
			repeated += t.seen[k].packet.head.type == PGR_CALL &&
				    t.seen[k].packet.head.slot == slot &&
				    (t.seen[k].packet.head.flags & PGR_FLAG_ASK);
	}
	return repeated;
}

/* A call is repeated before its time-out where later ones are answered: a few times, and not in a hurry. */
static void test_client_overtaken(void)
{
	struct pgr_header first, head;
	uint16_t slot;

	open_endpoint(NULL);
	learn_server();
	call(10, 0);
	first = result_of(10);
	slot = first.slot;
	CHECK(overtake(slot, PGR_REORDER_CALLS - 1) == 0);
	CHECK(overtake(slot, PGR_REORDER_CALLS) == 1);
	CHECK(overtake(slot, 20 * PGR_REORDER_CALLS) == PGR_EARLY_REPEATS_MAX - 1);
	/* After that the clock decides, and an answer is an answer. */
	put(&first, pattern);
	CHECK(t.done == 2 && silent());
	/* A server that says that it executes the call is believed. */
	call(10, 0);
	first = result_of(10);
	head = answer_of(PGR_ALIVE);
	put(&head, NULL);
	CHECK(overtake(first.slot, 20 * PGR_REORDER_CALLS) == 0);
	put(&first, pattern);
	CHECK(t.done == 2);
}

const struct protocol_test protocol_client_lost[] = {
	{"client: lost packets, round-trip times, giving up", test_client_lost},
	{"client: idle for longer than the give-up time", test_client_idle},
	{"client: a part of a result is news", test_client_part_is_news},
	{"client: the first round-trip time", test_client_first_sample},
	{"client: a procedure that takes long", test_client_alive},
	{"client: a procedure that takes longer than the first time-out", test_client_service_time},
	{"client: a call that others overtake", test_client_overtaken},
	{NULL, NULL},
};
