/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of several packets: credits, reports, lost bursts, late words. */
#include "caller.h"

static void test_client_parts(void)
{
	const uint32_t bytes = LONG_BYTES;
	struct pgr_header head;
	uint8_t bitmap[PGR_NACK_BITMAP_BYTES];
	uint32_t most = 0;

	open_endpoint(NULL);
	/* To an unknown server one packet goes, not all. */
	call(bytes, 0);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->packet_number == 0 && one(PGR_CALL)->message_bytes == bytes);
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	/* Then all that credits allow, each once; the last asks. */
	CHECK(t.seen_count == LONG_PACKETS);
	for (unsigned int i = 0; i < t.seen_count; i++)
		CHECK(t.seen[i].packet.head.packet_number == i &&
		      !(t.seen[i].packet.head.flags & PGR_FLAG_ASK) == (i < LONG_PACKETS - 1) &&
		      !memcmp(t.seen[i].packet.data, pattern + i * DATA_BYTES,
			      t.seen[i].packet.head.data_bytes));
	/* A hole: 4 and 7 are missing. Sent again, in order, once; the last asks. */
	head = answer_of(PGR_NACK);
	head.packet_number = 4;
	head.data_bytes = 2;
	bitmap[0] = 0xff & ~4u;
	bitmap[1] = 0x7f;
	put(&head, bitmap);
	CHECK(t.seen_count == 2 && t.seen[0].packet.head.packet_number == 4 &&
	      t.seen[1].packet.head.packet_number == 7 && (t.seen[1].packet.head.flags & PGR_FLAG_ASK));
	/* The same report again: they are under way already. */
	put(&head, bitmap);
	CHECK(silent());
	/* It has them. The result acknowledges the rest. */
	head = answer_of(PGR_ACK);
	head.packet_number = LONG_PACKETS;
	put(&head, NULL);
	CHECK(silent() && t.peer->under_way == 0);
	/* All arrived, no result: probes, not packets. */
	pass(300 * MS);
	CHECK(t.seen_count && t.seen[t.seen_count - 1].packet.head.type == PGR_PROBE);
	head = result_of(1);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK && t.peer->under_way == 0);
	/* Never more under way than granted, over all calls; what waits goes on when there is room. */
	call(8, 0);
	head = result_of(8);
	head.credits = 6;
	put(&head, pattern);
	call(bytes, 0);
	CHECK(t.seen_count == 6);
	t.done = 0;
	for (uint32_t i = 2; i <= LONG_PACKETS; i += 2) {
		head = answer_of(PGR_ACK);
		head.credits = 6;
		head.packet_number = i;
		put(&head, NULL);
		CHECK(t.peer->under_way <= 6 && t.seen_count <= 2);
		most = t.peer->under_way > most ? t.peer->under_way : most;
	}
	CHECK(most == 6 && t.peer->under_way == 0);
	for (unsigned int i = 0; i < 10; i++)
		call(8, 0);
	CHECK(t.peer->under_way == 6);
	/* While the result of one frees a credit, another one goes out. */
	t.seen_count = 0;
	pass(11 * MS);
	CHECK(t.peer->under_way <= 6);
	/* Fewer are granted: fewer are under way in the end. */
	{
		struct pgr_peer *peer = t.peer;

		for (unsigned int i = 0; i < 2000 && peer->free != UINT64_MAX; i++) {
			for (unsigned int slot = 0; slot < PGR_SLOTS; slot++) {
				if (slot_of(peer, slot)->state != PGR_SLOT_CALLING)
					continue;
				head = (struct pgr_header){.type = PGR_RESULT,
							   .flags = PGR_OWN_ORDER,
							   .version = PGR_VERSION,
							   .slot = (uint16_t)slot,
							   .credits = 2,
							   .client = peer->client,
							   .sequence = slot_of(peer, slot)->sequence,
							   .incarnation = INCARNATION};
				put(&head, NULL);
				CHECK(peer->under_way <= 6 && t.seen_count <= 2);
			}
			pass(MS);
			CHECK(peer->credits == 2 && peer->under_way <= 6);
		}
		CHECK(peer->free == UINT64_MAX && peer->under_way == 0 && peer->queued == 0);
	}
}

static void test_client_lost_parts(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	/* All of a burst is lost: after the time-out its last packet, with ask. */
	call(LONG_BYTES, 0);
	CHECK(t.seen_count == LONG_PACKETS);
	t.seen_count = 0;
	pass(21 * MS);
	CHECK(t.seen_count && t.seen[0].packet.head.packet_number == LONG_PACKETS - 1 &&
	      (t.seen[0].packet.head.flags & PGR_FLAG_ASK) && t.seen[0].packet.head.retransmissions == 1);
	/* The answer shows what is missing: all goes again that was sent before. */
	{
		uint8_t bitmap[PGR_NACK_BITMAP_BYTES] = {0};

		head = answer_of(PGR_NACK);
		head.data_bytes = 3;
		bitmap[(LONG_PACKETS - 2) / 8] = 1u << (LONG_PACKETS - 2) % 8;
		put(&head, bitmap);
		CHECK(t.seen_count == LONG_PACKETS - 1 && t.seen[0].packet.head.packet_number == 0 &&
		      t.peer->under_way == LONG_PACKETS - 1);
	}
	/* Lies: packets never sent, an ack beyond the end, a nack of the whole, bitmaps beyond the end. */
	call(LONG_BYTES, 0); /* in another slot; there are credits for a part of it */
	CHECK(t.seen_count == CREDITS - (LONG_PACKETS - 1));
	for (unsigned int i = 0; i < 4; i++) {
		uint8_t bitmap[PGR_NACK_BITMAP_BYTES];
		const uint32_t numbers[] = {t.seen_count + 1, LONG_PACKETS + 1, UINT32_MAX, UINT32_MAX - 511};
		const struct pgr_header last = answer_of(PGR_ACK);

		memset(bitmap, 0xff, sizeof(bitmap));
		for (unsigned int j = 0; j < 3; j++) {
			uint8_t packet[PACKET_BYTES];
			const unsigned int before = t.seen_count;

			head = last;
			head.packet_number = numbers[i];
			head.type = j ? PGR_NACK : PGR_ACK;
			head.data_bytes = j == 2 ? sizeof(bitmap) : 0;
			put_raw(FAR, packet, make(&head, 0, bitmap, packet));
			CHECK(t.seen_count == before && t.done == 0 && t.peer->under_way == CREDITS);
		}
	}
}

/* What is late makes the client begin again; it believes the server that more has arrived than it has sent
 * since. */
static void test_client_begins_again(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	call(8, 0);
	head = result_of(8);
	head.credits = 6;
	put(&head, pattern);
	call(LONG_BYTES, 0);
	CHECK(t.seen_count == 6);
	head = answer_of(PGR_ACK);
	head.credits = 6;
	head.packet_number = 6;
	put(&head, NULL);
	CHECK(t.seen_count == 6 && t.seen[5].packet.head.packet_number == 11);
	/* A challenge is late: the server has something of the call. */
	head = challenge_of(INCARNATION, COOKIE);
	put(&head, NULL);
	CHECK(silent() && t.peer->under_way == 6);
	/* So is busy, but that cannot be known; it is not answered at once, though there is more to send. */
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_BUSY;
	head.credits = 6;
	put(&head, NULL);
	CHECK(silent() && t.peer->under_way == 0);
	pass(5 * MS);
	CHECK(t.seen_count >= 6 && t.seen[0].packet.head.packet_number == 0 &&
	      t.seen[5].packet.head.packet_number == 5);
	/* All twelve are there: on with the next, not from the beginning for ever. */
	head = answer_of(PGR_ACK);
	head.credits = 6;
	head.packet_number = 12;
	put(&head, NULL);
	CHECK(t.seen_count == 6 && t.seen[0].packet.head.packet_number == 12 && t.peer->under_way == 6);
	/* More than that was never sent. */
	head.packet_number = 19;
	put(&head, NULL);
	CHECK(silent() && t.peer->under_way == 6);
	head.packet_number = 18;
	put(&head, NULL);
	CHECK(t.seen_count == 2 && t.peer->under_way == 2);
}

/* A server that restarts in the middle of a long result knows nothing of it; it is asked, and says so. */
static void test_client_restart_in_result(void)
{
	struct pgr_header head;
	uint64_t begun_ns;

	open_endpoint(NULL);
	learn_server();
	call(10, 0);
	head = result_of(LONG_BYTES);
	part(&head, LONG_BYTES, 0);
	put(&head, pattern);
	begun_ns = net_now_ns();
	for (t.seen_count = 0; !t.seen_count || t.seen[t.seen_count - 1].packet.head.type != PGR_PROBE;)
		pass(MS);
	CHECK(net_now_ns() - begun_ns <= 500 * MS);
	CHECK(t.seen[0].packet.head.type == PGR_ACK &&
	      t.seen[t.seen_count - 1].packet.head.incarnation == INCARNATION);
	head = challenge_of(INCARNATION, COOKIE + 1);
	head.incarnation = INCARNATION + 1;
	put(&head, NULL);
	CHECK(t.done == 1 && t.code == PGR_E_RESTARTED);
	/* One that lives repeats what it has not heard to have arrived; the next silence begins anew. */
	t.done = 0;
	call(10, 0);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->incarnation == INCARNATION + 1);
}

const struct protocol_test protocol_client_parts[] = {
	{"client: its server restarts in the middle of a result", test_client_restart_in_result},
	{"client: calls of several packets, credits", test_client_parts},
	{"client: a lost burst, lying reports", test_client_lost_parts},
	{"client: late words make it begin again", test_client_begins_again},
	{NULL, NULL},
};
