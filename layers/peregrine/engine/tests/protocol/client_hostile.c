/* SPDX-License-Identifier: BSD-3-Clause */
/* Corrupt and hostile packets at a client. */
#include "caller.h"
#include "hostile.h"

static void test_client_corrupt(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";
	uint8_t packet[PACKET_BYTES];
	struct pgr_header head;
	size_t bytes;

	for (unsigned int keyed = 0; keyed < 2; keyed++) {
		open_endpoint(&(struct pgr_config){.key = keyed ? key : NULL});
		learn_server();
		call(10, 100);
		head = result_of(40);
		bytes = make(&head, 0, pattern, packet);
		t.executed = 0;
		cut(packet, bytes);
		for (size_t bit = 0; keyed && bit < bytes * 8; bit++) {
			const uint64_t dropped = t.pgr->stats.packets_dropped;

			packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
			put_raw(FAR, packet, bytes);
			packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (!CHECK(silent() && t.done == 0 && t.pgr->stats.packets_dropped == dropped + 1))
				break;
		}
		put_raw(FAR, packet, bytes);
		CHECK(t.done == 1 && t.code == PGR_OK && !memcmp(t.out, pattern, 40));
		close_endpoint();
	}
}

static void test_client_hostile(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	call(10, 100);
	head = result_of(5 * DATA_BYTES - 9);
	refused(&head);
	/* Anything in every field, from the server itself and from others: each call still has one event. */
	for (unsigned int i = 0; i < 50000; i++) {
		const struct pgr_slot *slot = slot_of(t.peer, net_random(4));

		if (t.peer->free & 1) {
			const uint32_t bytes = net_random(3) ? 10 : LONG_BYTES;

			t.done = 0;
			call(bytes, net_random(2) * 2000);
			t.seen_count = 0;
		}
		head = (struct pgr_header){
			.type = (uint8_t)(1 + net_random(PGR_TYPES_END - 1)),
			.flags = (uint8_t)(net_random(128) & ~(uint32_t)(PGR_FLAG_KEYED | PGR_FLAG_COOKIE)),
			.version = PGR_VERSION,
			.retransmissions = (uint8_t)net_random(4),
			.slot = slot->number,
			.credits = (uint16_t)(net_random(4) ? 0 : net_random(65536)),
			.client = t.peer->client,
			.sequence = slot->sequence + (net_random(8) ? 0 : net_random(3) - 1),
			.incarnation = net_random(16) ? slot->claimed : net_random(4),
			.procedure = net_random(4) ? slot->claimed : net_random(10),
			.message_bytes =
				net_random(4) ? 1 + net_random(5 * DATA_BYTES) : net_random(UINT32_MAX),
			.packet_bytes = net_random(8) ? DATA_BYTES : net_random(UINT32_MAX),
			.packet_number = net_random(4) ? net_random(6) : net_random(UINT32_MAX),
		};
		if (head.type == PGR_RESULT && head.packet_bytes == DATA_BYTES &&
		    head.message_bytes < 10000 && head.packet_number * DATA_BYTES < head.message_bytes &&
		    net_random(8))
			part(&head, head.message_bytes, head.packet_number);
		else
			head.data_bytes = net_random(DATA_BYTES);
		put_from(net_random(4) ? FAR : OTHER, &head, 0, pattern);
		if (!CHECK(t.done <= 1 && t.seen_count < 1000 && t.peer->under_way < 100000))
			break;
		if (!net_random(16))
			pass(net_random(40) * MS);
	}
	/* And in the end all of them end. */
	t.seen_count = 0;
	for (unsigned int i = 0; i < 30 && t.peer->free != UINT64_MAX; i++) {
		pass(SECOND);
		t.seen_count = 0;
	}
	CHECK(t.peer->free == UINT64_MAX && t.peer->under_way == 0);
}

const struct protocol_test protocol_client_hostile[] = {
	{"client: corrupt packets", test_client_corrupt},
	{"client: hostile packets", test_client_hostile},
	{NULL, NULL},
};
