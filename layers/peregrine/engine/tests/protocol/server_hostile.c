/* SPDX-License-Identifier: BSD-3-Clause */
/* Corrupt, short, long and hostile packets at a server. */
#include "hostile.h"

/* Slot 5 shows its cookie, so that later calls in it need none. */
static void introduce(void)
{
	put_call(1, ECHO, 10, 0);
	CHECK(one(PGR_RESULT) != NULL);
	put_bare(PGR_ACK, 1, 1);
	t.executed = 0;
}

/* Nothing, or a refusal whose check is wrong. */
static bool no_answer(void)
{
	return silent() || (one_reject(PGR_REJECT_NOT_AUTHORISED) && t.seen[0].refusal);
}

static void test_server_corrupt(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";
	const struct pgr_config config = {.key = key};
	uint8_t packet[PACKET_BYTES];
	struct pgr_header call;
	size_t bytes;

	open_endpoint(&config);
	make_known();
	introduce();
	call = call_of(2, ECHO, 50);
	bytes = make(&call, COOKIE, pattern, packet);
	t.seen_count = 0;
	/* Any one bit is turned: dropped, with no more than a word that proves nothing. */
	for (size_t bit = 0; bit < bytes * 8; bit++) {
		const uint64_t dropped = t.pgr->stats.packets_dropped;

		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		put_raw(FAR, packet, bytes);
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!CHECK(no_answer() && t.executed == 0 && t.pgr->stats.packets_dropped == dropped + 1)) {
			printf("# bit %zu\n", bit);
			break;
		}
		t.seen_count = 0;
	}
	/* Under another key: dropped. */
	packet[PGR_HEADER_BYTES + PGR_COOKIE_BYTES] ^= 0xff;
	put_raw(FAR, packet, bytes);
	CHECK(no_answer() && t.seen_count == 1 && t.executed == 0);
	t.seen_count = 0;
	packet[PGR_HEADER_BYTES + PGR_COOKIE_BYTES] ^= 0xff;
	put_raw(FAR, packet, bytes);
	CHECK(one(PGR_RESULT) && t.executed == 1);
}

static void test_server_truncated(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";

	for (unsigned int i = 0; i < 4; i++) {
		const struct pgr_config config = {.key = i & 1 ? key : NULL};
		uint8_t packet[PACKET_BYTES];
		struct pgr_header call;
		size_t bytes;

		t.executed = 0;
		open_endpoint(&config);
		make_known();
		introduce();
		call = call_of(2, ECHO, 60);
		bytes = make(&call, i & 2 ? COOKIE : 0, pattern, packet);
		cut(packet, bytes);
		put_raw(FAR, packet, bytes);
		CHECK(one(PGR_RESULT) && t.executed == 1);
		close_endpoint();
	}
}

static void test_server_hostile(void)
{
	struct pgr_header head;
	uint8_t bitmap[DATA_BYTES];

	open_endpoint(NULL);
	make_known();
	head = call_of(1, ECHO, 5 * DATA_BYTES - 9);
	refused(&head);
	/* Types that only a server sends, to a client that does not exist: nothing. */
	for (unsigned int type = PGR_RESULT; type < PGR_TYPES_END; type++) {
		if (type == PGR_PROBE)
			continue;
		head = bare_of((enum pgr_type)type, 1);
		put(&head, NULL);
		CHECK(silent() && t.executed == 0);
		head.flags |= PGR_FLAG_DELEGATED;
		put(&head, NULL);
		CHECK(silent());
	}
	/* A bitmap longer than any. */
	memset(bitmap, 0xff, sizeof(bitmap));
	put_call(1, LONG, 0, 0);
	head = bare_of(PGR_NACK, 1);
	head.data_bytes = sizeof(bitmap);
	put(&head, bitmap);
	CHECK(silent());
	/* Acks and probes carry no data. */
	head = bare_of(PGR_ACK, 1);
	head.data_bytes = 8;
	head.packet_number = LONG_PACKETS;
	put(&head, bitmap);
	CHECK(silent() && t.sent == 0);
	/* A report about our arguments is for a client, not for us. */
	head = bare_of(PGR_ACK, 1);
	head.flags = 0;
	head.packet_number = LONG_PACKETS;
	put(&head, NULL);
	CHECK(silent() && t.sent == 0);
	/* Packets of one byte: as many as there may be, and one more. */
	head = call_of(2, LATER, PGR_PACKETS_MAX);
	head.packet_bytes = head.data_bytes = 1;
	head.packet_number = PGR_PACKETS_MAX - 1;
	head.flags = PGR_FLAG_ASK;
	put(&head, pattern);
	/* so far behind the hole that no bitmap reaches: a nack without one, or with an empty one */
	CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 0);
	head.message_bytes++;
	put(&head, pattern);
	CHECK(silent());
	/* Big words in every field of what is not a call. */
	for (unsigned int i = 0; i < 20000; i++) {
		static const enum pgr_type types[] = {PGR_ACK, PGR_NACK, PGR_PROBE, PGR_CALL};

		head = bare_of(types[net_random(4)], net_random(4) ? 3 + i / 20 : 1 + net_random(2000));
		head.procedure = 1 + net_random(3);
		head.flags = (uint8_t)net_random(128);
		head.flags &= (uint8_t)~(PGR_FLAG_COOKIE | PGR_FLAG_KEYED);
		head.credits = (uint16_t)net_random(65536);
		head.message_bytes = net_random(2) ? net_random(UINT32_MAX) : net_random(2000);
		head.packet_bytes = net_random(2) ? net_random(UINT32_MAX) : net_random(600);
		head.packet_number = net_random(2) ? net_random(UINT32_MAX) : net_random(30);
		head.data_bytes = net_random(2) ? net_random(448) : head.message_bytes % 448;
		put(&head, pattern);
	}
	CHECK(stats()->clients == 1);
}

const struct protocol_test protocol_server_hostile[] = {
	{"server: corrupt packets", test_server_corrupt},
	{"server: packets cut short or too long", test_server_truncated},
	{"server: hostile packets", test_server_hostile},
	{NULL, NULL},
};
