/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the floor packet: put together from packets as they are sent, as a card cuts them and as a stack joins them,
 * and from nothing else. No link and no rights are needed.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "../../floors/frames/packet.h"
#include "tap.h"

enum { BYTES = 9000, PACKET = 4000, SEGMENT = 1460, ATTEMPT = 4711 };

/* What a call of take gave. */
enum { NONE = -1 };

static struct floor_state state;
static uint8_t message[BYTES], other[BYTES];

/* A receiver, whose buffer ends where it has to: the sanitizer sees any byte behind it. */
static void start(void)
{
	const uint8_t mac[6] = {2, 1, 2, 3, 4, 5};

	free(state.in);
	memset(&state, 0, sizeof(state));
	state.segment_bytes = SEGMENT;
	state.packet_bytes = PACKET;
	state.gather.attempt = ATTEMPT;
	state.in_bytes = 2 * PACKET_HEAD_BYTES + BYTES + PACKET_BYTES_MAX;
	state.in = calloc(1, state.in_bytes);
	if (!state.in)
		exit(77);
	packet_wire_start(&state, mac, 0);
}

/* `bytes` of `from` at `offset`, as message `number`, of which `arrived` bytes arrive. Bytes of the message that is whole then. */
static ssize_t take_cut(const uint8_t *from, uint32_t number, size_t offset, size_t bytes, uint8_t flags,
			size_t arrived)
{
	uint8_t covered[PACKET_HEAD_BYTES], *at = state.in + state.gather.gathered;
	struct packet_head head;
	size_t whole = 0;

	memcpy(covered, at, sizeof(covered));
	packet_wire_head(&state, &head, number, offset, bytes, flags);
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), from + offset, bytes);
	return packet_wire_take(&state, covered, arrived, &whole) ? (ssize_t)whole : NONE;
}

static ssize_t take(const uint8_t *from, uint32_t number, size_t offset, size_t bytes)
{
	return take_cut(from, number, offset, bytes, offset + bytes == BYTES ? TH_PUSH : 0,
			PACKET_HEAD_BYTES + bytes);
}

/* In pieces of `piece` bytes, from `offset` on. Of how many bytes the message is with the last one, if with no other. */
static ssize_t take_pieces(const uint8_t *from, uint32_t number, size_t offset, size_t piece)
{
	ssize_t whole = NONE;

	for (; offset < BYTES; offset += piece) {
		if (whole != NONE)
			return NONE;
		whole = take(from, number, offset, BYTES - offset < piece ? BYTES - offset : piece);
	}
	return whole;
}

static bool holds(ssize_t whole, const uint8_t *from)
{
	return whole == BYTES && !memcmp(state.in + PACKET_HEAD_BYTES, from, BYTES);
}

static uint16_t sum16(const void *at, size_t bytes, uint32_t sum)
{
	const uint8_t *byte = at;

	for (size_t i = 0; i + 1 < bytes; i += 2)
		sum += (uint32_t)(byte[i] << 8 | byte[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* What the kernel and cards ask of a head: sums, and how the packet is to be cut. */
static void heads(void)
{
	struct packet_head head;
	bool right = true, cut = true;

	start();
	for (size_t bytes = 0; bytes <= PACKET_BYTES_MAX; bytes += bytes < 3000 ? 1 : 977) {
		const bool large = bytes > SEGMENT;
		uint8_t pseudo[12] = {0};

		packet_wire_head(&state, &head, 0xfedcba98, 0x01234567, bytes, TH_PUSH);
		memcpy(pseudo, &head.ip.saddr, 8);
		pseudo[9] = IPPROTO_TCP;
		pseudo[10] = (uint8_t)((sizeof(head.tcp) + bytes) >> 8);
		pseudo[11] = (uint8_t)(sizeof(head.tcp) + bytes);
		right &= sum16(&head.ip, sizeof(head.ip), 0) == 0xffff &&
			 ntohs(head.tcp.th_sum) == sum16(pseudo, sizeof(pseudo), 0);
		cut &= head.offload.gso_type ==
			       (large ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_NONE) &&
		       head.offload.gso_size == (large ? SEGMENT : 0);
	}
	tap_ok(right, "the sums of every length are right");
	tap_ok(cut, "only what is larger than the link takes is to be cut");
	tap_ok(sizeof(head) == 64 && head.offload.csum_start == 34 && head.offload.csum_offset == 16 &&
		       head.offload.hdr_len == 54,
	       "the kernel finds the head and its sum");
}

static void losses(void)
{
	bool wrong = false;

	start();
	take(message, 0, 0, PACKET);
	tap_ok(take(message, 0, 0, PACKET) == NONE && holds(take_pieces(message, 0, PACKET, PACKET), message),
	       "the first piece may come twice");
	take(message, 1, 0, PACKET);
	take(message, 1, PACKET, 1000);
	tap_ok(take(message, 1, PACKET, 1000) == NONE &&
		       holds(take_pieces(message, 1, PACKET + 1000, PACKET), message),
	       "and any other");
	tap_ok(take_pieces(message, 1, 0, PACKET) == NONE && take(message, 0, PACKET, BYTES - PACKET) == NONE,
	       "what belongs to a whole message makes no other");
	take(message, 2, 0, PACKET);
	tap_ok(take(message, 2, 2 * PACKET, BYTES - 2 * PACKET) == NONE &&
		       take(message, 2, PACKET, PACKET) == NONE,
	       "pieces out of order make none");
	tap_ok(holds(take_pieces(other, 3, 0, PACKET), other), "the next one begins anew");
	take(message, 4, 0, PACKET);
	take(message, 4, PACKET, PACKET);
	tap_ok(holds(take_pieces(other, 5, 0, PACKET), other), "also where the end of one is lost");
	take(message, 6, 0, PACKET);
	tap_ok(take_pieces(other, 7, PACKET, PACKET) == NONE, "pieces of two messages make none");
	tap_ok(holds(take_pieces(message, 8, 0, PACKET), message), "and the next one is whole again");
	for (size_t arrived = 0; arrived < PACKET_HEAD_BYTES + PACKET; arrived++) {
		take(message, 9, 0, PACKET);
		wrong |= take_cut(message, 9, PACKET, PACKET, 0, arrived) != NONE;
		wrong |= take(message, 9, 2 * PACKET, BYTES - 2 * PACKET) != NONE;
	}
	tap_ok(!wrong, "a packet that was cut short anywhere is none");
}

static void lengths(void)
{
	struct packet_gather *gather = &state.gather;
	struct packet_head head;
	uint8_t covered[PACKET_HEAD_BYTES] = {0};
	static uint8_t long_one[4 * PACKET_BYTES_MAX];
	size_t whole = 0;
	ssize_t long_bytes = NONE;

	start();
	tap_ok(take_cut(message, 0, 0, 0, TH_PUSH, PACKET_HEAD_BYTES) == 0, "an empty message is one");
	tap_ok(take_cut(message, 1, 0, 3, TH_PUSH, PACKET_HEAD_BYTES + 6) == 3,
	       "what pads a short frame is none of it");
	take(message, 2, 0, PACKET);
	tap_ok(take_cut(message, 2, PACKET, 100, TH_PUSH, PACKET_HEAD_BYTES + 100) == PACKET + 100,
	       "a message that ends early is of a wrong length");
	for (size_t offset = 0; offset < sizeof(long_one) && long_bytes == NONE; offset += PACKET)
		long_bytes = take_cut(long_one, 3, offset, PACKET, 0, PACKET_HEAD_BYTES + PACKET);
	tap_ok(long_bytes > BYTES, "one that does not end is of a wrong length, before it overflows");
	packet_wire_head(&state, &head, 4, 0, 8, TH_PUSH);
	head.tcp.th_win ^= 1;
	memcpy(state.in, &head, sizeof(head));
	tap_ok(!packet_wire_take(&state, covered, PACKET_HEAD_BYTES + 8, &whole) && gather->number == 4,
	       "a packet of another attempt is none");
	take_cut(message, 6, 0, 0, TH_FIN, PACKET_HEAD_BYTES);
	tap_ok(gather->asked && gather->number == 6 && holds(take_pieces(message, 6, 0, PACKET), message),
	       "a question ends what came before it");
}

int main(void)
{
	for (size_t i = 0; i < BYTES; i++) {
		message[i] = (uint8_t)(i * 7 + i / 256);
		other[i] = (uint8_t)~message[i];
	}
	heads();
	start();
	tap_ok(holds(take_pieces(message, 0, 0, PACKET), message), "a message from packets as they are sent");
	tap_ok(holds(take_pieces(other, 1, 0, SEGMENT), other), "from pieces as a card cuts them");
	tap_ok(holds(take_pieces(message, 2, 0, BYTES), message), "from one, as a stack joins them");
	state.gather.number = UINT32_MAX;
	tap_ok(holds(take_pieces(message, UINT32_MAX, 0, PACKET), message) &&
		       holds(take_pieces(other, 0, 0, PACKET), other),
	       "numbers may begin again");
	losses();
	lengths();
	free(state.in);
	return tap_done();
}
