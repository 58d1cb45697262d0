/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a header and of a check, and the number of packets of a message. */
#include "hand.h"

/* Header and extensions byte by byte as PROTOCOL.md says, whatever the byte order of this machine. */
static void test_layout(void)
{
	static const struct pgr_header head = {
		.type = 1,
		.flags = 2, /* that of the cookie, too */
		.version = 3,
		.retransmissions = 4,
		.slot = 0x0605,
		.credits = 0x0807,
		.client = UINT64_C(0x100f0e0d0c0b0a09),
		.sequence = UINT64_C(0x1817161514131211),
		.incarnation = 0x1c1b1a19,
		.procedure = 0x201f1e1d,
		.message_bytes = 0x24232221,
		.packet_number = 0x28272625,
		.data_bytes = 0x2c2b2a29,
		.packet_bytes = 0x302f2e2d,
	};
	const uint64_t cookie = UINT64_C(0x3837363534333231);
	const struct pgr_line line = pgr_line_of(head);
	uint8_t packet[PACKET_BYTES], at[sizeof(line)];
	struct pgr_header back;

	CHECK(pgr_packet_write(&head, cookie, NULL, NULL, packet) == 56);
	memcpy(at, &line, sizeof(line));
	for (unsigned int i = 0; i < 56; i++)
		if (!CHECK(packet[i] == i + 1 && (i >= sizeof(at) || at[i] == i + 1)))
			printf("# byte %u\n", i);
	memcpy(&back, packet, sizeof(back));
	pgr_le_header(&back, &back);
	CHECK(!memcmp(&back, &head, sizeof(head)));
}

/* The check under a key, of a packet with a cookie and 5 bytes of data. */
static void test_check(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters",
			     right[] = {0xee, 0x8c, 0x57, 0xc2, 0xf8, 0x95, 0xa1, 0xcc};
	static const struct pgr_header head = {
		.type = PGR_CALL,
		.version = PGR_VERSION,
		.slot = 5,
		.credits = 0x0807,
		.client = CLIENT,
		.sequence = 9,
		.incarnation = INCARNATION,
		.procedure = ECHO,
		.message_bytes = 5,
		.data_bytes = 5,
		.packet_bytes = DATA_BYTES,
	};
	struct pgr_packet read;
	uint8_t packet[PACKET_BYTES];
	size_t bytes;

	t.key = key;
	bytes = make(&head, COOKIE, "abcde", packet);
	CHECK(bytes == 48 + 8 + 8 + 5 && !memcmp(packet + 56, right, sizeof(right)));
	CHECK(pgr_packet_read(packet, bytes, key, &read) && read.cookie == COOKIE &&
	      read.head.client == CLIENT && !memcmp(read.data, "abcde", 5));
}

/* pgr_packets_of for all that may be asked. */
static void test_packets_of(void)
{
	CHECK(pgr_packets_of(0, 0) == 1 && pgr_packets_of(0, 10) == 1);
	CHECK(pgr_packets_of(10, 10) == 1 && pgr_packets_of(11, 10) == 2 && pgr_packets_of(20, 10) == 2);
	CHECK(pgr_packets_of(UINT32_MAX, 1) == UINT32_MAX && pgr_packets_of(UINT32_MAX, UINT32_MAX) == 1);
	/* No number of packets of no bytes makes a message; it is no division by zero either. */
	CHECK(pgr_packets_of(1, 0) > PGR_PACKETS_MAX);
}

const struct protocol_test protocol_bytes[] = {
	{"the bytes of a header", test_layout},
	{"the bytes of a check", test_check},
	{"the number of packets", test_packets_of},
	{NULL, NULL},
};
