/* SPDX-License-Identifier: BSD-3-Clause */
/* A call meets its slot at the server: past, in order, again, future; and a procedure that takes long. */
#include "hand.h"

static void test_server_single(void)
{
	const struct pgr_header *head;

	open_endpoint(NULL);
	make_known();
	/* A probe for a call that never came: nack of packet 0 with an empty bitmap. */
	put_bare(PGR_PROBE, 3, 0);
	head = one(PGR_NACK);
	CHECK(head && head->packet_number == 0 && head->data_bytes == 0 && head->sequence == 3 &&
	      !(head->flags & PGR_FLAG_OF_RESULT));
	/* In order: executed, answered with its slot, sequence, incarnation, count and data. */
	put_call(3, ECHO, 100, 0);
	head = one(PGR_RESULT);
	if (CHECK(head && t.executed == 1 && t.args_bytes == 100 && !memcmp(t.args, pattern, 100))) {
		CHECK(head->sequence == 3 && head->slot == 5 && head->incarnation == t.pgr->incarnation &&
		      head->client == CLIENT && head->retransmissions == 0 && head->credits > 0);
		CHECK(head->data_bytes == 100 && !memcmp(t.seen[0].packet.data, pattern, 100));
	}
	/* Past: dropped. */
	put_call(2, ECHO, 100, PGR_FLAG_ASK);
	CHECK(silent() && t.executed == 1);
	put_bare(PGR_PROBE, 2, 0);
	CHECK(silent());
	/* The same again, and a probe: the saved result, with the count of what it answers. */
	for (unsigned int i = 1; i < 4; i++) {
		struct pgr_header again = call_of(3, ECHO, 100);

		again.retransmissions = (uint8_t)i;
		again.flags = PGR_FLAG_ASK;
		put(&again, pattern);
		head = one(PGR_RESULT);
		CHECK(head && head->retransmissions == i && head->data_bytes == 100 &&
		      !memcmp(t.seen[0].packet.data, pattern, 100));
	}
	put_bare(PGR_PROBE, 3, 0);
	CHECK(one(PGR_RESULT) && t.executed == 1);
	/* An ack of another sequence number changes nothing. */
	put_bare(PGR_ACK, 2, 1);
	put_bare(PGR_ACK, 4, 1);
	CHECK(silent() && t.pgr->works[0]->client);
	/* Acknowledged: the result is gone; call and probe are dropped. */
	put_bare(PGR_ACK, 3, 1);
	CHECK(silent() && stats()->pool_bytes == sizeof(struct pgr_work));
	put_call(3, ECHO, 100, PGR_FLAG_ASK);
	CHECK(silent() && t.executed == 1);
	put_bare(PGR_PROBE, 3, 0);
	CHECK(silent());
	put_bare(PGR_ACK, 3, 1);
	CHECK(silent());
	/* The future, with a gap: executed. */
	put_call(UINT64_C(1) << 40, ECHO, 0, 0);
	CHECK(one(PGR_RESULT) && t.executed == 2);
	/* The next call acknowledges the last result. */
	put_call((UINT64_C(1) << 40) + 1, ECHO, 7, 0);
	CHECK(one(PGR_RESULT) && t.executed == 3 && t.pgr->works_count == 1);
	/* Slots do not disturb each other. */
	for (uint16_t slot = 0; slot < PGR_SLOTS; slot++) {
		struct pgr_header call = call_of(1, ECHO, 3);

		call.slot = slot;
		put(&call, pattern);
		CHECK(slot == 5 || slot == KNOWN_SLOT ? silent()
						      : one(PGR_RESULT) && one(PGR_RESULT)->slot == slot);
	}
	CHECK(t.executed == 3 + PGR_SLOTS - 2);
}

static void test_server_executing(void)
{
	const struct pgr_iov iov = {pattern, 20};

	open_endpoint(NULL);
	make_known();
	/* It takes its time. */
	put_call(1, LATER, 10, 0);
	CHECK(silent() && t.executed == 1);
	/* The call again without ask: silence. With ask, or a probe: alive, and no result. */
	put_call(1, LATER, 10, 0);
	CHECK(silent());
	put_call(1, LATER, 10, PGR_FLAG_ASK);
	CHECK(one(PGR_ALIVE) && one(PGR_ALIVE)->sequence == 1 &&
	      one(PGR_ALIVE)->incarnation == t.pgr->incarnation);
	put_bare(PGR_PROBE, 1, 0);
	CHECK(one(PGR_ALIVE) && t.executed == 1);
	/* However long that is. */
	for (unsigned int i = 0; i < 120; i++) {
		pass(SECOND);
		put_bare(PGR_PROBE, 1, 0);
		CHECK(one(PGR_ALIVE) != NULL);
	}
	/* An ack of a result that does not exist yet is nothing. */
	put_bare(PGR_ACK, 1, 1);
	put_bare(PGR_PROBE, 1, 0);
	CHECK(one(PGR_ALIVE) != NULL);
	/* Then the result goes out by itself. */
	t.seen_count = 0;
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK);
	CHECK(one(PGR_RESULT) && t.seen[0].packet.head.data_bytes == 20);
	/* The client moves on while a procedure runs: its answer goes nowhere. */
	put_call(2, LATER, 10, 0);
	put_call(3, LATER, 10, 0);
	CHECK(t.executed == 3);
	t.seen_count = 0;
	t.token.word[1]--; /* that of call 2, which sat in the same place */
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK && silent());
}

static void on_nothing(void *arg, int code, const void *result, size_t bytes)
{
	(void)arg, (void)code, (void)result, (void)bytes;
}

/* No new calls, and what is here comes to its end. */
static void test_drain(void)
{
	for (unsigned int reliable = 0; reliable < 2; reliable++) {
		const struct pgr_iov iov = {pattern, 20};

		t.reliable = reliable;
		open_endpoint(NULL);
		make_known();
		put_call(1, LATER, 10, 0);
		CHECK(pgr_drain(t.pgr) == 1);
		put_call(2, ECHO, 10, 0);
		CHECK(one_reject(PGR_REJECT_BUSY) && t.executed == 1);
		/* nothing of it is forgotten thereby: it is alive, answered, and acknowledged */
		put_bare(PGR_PROBE, 1, 0);
		CHECK(one(PGR_ALIVE) && pgr_drain(t.pgr) == 1);
		t.seen_count = 0;
		CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK && one(PGR_RESULT));
		CHECK(pgr_drain(t.pgr) == !reliable);
		put_bare(PGR_ACK, 1, 1);
		CHECK(pgr_drain(t.pgr) == 0);
		/* it calls on */
		t.seen_count = 0;
		CHECK(pgr_call(t.peer, ECHO, NULL, &iov, 1, NULL, 0, 0, on_nothing, NULL) == PGR_QUEUED &&
		      one(PGR_CALL));
		close_endpoint();
	}
}

const struct protocol_test protocol_server_slot[] = {
	{"server: calls of one packet: past, in order, again, future", test_server_single},
	{"server: a procedure that takes long", test_server_executing},
	{"server: an orderly end", test_drain},
	{NULL, NULL},
};
