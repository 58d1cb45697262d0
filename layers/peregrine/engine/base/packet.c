/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet.h"

#include <string.h>

#include <sodium/crypto_shorthash_siphash24.h>
#include <sodium/utils.h>

_Static_assert(crypto_shorthash_siphash24_KEYBYTES == PGR_KEY_BYTES, "the key of SipHash");
_Static_assert(crypto_shorthash_siphash24_BYTES == sizeof(uint64_t), "and its value");

uint64_t pgr_hash(const uint8_t key[PGR_KEY_BYTES], const void *data, size_t bytes)
{
	uint64_t value;

	crypto_shorthash_siphash24((uint8_t *)&value, data, bytes, key);
	return value;
}

/* The check of a packet: header, cookie, and the hash of its data, so that neither side has to put them in
 * one piece. */
static uint64_t check_of(const uint8_t *key, const struct pgr_header *raw, const uint8_t *cookie,
			 const void *data, size_t data_bytes)
{
	uint8_t room[PGR_HEADER_BYTES + PGR_COOKIE_BYTES + sizeof(uint64_t)] = {0};
	const uint64_t inner = pgr_hash(key, data, data_bytes);

	memcpy(room, raw, PGR_HEADER_BYTES);
	if (cookie)
		memcpy(room + PGR_HEADER_BYTES, cookie, PGR_COOKIE_BYTES);
	memcpy(room + PGR_HEADER_BYTES + PGR_COOKIE_BYTES, &inner, sizeof(inner));
	return pgr_hash(key, room, sizeof(room));
}

/* Whether the place of a packet within its message makes sense. */
static bool fits_message(const struct pgr_header *head)
{
	uint32_t packets;
	uint64_t at;

	if (head->message_bytes > PGR_MESSAGE_BYTES_MAX)
		return false;
	if (head->flags & PGR_FLAG_REFERENCE &&
	    (head->data_bytes != PGR_REFERENCE_BYTES || head->message_bytes != PGR_REFERENCE_BYTES ||
	     head->flags & (PGR_FLAG_DELEGATED | PGR_FLAG_WORDS | PGR_FLAG_KEYED)))
		return false;
	if (head->message_bytes <= head->packet_bytes || !head->message_bytes)
		return head->packet_number == 0 && head->data_bytes == head->message_bytes;
	packets = pgr_packets_of(head->message_bytes, head->packet_bytes);
	at = (uint64_t)head->packet_number * head->packet_bytes;
	if (packets > PGR_PACKETS_MAX || head->packet_number >= packets)
		return false;
	return head->data_bytes ==
	       (head->packet_number + 1 < packets ? head->packet_bytes : head->message_bytes - (uint32_t)at);
}

/* How much data the packets have that are no part of a message. */
static bool fits_type(const struct pgr_header *head)
{
	if (head->flags & PGR_FLAG_REFERENCE)
		return false;
	switch (head->type) {
	case PGR_NACK: return head->data_bytes <= PGR_NACK_BITMAP_BYTES;
	case PGR_REJECT: return head->data_bytes == (head->procedure == PGR_REJECT_FAILED ? 4 : 0);
	default: return !head->data_bytes;
	}
}

static bool check_is_right(const uint8_t *packet, size_t bytes, size_t check_at, const uint8_t *key)
{
	struct pgr_header raw;
	uint64_t found, right;

	memcpy(&raw, packet, sizeof(raw));
	memcpy(&found, packet + check_at, sizeof(found));
	right = check_of(key, &raw, check_at > PGR_HEADER_BYTES ? packet + PGR_HEADER_BYTES : NULL,
			 packet + check_at + PGR_CHECK_BYTES, bytes - check_at - PGR_CHECK_BYTES);
	return sodium_memcmp(&found, &right, sizeof(found)) == 0;
}

bool pgr_packet_read(const void *at, size_t bytes, const uint8_t *key, struct pgr_packet *packet_out)
{
	const uint8_t *packet = at;
	struct pgr_header raw, *head = &packet_out->head;
	size_t used = PGR_HEADER_BYTES;

	if (__builtin_expect(bytes < PGR_HEADER_BYTES, 0))
		return false;
	memcpy(&raw, packet, sizeof(raw));
	if (raw.flags & PGR_FLAG_COOKIE)
		used += PGR_COOKIE_BYTES;
	if (__builtin_expect((raw.flags & PGR_FLAG_KEYED) != 0 || key != NULL, 0)) {
		if (!key || !(raw.flags & PGR_FLAG_KEYED) || bytes < used + PGR_CHECK_BYTES ||
		    !check_is_right(packet, bytes, used, key))
			return false;
		used += PGR_CHECK_BYTES;
	}
	pgr_le_header(head, &raw);
	if (__builtin_expect(head->version != PGR_VERSION || head->type < PGR_CALL ||
				     head->type >= PGR_TYPES_END || (head->flags & ~PGR_FLAGS_KNOWN) ||
				     head->slot >= PGR_SLOTS || !head->sequence || bytes < used,
			     0))
		return false;
	packet_out->cookie = 0;
	if (__builtin_expect((head->flags & PGR_FLAG_COOKIE) != 0, 0)) {
		memcpy(&packet_out->cookie, packet + PGR_HEADER_BYTES, sizeof(packet_out->cookie));
		packet_out->cookie = pgr_le64(packet_out->cookie);
	}
	packet_out->data = packet + used;
	if (head->data_bytes != bytes - used)
		return false;
	return head->type == PGR_CALL || head->type == PGR_RESULT ? fits_message(head) : fits_type(head);
}

enum pgr_fault pgr_packet_fault(const void *at, size_t bytes, const uint8_t *key, struct pgr_header *head_out)
{
	size_t used = PGR_HEADER_BYTES;
	struct pgr_header raw;

	if (bytes < PGR_HEADER_BYTES)
		return PGR_FAULT_JUNK;
	memcpy(&raw, at, sizeof(raw));
	if (raw.flags & PGR_FLAG_COOKIE)
		used += PGR_COOKIE_BYTES;
	pgr_le_header(head_out, &raw);
	if (!head_out->version || !head_out->sequence || head_out->slot >= PGR_SLOTS ||
	    bytes != used + (raw.flags & PGR_FLAG_KEYED ? PGR_CHECK_BYTES : 0) +
			     (uint64_t)head_out->data_bytes)
		return PGR_FAULT_JUNK;
	if (!key != !(raw.flags & PGR_FLAG_KEYED) || (key && !check_is_right(at, bytes, used, key)))
		return PGR_FAULT_CHECK;
	return head_out->version == PGR_VERSION ? PGR_FAULT_JUNK : PGR_FAULT_VERSION;
}

size_t pgr_packet_write(const struct pgr_header *head, uint64_t cookie, const uint8_t *key, const void *data,
			uint8_t *at)
{
	struct pgr_header raw;
	size_t used = sizeof(raw);

	pgr_le_header(&raw, head);
	if (cookie)
		raw.flags |= PGR_FLAG_COOKIE;
	if (key)
		raw.flags |= PGR_FLAG_KEYED;
	memcpy(at, &raw, sizeof(raw));
	if (cookie) {
		cookie = pgr_le64(cookie);
		memcpy(at + used, &cookie, sizeof(cookie));
		used += sizeof(cookie);
	}
	if (key) {
		const uint64_t check =
			check_of(key, &raw, cookie ? at + sizeof(raw) : NULL, data, head->data_bytes);

		memcpy(at + used, &check, sizeof(check));
		used += sizeof(check);
	}
	return used;
}
