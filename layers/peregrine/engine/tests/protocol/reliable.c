/* SPDX-License-Identifier: BSD-3-Clause */
/* A wire that loses nothing, where the usual call goes a shorter way. */
#include "caller.h"
#include "hostile.h"
#include "unlike.h"

static void test_reliable_server(void)
{
	const struct pgr_iov iov = {pattern, 20};
	struct pgr_header head;
	struct pgr_token kept;

	t.reliable = true;
	open_endpoint(NULL);
	make_known();
	/* In order: executed, answered, nothing kept. The second is one of those that go the short way. */
	for (uint64_t i = 1; i < 5; i++) {
		put_call(i, ECHO, 100, 0);
		CHECK(one(PGR_RESULT) && one(PGR_RESULT)->sequence == i &&
		      one(PGR_RESULT)->data_bytes == 100 &&
		      one(PGR_RESULT)->incarnation == t.pgr->incarnation && one(PGR_RESULT)->slot == 5 &&
		      !memcmp(t.seen[0].packet.data, pattern, 100));
		CHECK(t.executed == i && t.args_bytes == 100 &&
		      stats()->pool_bytes == sizeof(struct pgr_work));
	}
	/* Past and again: dropped. Of another incarnation or address: challenged. */
	put_call(4, ECHO, 100, 0);
	CHECK(silent());
	put_call(3, ECHO, 100, 0);
	CHECK(silent() && t.executed == 4);
	head = call_of(5, ECHO, 100);
	head.incarnation ^= 1;
	put(&head, pattern);
	CHECK(one(PGR_CHALLENGE) != NULL);
	head.incarnation ^= 1;
	put_from(OTHER, &head, 0, pattern);
	CHECK(one(PGR_CHALLENGE) && t.executed == 4);
	/* Another client, another procedure, none at all, a failure. */
	make_known_as(CLIENT + 1, OTHER);
	t.executed = 4;
	head.client++;
	put_from(OTHER, &head, 0, pattern);
	CHECK(one(PGR_RESULT) && one(PGR_RESULT)->client == CLIENT + 1 && is_at(&t.seen[0].to, OTHER));
	put_call(5, ECHO, 100, 0);
	CHECK(one(PGR_RESULT) && one(PGR_RESULT)->client == CLIENT && is_at(&t.seen[0].to, FAR));
	for (unsigned int i = 0; i < 2; i++) {
		put_call(6, NONE, 100, 0);
		CHECK(one_reject(PGR_REJECT_PROCEDURE) && t.executed == 6);
	}
	for (uint64_t i = 6; i < 9; i++) {
		put_call(i, FAIL, 100, 0);
		CHECK(one_reject(PGR_REJECT_FAILED));
	}
	/* Later: alive meanwhile; a newer call of another slot does not touch it, nor does its token. */
	put_call(9, LATER, 10, 0);
	put_call(10, LATER, 10, 0);
	kept = t.token;
	CHECK(silent() && t.executed == 11);
	put_bare(PGR_PROBE, 10, 0);
	CHECK(one(PGR_ALIVE) != NULL);
	head = call_of(1, ECHO, 7);
	for (head.slot = 6; head.slot < 9; head.slot++) {
		put(&head, pattern);
		CHECK(one(PGR_RESULT) && one(PGR_RESULT)->data_bytes == 7);
		/* that call's token is used up */
		t.seen_count = 0;
		CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK && silent());
	}
	CHECK(pgr_reply(t.pgr, &kept, &iov, 1, 0, NULL, NULL) == PGR_OK && one(PGR_RESULT) &&
	      one(PGR_RESULT)->sequence == 10 && one(PGR_RESULT)->data_bytes == 20);
	t.seen_count = 0;
	CHECK(pgr_reply(t.pgr, &kept, &iov, 1, 0, NULL, NULL) == PGR_OK && silent());
	/* A long result, at once and whole; then the buffers are free. */
	put_call(11, LONG, 0, 0);
	CHECK(t.seen_count == LONG_PACKETS);
}

/* On that wire too: what is no packet. */
static void test_reliable_hostile(void)
{
	struct pgr_header head;
	uint8_t packet[PACKET_BYTES];

	t.reliable = true;
	open_endpoint(NULL);
	make_known();
	head = call_of(1, ECHO, 5 * DATA_BYTES - 9);
	refused(&head);
	head = call_of(1, ECHO, 60);
	cut(packet, make(&head, 0, pattern, packet));
	/* once more, when all is ready for the short way */
	for (uint64_t i = 1; i < 4; i++) {
		put_call(i, ECHO, 60, 0);
		CHECK(one(PGR_RESULT) != NULL);
	}
	put_bare(PGR_ACK, 3, 1);
	t.executed = 0;
	head = call_of(4, ECHO, 60);
	cut(packet, make(&head, 0, pattern, packet));
	put(&head, pattern);
	CHECK(one(PGR_RESULT) && t.executed == 1);
}

static void test_reliable_client(void)
{
	struct pgr_header head, other;

	t.reliable = true;
	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < 3; i++) {
		/* There and back, whatever is wrong dropped. */
		call(10, 100);
		CHECK(one(PGR_CALL) && one(PGR_CALL)->data_bytes == 10 &&
		      !(one(PGR_CALL)->flags & PGR_FLAG_ASK));
		head = result_of(20);
		for (unsigned int j = 0; j < 6; j++) {
			other = head;
			other.sequence += j == 0 ? UINT64_MAX : j == 1;
			other.slot = (uint16_t)(other.slot + (j == 2));
			other.client ^= j == 3;
			other.incarnation ^= j == 4;
			put_from(j == 5 ? OTHER : FAR, &other, 0, pattern);
			CHECK(silent() && t.done == 0);
		}
		put(&head, pattern);
		CHECK(silent() && t.done == 1 && t.code == PGR_OK && t.result_bytes == 20 &&
		      !memcmp(t.out, pattern, 20));
		put(&head, pattern);
		CHECK(t.done == 1);
		/* Longer than the buffers. */
		call(10, 19);
		head = result_of(20);
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
		/* The server forgot us: the same call again, with a cookie. */
		call(60, 0);
		head = challenge_of(INCARNATION, COOKIE);
		put(&head, NULL);
		CHECK(one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE && one(PGR_CALL)->data_bytes == 60 &&
		      !memcmp(t.seen[0].packet.data, pattern, 60));
		head = result_of(20);
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK && !memcmp(t.result, pattern, 20));
		/* It was busy: the same call again, later; and it may say that it has not got it. */
		call(70, 0);
		head = answer_of(PGR_REJECT);
		head.procedure = PGR_REJECT_BUSY;
		put(&head, NULL);
		CHECK(silent() && t.done == 0);
		pass(600 * MS);
		CHECK(t.seen_count == 1);
		if (one(PGR_PROBE)) {
			head = answer_of(PGR_NACK);
			put(&head, NULL);
		}
		CHECK(one(PGR_CALL) && one(PGR_CALL)->data_bytes == 70 &&
		      !memcmp(t.seen[0].packet.data, pattern, 70));
		head = result_of(20);
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK && t.peer->under_way == 0);
		/* Silence: it is asked about now and then, then given up. */
		call(10, 0);
		t.seen_count = 0;
		pass(9 * SECOND);
		CHECK(t.done == 0 && t.seen_count >= 10 && t.seen[0].packet.head.type == PGR_PROBE);
		pass(2 * SECOND);
		CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP);
		t.seen_count = 0;
	}
}

/* A slot that passed a call on is an ordinary one afterwards. */
static void test_reliable_delegating(void)
{
	struct pgr_header head, result;

	t.reliable = true;
	open_endpoint(NULL);
	learn_server();
	make_known_as(CLIENT, THIRD);
	for (uint64_t i = 1; i < 4; i++) {
		head = call_of(i, PASS, 30);
		put_from(THIRD, &head, 0, pattern);
		if (!CHECK(one(PGR_CALL) && (one(PGR_CALL)->flags & PGR_FLAG_DELEGATED)))
			return;
		result = result_of(0);
		put(&result, NULL);
		CHECK(silent() && t.executed == i);
		call(10, 0);
		CHECK(one(PGR_CALL) && !(one(PGR_CALL)->flags & PGR_FLAG_DELEGATED));
		result = result_of(8);
		put(&result, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 8);
	}
	/* outstanding when the endpoint is closed; the argument is none that it may free */
	CHECK(pgr_call(t.peer, ECHO, NULL, NULL, 0, NULL, 0, 0, on_done, &t) == PGR_QUEUED);
}

/* There, too, a call of an unlike machine is told from one of a machine alike, which goes the short way. */
static void test_reliable_byte_order(void)
{
	struct pgr_header head;

	t.reliable = true;
	open_endpoint(NULL);
	make_known();
	for (uint64_t i = 1; i < 7; i++) {
		const bool alike = i % 2;

		head = call_of(i, TYPED, sizeof(plain));
		head.flags = alike ? PGR_OWN_ORDER : PGR_FLAG_BIG_ENDIAN ^ PGR_OWN_ORDER;
		put(&head, alike ? own : unlike);
		CHECK(t.executed == i && t.args_bytes == sizeof(plain) &&
		      !memcmp(t.args, own, sizeof(plain)));
		CHECK(t.short_way == (alike && i > 1)); /* the first one finds the procedure */
		CHECK(one(PGR_RESULT) && one(PGR_RESULT)->flags == PGR_OWN_ORDER &&
		      !memcmp(t.seen[0].packet.data, own, sizeof(plain)));
	}
}

const struct protocol_test protocol_reliable[] = {
	{"a wire that loses nothing: server", test_reliable_server},
	{"a wire that loses nothing: what is no packet", test_reliable_hostile},
	{"a wire that loses nothing: client", test_reliable_client},
	{"a wire that loses nothing: calls passed on", test_reliable_delegating},
	{"a wire that loses nothing: unlike byte order", test_reliable_byte_order},
	{NULL, NULL},
};
