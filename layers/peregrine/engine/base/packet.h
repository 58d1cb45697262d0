/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of a packet: see PROTOCOL.md. This file is the only place that knows where a field lies.
 *
 * A struct pgr_header is in the machine's own byte order, a struct pgr_line as it is on the wire. What goes
 * from one to the other goes through pgr_le16/32/64, which swap on a big-endian machine and cost nothing on a
 * little-endian one.
 */
#ifndef PGR_PACKET_H
#define PGR_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PGR_VERSION           2u
#define PGR_HEADER_BYTES      48u
#define PGR_COOKIE_BYTES      8u
#define PGR_CHECK_BYTES       8u
#define PGR_EXTENSIONS_BYTES  (PGR_COOKIE_BYTES + PGR_CHECK_BYTES)
#define PGR_TOKEN_BYTES       64u
#define PGR_REFERENCE_BYTES   24u
#define PGR_SLOTS             64u
#define PGR_KEY_BYTES         16u
#define PGR_NACK_BITMAP_BYTES 64u /* 512 packets behind the first that is missing */
#define PGR_MESSAGE_BYTES_MAX (UINT32_C(1) << 30)
#define PGR_PACKETS_MAX       (UINT32_C(1) << 20)
/* of data in a packet of 1,200 bytes: what is sent where larger packets do not arrive */
#define PGR_SMALL_BYTES (1200u - PGR_HEADER_BYTES - PGR_EXTENSIONS_BYTES)

enum pgr_type {
	/* of a client: arguments; of a server: a result */
	PGR_CALL = 1,
	PGR_RESULT,
	/* of either: what has arrived of a message */
	PGR_ACK,
	PGR_NACK,
	/* is my call there? it is, and is being executed */
	PGR_PROBE,
	PGR_ALIVE,
	/* of a server: show this cookie; not this call */
	PGR_CHALLENGE,
	PGR_REJECT,
	PGR_TYPES_END
};

enum pgr_flag {
	/* answer at once */
	PGR_FLAG_ASK = 1,
	/* a cookie follows the header */
	PGR_FLAG_COOKIE = 2,
	/* byte order of the data */
	PGR_FLAG_BIG_ENDIAN = 4,
	/* the data are big-endian 4-byte words */
	PGR_FLAG_WORDS = 8,
	PGR_FLAG_DELEGATED = 16,
	/* a check follows header and cookie */
	PGR_FLAG_KEYED = 32,
	/* of an ack or nack: a client sends it about its result */
	PGR_FLAG_OF_RESULT = 64,
	/* of a call or result: the data say where in memory of the sender's the message lies */
	PGR_FLAG_REFERENCE = 128,
	PGR_FLAGS_KNOWN = 255
};

enum pgr_reject {
	PGR_REJECT_PROCEDURE = 1,
	/* the call is of another version */
	PGR_REJECT_VERSION,
	PGR_REJECT_BUSY,
	PGR_REJECT_TOO_LARGE,
	PGR_REJECT_NOT_AUTHORISED,
	PGR_REJECT_FAILED,
	PGR_REJECT_LOST
};

/* Each field as PROTOCOL.md says; its comments here would be a second truth. */
struct pgr_header {
	uint8_t type, flags, version, retransmissions;
	uint16_t slot, credits;
	uint64_t client;
	uint64_t sequence;
	uint32_t incarnation;
	uint32_t procedure;
	uint32_t message_bytes;
	uint32_t packet_number;
	uint32_t data_bytes;
	uint32_t packet_bytes;
};

_Static_assert(PGR_SMALL_BYTES % 8 == 0, "packets begin at a multiple of 8");
_Static_assert(sizeof(struct pgr_header) == PGR_HEADER_BYTES, "the header has no padding");
_Static_assert(offsetof(struct pgr_header, client) == 8 && offsetof(struct pgr_header, incarnation) == 24,
	       "as PROTOCOL.md says");

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PGR_OWN_ORDER 0u
static inline uint16_t pgr_le16(uint16_t v)
{
	return v;
}
static inline uint32_t pgr_le32(uint32_t v)
{
	return v;
}
static inline uint64_t pgr_le64(uint64_t v)
{
	return v;
}
#else
#define PGR_OWN_ORDER ((unsigned int)PGR_FLAG_BIG_ENDIAN)
static inline uint16_t pgr_le16(uint16_t v)
{
	return __builtin_bswap16(v);
}
static inline uint32_t pgr_le32(uint32_t v)
{
	return __builtin_bswap32(v);
}
static inline uint64_t pgr_le64(uint64_t v)
{
	return __builtin_bswap64(v);
}
#endif

/* A header from the machine's own order to the wire's, or back: it is the same. Both may be one. */
static inline void pgr_le_header(struct pgr_header *head, const struct pgr_header *from)
{
	*head = *from;
	head->slot = pgr_le16(from->slot);
	head->credits = pgr_le16(from->credits);
	head->client = pgr_le64(from->client);
	head->sequence = pgr_le64(from->sequence);
	head->incarnation = pgr_le32(from->incarnation);
	head->procedure = pgr_le32(from->procedure);
	head->message_bytes = pgr_le32(from->message_bytes);
	head->packet_number = pgr_le32(from->packet_number);
	head->data_bytes = pgr_le32(from->data_bytes);
	head->packet_bytes = pgr_le32(from->packet_bytes);
}

/*
 * A header as six words, as it is on the wire. On the path of a call headers are put together in registers,
 * stored by word and copied by word: a load that spans several narrower stores has to wait for all of them.
 */
struct pgr_line {
	uint64_t word[6];
};
static inline struct pgr_line pgr_line_of(const struct pgr_header head)
{
	struct pgr_line line = {{
		pgr_le64((uint64_t)head.type | (uint64_t)head.flags << 8 | (uint64_t)head.version << 16 |
			 (uint64_t)head.retransmissions << 24 | (uint64_t)head.slot << 32 |
			 (uint64_t)head.credits << 48),
		pgr_le64(head.client),
		pgr_le64(head.sequence),
		pgr_le64((uint64_t)head.incarnation | (uint64_t)head.procedure << 32),
		pgr_le64((uint64_t)head.message_bytes | (uint64_t)head.packet_number << 32),
		pgr_le64((uint64_t)head.data_bytes | (uint64_t)head.packet_bytes << 32),
	}};

	/* or the compiler sees through it, stores field by field and loads three wide words */
	__asm__("" : "+r"(line.word[0]), "+r"(line.word[3]), "+r"(line.word[4]), "+r"(line.word[5]));
	return line;
}
static inline void pgr_line_copy(void *to, const void *from)
{
	for (unsigned int i = 0; i < 6; i++) {
		uint64_t word = ((const uint64_t *)from)[i];

		__asm__("" : "+r"(word)); /* or the compiler makes three wide moves of it */
		((uint64_t *)to)[i] = word;
	}
}

/* A packet that was checked: every length fits, and `data` lies within what arrived. */
struct pgr_packet {
	/* in the machine's own order */
	struct pgr_header head;
	/* 0 without the flag */
	uint64_t cookie;
	/* head.data_bytes of it */
	const uint8_t *data;
};

/* How many packets a message of so many bytes has; an empty message has one. More than any where they are
 * empty. */
static inline uint32_t pgr_packets_of(uint32_t message_bytes, uint32_t packet_bytes)
{
	if (message_bytes <= packet_bytes)
		return 1;
	return packet_bytes ? (message_bytes - 1) / packet_bytes + 1 : UINT32_MAX;
}

/*
 * Reads and checks the `bytes` bytes that arrived at `at`. With a key, a packet without a right check is
 * refused before anything else of it is believed; without a key, a keyed packet is refused. Returns whether
 * the packet may be used.
 */
bool pgr_packet_read(const void *at, size_t bytes, const uint8_t *key, struct pgr_packet *packet_out);

/* Why a packet may not be used. */
enum pgr_fault {
	/* it is malformed, or junk */
	PGR_FAULT_JUNK,
	/* it is of another version of the protocol; that its check is right is known */
	PGR_FAULT_VERSION,
	/* it has no check where there is a key, one where there is none, or a wrong one */
	PGR_FAULT_CHECK
};
/* Of a packet that pgr_packet_read refused. Unless it is junk, its header is in *head_out, and nothing of it is proved. */
enum pgr_fault pgr_packet_fault(const void *at, size_t bytes, const uint8_t *key,
				struct pgr_header *head_out);

/* A part of a packet in memory. */
struct pgr_piece {
	const void *base;
	size_t bytes;
};

/*
 * Writes header and extensions (the cookie unless it is 0, the check where there is a key) to `at`, which has
 * PGR_HEADER_BYTES + PGR_EXTENSIONS_BYTES of room; returns the bytes written. `data` is read only with a key.
 */
size_t pgr_packet_write(const struct pgr_header *head, uint64_t cookie, const uint8_t *key, const void *data,
			uint8_t *at);

/* SipHash-2-4 (Aumasson and Bernstein, 2012; libsodium's): its 8 bytes as they are, in no byte order. */
uint64_t pgr_hash(const uint8_t key[PGR_KEY_BYTES], const void *data, size_t bytes);

#endif
