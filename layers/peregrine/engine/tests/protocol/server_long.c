/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls and results of several packets at a server. */
#include "hand.h"

static void test_server_parts(void)
{
	const struct pgr_header *head;
	const uint32_t packets = 5, bytes = 5 * DATA_BYTES - 9;

	open_endpoint(NULL);
	make_known();
	/* The first, with ask: ack of all below 1. */
	put_part(1, LATER, bytes, 0, PGR_FLAG_ASK);
	CHECK(one(PGR_ACK) && one(PGR_ACK)->packet_number == 1 &&
	      !(one(PGR_ACK)->flags & PGR_FLAG_OF_RESULT));
	/* Without ask: nothing to say yet. */
	put_part(1, LATER, bytes, 3, 0);
	CHECK(silent());
	/* A duplicate while receiving, with ask: nack of 1, bitmap: 2 is missing, 3 here. */
	put_part(1, LATER, bytes, 3, PGR_FLAG_ASK);
	head = one(PGR_NACK);
	CHECK(head && head->packet_number == 1 && head->data_bytes == 1 && t.seen[0].packet.data[0] == 2);
	/* A probe asks the same. */
	put_bare(PGR_PROBE, 1, 0);
	CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1);
	/* Of another length, or cut otherwise: dropped. */
	put_part(1, LATER, bytes + 1, 1, PGR_FLAG_ASK);
	CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1);
	{
		struct pgr_header other = call_of(1, LATER, bytes);

		other.packet_bytes = DATA_BYTES - 8;
		other.data_bytes = other.packet_bytes;
		other.packet_number = 1;
		other.flags = PGR_FLAG_ASK;
		put(&other, pattern);
		CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1);
		/* and all in one packet that claims to be longer than it may be */
		other = call_of(1, LATER, DATA_BYTES);
		other.flags = PGR_FLAG_ASK;
		put(&other, pattern);
		CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1 && t.executed == 0);
	}
	/* The rest, out of order: executed once, with what was sent. */
	put_part(1, LATER, bytes, packets - 1, 0);
	put_part(1, LATER, bytes, 2, 0);
	CHECK(t.executed == 0);
	put_part(1, LATER, bytes, 1, 0);
	CHECK(t.executed == 1 && t.args_bytes == bytes && !memcmp(t.args, pattern, bytes));
	put_part(1, LATER, bytes, 1, PGR_FLAG_ASK);
	CHECK(one(PGR_ALIVE) && t.executed == 1);
	/* A newer call drops one that is half received. */
	put_part(2, LATER, bytes, 0, 0);
	put_call(3, ECHO, 5, 0);
	CHECK(t.executed == 2 && one(PGR_RESULT));
	put_part(2, LATER, bytes, 1, PGR_FLAG_ASK);
	CHECK(silent() && t.pgr->works_count == 1);
	/* Every quarter of the window is acknowledged unasked. */
	t.seen_count = 0;
	for (uint32_t i = 0; i < 40; i++) {
		struct pgr_header call = call_of(4, LATER, 41 * DATA_BYTES);
		uint8_t packet[PACKET_BYTES];

		part(&call, 41 * DATA_BYTES, i);
		put_raw(FAR, packet, make(&call, 0, pattern, packet));
	}
	CHECK(t.seen_count == 2 && t.seen[1].packet.head.packet_number == 32);
	/* One that is never completed is dropped in the end. */
	pass(41 * SECOND);
	CHECK(stats()->pool_bytes == t.pgr->works_count * sizeof(struct pgr_work) && stats()->clients == 0);
}

static void test_server_long_result(void)
{
	unsigned int at = 0;

	open_endpoint(NULL);
	make_known();
	{
		struct pgr_header call = call_of(1, LONG, 0);

		call.credits = 4;
		put(&call, NULL);
	}
	/* As far as the client's credits go; the last of the burst asks. */
	CHECK(t.seen_count == 4 && t.sent == 0);
	for (unsigned int i = 0; i < t.seen_count; i++)
		CHECK(t.seen[i].packet.head.packet_number == i &&
		      !(t.seen[i].packet.head.flags & PGR_FLAG_ASK) == (i < 3) &&
		      !memcmp(t.seen[i].packet.data, pattern + i * DATA_BYTES, DATA_BYTES));
	/* The call again: one packet, which asks; there are no more credits than before. */
	put_call(1, LONG, 0, PGR_FLAG_ASK);
	CHECK(t.seen_count == 1 && (t.seen[0].packet.head.flags & PGR_FLAG_ASK));
	{
		/* Nack: 0 and 2 to 3 came, 1 did not; what was sent three sendings before it is lost. */
		struct pgr_header nack = bare_of(PGR_NACK, 1);
		uint8_t bitmap = 3;

		nack.credits = 4;
		nack.packet_number = 1;
		nack.data_bytes = 1;
		put(&nack, &bitmap);
		CHECK(t.seen_count == 4 && t.seen[0].packet.head.packet_number == 1 &&
		      t.seen[3].packet.head.packet_number == 6);
		/* 4 to 6 came too: 1 is lost, and goes first. */
		bitmap = 31;
		put(&nack, &bitmap);
		CHECK(t.seen_count == 4 && t.seen[0].packet.head.packet_number == 1);
		/* the same once more: nothing is repeated twice in a round */
		put(&nack, &bitmap);
		CHECK(silent());
	}
	/* A nack that names packets never sent, an ack beyond the end: dropped. */
	{
		struct pgr_header nack = bare_of(PGR_NACK, 1);
		uint8_t bitmap[PGR_NACK_BITMAP_BYTES];

		memset(bitmap, 0xff, sizeof(bitmap));
		nack.packet_number = LONG_PACKETS - 1;
		put(&nack, NULL);
		CHECK(silent());
		nack.packet_number = 15;
		nack.data_bytes = sizeof(bitmap);
		put(&nack, bitmap);
		CHECK(silent());
		put_bare(PGR_ACK, 1, LONG_PACKETS + 1);
		CHECK(t.sent == 0);
		put_bare(PGR_ACK, 1, UINT32_MAX);
		CHECK(t.sent == 0);
	}
	/* On, ack by ack, never more than four under way. */
	for (at = 10; at<LONG_PACKETS; at = at + 2> LONG_PACKETS ? LONG_PACKETS : at + 2) {
		put_bare(PGR_ACK, 1, at);
		CHECK(t.seen_count <= 4);
		for (unsigned int i = 0; i < t.seen_count; i++)
			CHECK(t.seen[i].packet.head.packet_number >= at &&
			      t.seen[i].packet.head.packet_number < at + 4);
	}
	/* The last packet is shorter. All have arrived: the buffers are the procedure's again, once. */
	CHECK(t.sent == 0);
	put_bare(PGR_ACK, 1, LONG_PACKETS);
	CHECK(t.sent == 1 && silent());
	put_bare(PGR_ACK, 1, LONG_PACKETS);
	CHECK(t.sent == 1);
	/* The next call gives the buffers back too. */
	put_call(2, LONG, 0, 0);
	CHECK(t.sent == 1);
	put_call(3, ECHO, 0, 0);
	CHECK(t.sent == 2);
	/* And so does time. */
	put_call(4, LONG, 0, 0);
	pass(50 * SECOND);
	CHECK(t.sent == 3 && stats()->clients == 0);
}

const struct protocol_test protocol_server_long[] = {
	{"server: calls of several packets", test_server_parts},
	{"server: results of several packets", test_server_long_result},
	{NULL, NULL},
};
