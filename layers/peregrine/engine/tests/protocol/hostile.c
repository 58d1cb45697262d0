/* SPDX-License-Identifier: BSD-3-Clause */
/* See hostile.h. */
#include "hostile.h"

void cut(const uint8_t *packet, size_t bytes)
{
	uint8_t longer[PACKET_BYTES] = {0};

	memcpy(longer, packet, bytes);
	t.seen_count = 0;
	for (size_t length = 0; length < bytes + 20; length++) {
		const uint64_t dropped = t.pgr->stats.packets_dropped;

		if (length == bytes)
			continue;
		put_raw(FAR, longer, length);
		if (!CHECK(silent() && t.executed == 0 && t.done == 0 &&
			   t.pgr->stats.packets_dropped == dropped + 1)) {
			printf("# %zu of %zu bytes\n", length, bytes);
			return;
		}
	}
}

void refused(const struct pgr_header *right)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t bytes, value;
	} wrong[] = {
		{"type 0", offsetof(struct pgr_header, type), 1, 0},
		{"type 9", offsetof(struct pgr_header, type), 1, 9},
		{"type 255", offsetof(struct pgr_header, type), 1, 255},
		{"a reference of another length", offsetof(struct pgr_header, flags), 1, 128},
		{"version 0", offsetof(struct pgr_header, version), 1, 0},
		{"slot 64", offsetof(struct pgr_header, slot), 2, 64},
		{"slot 65535", offsetof(struct pgr_header, slot), 2, 65535},
		{"more data than there are", offsetof(struct pgr_header, data_bytes), 4, DATA_BYTES + 1},
		{"a wrap of data", offsetof(struct pgr_header, data_bytes), 4, UINT32_MAX},
		{"less data than there are", offsetof(struct pgr_header, data_bytes), 4, DATA_BYTES - 1},
		{"no data", offsetof(struct pgr_header, data_bytes), 4, 0},
		{"packets of no bytes", offsetof(struct pgr_header, packet_bytes), 4, 0},
		{"packets of other lengths", offsetof(struct pgr_header, packet_bytes), 4, DATA_BYTES + 1},
		{"a message of no bytes", offsetof(struct pgr_header, message_bytes), 4, 0},
		{"a message shorter than its packet", offsetof(struct pgr_header, message_bytes), 4, 5},
		{"a message over 1 GiB", offsetof(struct pgr_header, message_bytes), 4,
		 PGR_MESSAGE_BYTES_MAX + 1},
		{"a message of 4 GiB", offsetof(struct pgr_header, message_bytes), 4, UINT32_MAX},
		{"a message of too many packets", offsetof(struct pgr_header, message_bytes), 4,
		 (PGR_PACKETS_MAX + 1) * (uint32_t)DATA_BYTES},
		{"packet number beyond the end", offsetof(struct pgr_header, packet_number), 4, 5},
		{"a wild packet number", offsetof(struct pgr_header, packet_number), 4, UINT32_MAX},
		{"the last packet, of wrong length", offsetof(struct pgr_header, packet_number), 4, 4},
	};
	uint8_t packet[PACKET_BYTES];
	const size_t bytes = make(right, 0, pattern, packet);
	const uint32_t works = t.pgr->works_count;

	t.seen_count = 0;
	for (size_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		const uint64_t dropped = t.pgr->stats.packets_dropped;
		uint8_t other[PACKET_BYTES];

		memcpy(other, packet, bytes);
		if (i == sizeof(wrong) / sizeof(wrong[0])) { /* sequence number 0, which counts nothing */
			memset(other + offsetof(struct pgr_header, sequence), 0, sizeof(uint64_t));
		} else { /* little-endian, as all headers */
			for (uint32_t j = 0; j < wrong[i].bytes; j++)
				other[wrong[i].at + j] = (uint8_t)(wrong[i].value >> 8 * j);
		}
		put_raw(FAR, other, bytes);
		if (!CHECK(silent() && t.executed == 0 && t.done == 0 && t.pgr->works_count == works &&
			   t.pgr->stats.packets_dropped == dropped + 1))
			printf("# %s\n",
			       i == sizeof(wrong) / sizeof(wrong[0]) ? "sequence 0" : wrong[i].what);
	}
}
