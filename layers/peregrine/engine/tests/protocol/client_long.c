/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of several packets, and messages over the limit. */
#include "caller.h"

/* A packet of a result in parts. */
static void put_result(const struct pgr_header *head, uint32_t number, uint8_t flags)
{
	struct pgr_header one_part = *head;

	part(&one_part, head->message_bytes, number);
	one_part.flags |= flags;
	put(&one_part, pattern + (size_t)number * DATA_BYTES);
}

static void test_client_long_result(void)
{
	struct pgr_header head, other;
	const uint32_t bytes = 5 * DATA_BYTES - 9;

	for (unsigned int lent = 0; lent < 2; lent++) {
		open_endpoint(NULL);
		learn_server();
		call(10, lent ? 0 : bytes + 10);
		head = result_of(bytes);
		/* Any order, each once; ask is answered. */
		put_result(&head, 3, 0);
		CHECK(silent());
		put_result(&head, 0, PGR_FLAG_ASK);
		CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1 && one(PGR_NACK)->data_bytes == 1 &&
		      t.seen[0].packet.data[0] == 2 && (one(PGR_NACK)->flags & PGR_FLAG_OF_RESULT));
		put_result(&head, 0, PGR_FLAG_ASK);
		CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1);
		/* Of another length, cut otherwise, or all at once: dropped. */
		other = head;
		other.message_bytes++;
		put_result(&other, 1, 0);
		other = head;
		other.packet_bytes = other.data_bytes = DATA_BYTES - 8;
		other.packet_number = 1;
		put(&other, pattern);
		other = result_of(20);
		put(&other, pattern);
		other = result_of(0);
		put(&other, pattern);
		CHECK(silent() && t.done == 0);
		/* Late words that concern the call: a challenge, busy, what came of the arguments. */
		other = challenge_of(INCARNATION, COOKIE);
		put(&other, NULL);
		CHECK(silent() && t.done == 0);
		other = answer_of(PGR_REJECT);
		other.procedure = PGR_REJECT_BUSY;
		put(&other, NULL);
		other = answer_of(PGR_NACK);
		put(&other, NULL);
		other = answer_of(PGR_ACK);
		put(&other, NULL);
		other = answer_of(PGR_ALIVE);
		put(&other, NULL);
		CHECK(silent() && t.done == 0);
		/* Nothing more comes: the client says what it has. */
		pass(300 * MS);
		CHECK(t.seen_count && t.seen[0].packet.head.type == PGR_NACK &&
		      t.seen[0].packet.head.packet_number == 1 && t.seen[0].packet.head.retransmissions > 0);
		put_result(&head, 4, 0);
		put_result(&head, 2, 0);
		CHECK(silent());
		put_result(&head, 1, 0);
		/* Whole: acknowledged at once, so that the server's procedure has its buffers back. */
		CHECK(one(PGR_ACK) && one(PGR_ACK)->packet_number == 5 &&
		      (one(PGR_ACK)->flags & PGR_FLAG_OF_RESULT));
		CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == bytes &&
		      !memcmp(lent ? t.result : t.out, pattern, bytes));
		t.seen_count = 0;
		pass(50 * MS);
		CHECK(silent());
		close_endpoint();
	}
}

static void test_client_too_large(void)
{
	const struct pgr_config config = {.message_bytes_max = 3000};
	struct pgr_header head;
	const struct pgr_iov iov = {pattern, 3001};

	open_endpoint(&config);
	learn_server();
	/* Over the limit: not sent. */
	CHECK(pgr_call(t.peer, ECHO, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_E_TOO_LARGE &&
	      silent());
	/* A result over the limit, or longer than the buffers: the call ends; the server need not keep it. */
	call(10, 0);
	head = result_of(3001);
	put_result(&head, 2, PGR_FLAG_ASK);
	CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
	CHECK(one(PGR_ACK) && one(PGR_ACK)->packet_number == 7);
	call(10, 2000);
	head = result_of(2001);
	put_result(&head, 2, 0);
	CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
	CHECK(one(PGR_ACK) && one(PGR_ACK)->packet_number == 5);
	call(10, 0);
	head = result_of(PGR_PACKETS_MAX * DATA_BYTES);
	put_result(&head, 9, 0);
	CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
	/* As long as the limit: taken. */
	call(10, 0);
	head = result_of(3000);
	for (uint32_t i = 0; i < 7; i++)
		put_result(&head, i, 0);
	CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 3000);
}

const struct protocol_test protocol_client_long[] = {
	{"client: results of several packets", test_client_long_result},
	{"client: messages over the limit", test_client_too_large},
	{NULL, NULL},
};
