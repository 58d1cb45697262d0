/* SPDX-License-Identifier: BSD-3-Clause */
/* A client meets its server: challenge, cookie, and the results of one packet that follow. */
#include "caller.h"

static void test_client_first_contact(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	call(100, 0);
	/* It claims nothing yet, and sends no cookie. */
	CHECK(one(PGR_CALL) && one(PGR_CALL)->incarnation == 0 && !t.seen[0].packet.cookie &&
	      is_at(&t.seen[0].to, FAR) && one(PGR_CALL)->sequence == 1);
	/*
	 * A challenge that names no incarnation, speaks of another claim, or comes from elsewhere: dropped.
	 */
	head = challenge_of(0, COOKIE);
	head.incarnation = 0;
	put(&head, NULL);
	CHECK(silent());
	head = challenge_of(5, COOKIE);
	put(&head, NULL);
	CHECK(silent());
	head = challenge_of(0, COOKIE);
	put_from(OTHER, &head, 0, NULL);
	head.flags = PGR_FLAG_DELEGATED;
	put_from(OTHER, &head, 0, NULL);
	CHECK(silent() && t.done == 0);
	/* The right one: the call again, with incarnation and cookie. */
	head.flags = 0;
	put(&head, NULL);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->incarnation == INCARNATION &&
	      t.seen[0].packet.cookie == COOKIE && one(PGR_CALL)->data_bytes == 100 &&
	      !memcmp(t.seen[0].packet.data, pattern, 100));
	/* That challenge once more speaks of an earlier claim. */
	put(&head, NULL);
	CHECK(silent());
	/* Until there is another answer, the cookie goes with each packet, and of other calls too. */
	t.seen_count = 0;
	pass(11 * MS);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->retransmissions == 1 && t.seen[0].packet.cookie == COOKIE);
	head = result_of(4);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 4 && !memcmp(t.result, pattern, 4));
	call(10, 0);
	CHECK(one(PGR_CALL) && !t.seen[0].packet.cookie && one(PGR_CALL)->incarnation == INCARNATION);
	/* The server forgot us: its challenge names what we claim. On with the cookie. */
	head = challenge_of(INCARNATION, COOKIE + 1);
	put(&head, NULL);
	CHECK(one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE + 1 && t.done == 0);
	head = result_of(4);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK);
}

static void test_client_results(void)
{
	struct pgr_header head, wrong;

	open_endpoint(NULL);
	learn_server();
	call(10, 100);
	head = result_of(20);
	/* Past and future, another slot, client, incarnation, address: dropped, without an answer. */
	for (unsigned int i = 0; i < 7; i++) {
		wrong = head;
		wrong.sequence += i == 0 ? UINT64_MAX : i == 1;
		wrong.slot = (uint16_t)(wrong.slot + (i == 2));
		wrong.client ^= i == 3;
		wrong.incarnation ^= i == 4;
		wrong.incarnation = i == 5 ? 0 : wrong.incarnation;
		put_from(i == 6 ? OTHER : FAR, &wrong, 0, pattern);
		CHECK(silent() && t.done == 0);
	}
	/* Nor is a rejection from elsewhere or of another incarnation taken, though it be marked as
	 * delegated. */
	wrong = answer_of(PGR_REJECT);
	wrong.procedure = PGR_REJECT_NOT_AUTHORISED;
	put_from(OTHER, &wrong, 0, NULL);
	wrong.flags = PGR_FLAG_DELEGATED;
	put_from(OTHER, &wrong, 0, NULL);
	wrong.flags = 0;
	wrong.incarnation ^= 1;
	put(&wrong, NULL);
	CHECK(silent() && t.done == 0);
	/* The right one: one event, no packet. */
	put(&head, pattern);
	CHECK(silent() && t.done == 1 && t.code == PGR_OK && t.result_bytes == 20 &&
	      !memcmp(t.out, pattern, 20));
	/* A duplicate: dropped. */
	put(&head, pattern);
	CHECK(silent() && t.done == 1);
	/* The slot stays idle: after about 20 ms the result is acknowledged, once. */
	pass(18 * MS);
	CHECK(silent());
	pass(4 * MS);
	CHECK(one(PGR_ACK) && one(PGR_ACK)->sequence == head.sequence && one(PGR_ACK)->packet_number == 1 &&
	      (one(PGR_ACK)->flags & PGR_FLAG_OF_RESULT) && one(PGR_ACK)->incarnation == INCARNATION);
	t.seen_count = 0;
	pass(100 * MS);
	CHECK(silent());
	/* The next call in the slot acknowledges: there is no ack. */
	for (unsigned int i = 0; i < 5; i++) {
		call(10, 0);
		head = result_of(20);
		pass(MS);
		put(&head, pattern);
		CHECK(silent() && t.done == 1);
		pass(10 * MS);
		CHECK(silent());
	}
	/* Longer than the buffers: an error, and the rest of the world hears no more of it. */
	call(10, 19);
	head = result_of(20);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
	pass(30 * MS);
	CHECK(one(PGR_ACK) != NULL);
	/* An empty one. */
	call(0, 10);
	head = result_of(0);
	put(&head, NULL);
	CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 0);
	/* All slots, answered in another order. */
	{
		unsigned int count = 0;
		struct pgr_header heads[PGR_SLOTS];

		for (unsigned int i = 0; i < CREDITS; i++) {
			call(10, 0);
			heads[count++] = result_of(10);
		}
		t.done = 0;
		while (count--)
			put(&heads[count], pattern);
		CHECK(t.done == CREDITS);
	}
}

/* A program that was built with an earlier header has a shorter struct. */
static void test_stats_of_another_length(void)
{
	struct pgr_stats shorter, longer[2];

	open_endpoint(NULL);
	learn_server();
	memset(&shorter, 0xa5, sizeof(shorter));
	shorter.bytes = offsetof(struct pgr_stats, packets_dropped);
	pgr_stats(t.pgr, &shorter);
	CHECK(shorter.bytes == offsetof(struct pgr_stats, packets_dropped) && shorter.packets_sent > 0 &&
	      shorter.packets_sent == stats()->packets_sent &&
	      shorter.packets_received == stats()->packets_received &&
	      shorter.packets_dropped == UINT64_C(0xa5a5a5a5a5a5a5a5));
	memset(longer, 0xa5, sizeof(longer));
	longer[0].bytes = sizeof(longer);
	pgr_stats(t.pgr, longer);
	CHECK(longer[0].packets_sent == shorter.packets_sent &&
	      longer[1].bytes == (size_t)UINT64_C(0xa5a5a5a5a5a5a5a5));
}

/* What a program sees of a binding. */
static void test_peer_stats(void)
{
	struct pgr_peer_stats now = {.bytes = sizeof(now)};
	struct pgr_header result;

	open_endpoint(NULL);
	pgr_peer_stats(t.peer, &now);
	CHECK(now.silent_ns == UINT64_MAX && !now.rto_ns && !now.outstanding && !now.under_way &&
	      now.packet_bytes == DATA_BYTES);
	learn_server();
	/* some of the calls are timed */
	for (unsigned int i = 0; i < 16; i++) {
		call(8, 0);
		pass(MS);
		result = result_of(8);
		put(&result, pattern);
	}
	pgr_peer_stats(t.peer, &now);
	CHECK(now.round_trip_ns >= MS / 2 && now.round_trip_ns < 2 * MS && now.rto_ns >= 2 * MS &&
	      now.silent_ns < MS && !now.outstanding && !now.under_way);
	call(8, 0);
	call(8, 0);
	pass(MS);
	pgr_peer_stats(t.peer, &now);
	CHECK(now.outstanding == 2 && now.under_way == 2 && now.credits == CREDITS && now.silent_ns >= MS &&
	      now.silent_ns < 2 * MS);
}

const struct protocol_test protocol_client_contact[] = {
	{"client: first contact", test_client_first_contact},
	{"client: results of one packet", test_client_results},
	{"client: what is told of a binding", test_peer_stats},
	{"client: what is told to a program of another length", test_stats_of_another_length},
	{NULL, NULL},
};
