/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads of packets, and messages from the pieces that arrive. See packet.h. */
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "packet.h"

#define PORT 7u /* echo: no stack ever sees it */

/* RFC 2544: for benchmarks */
static uint32_t address_of(int endpoint)
{
	return htonl(0xc6120001u + (uint32_t)endpoint);
}

static uint32_t sum_of(const void *at, size_t bytes)
{
	uint32_t sum = 0;
	uint16_t word;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		memcpy(&word, (const uint8_t *)at + i, sizeof(word));
		sum += word;
	}
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

void packet_wire_start(struct floor_state *state, const uint8_t to[6], int endpoint)
{
	struct packet_head *head = &state->head;

	*head = (struct packet_head){
		/* the kernel, or the card, sums up the payload where one needs it */
		.offload = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
			    .hdr_len = PACKET_HEAD_BYTES - sizeof(head->offload),
			    .gso_size = (uint16_t)state->segment_bytes,
			    .csum_start = sizeof(head->ether) + sizeof(head->ip),
			    .csum_offset = offsetof(struct tcphdr, th_sum)},
		.ether = {.ether_type = htons(ETHERTYPE_IP)},
		.ip = {.version = 4,
		       .ihl = sizeof(head->ip) / 4,
		       .frag_off = htons(IP_DF),
		       .ttl = 1,
		       .protocol = IPPROTO_TCP,
		       .saddr = address_of(endpoint),
		       .daddr = address_of(1 - endpoint)},
		.tcp = {.th_sport = htons(PORT), .th_dport = htons(PORT), .th_off = sizeof(head->tcp) / 4},
	};
	memcpy(head->ether.ether_shost, state->mac, sizeof(state->mac));
	memcpy(head->ether.ether_dhost, to, sizeof(state->mac));
	state->ip_sum = sum_of((const uint8_t *)head + offsetof(struct packet_head, ip), sizeof(head->ip));
	state->tcp_sum = sum_of((const uint8_t *)head + offsetof(struct packet_head, ip.saddr),
				2 * sizeof(head->ip.saddr)) +
			 htons(IPPROTO_TCP);
}

void packet_wire_head(const struct floor_state *state, struct packet_head *head, uint32_t number,
		      size_t offset, size_t bytes, uint8_t flags)
{
	const uint16_t length = htons((uint16_t)(PACKET_INNER_BYTES + bytes));

	*head = state->head;
	head->offload.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	if (bytes <= state->segment_bytes) {
		head->offload.gso_type = VIRTIO_NET_HDR_GSO_NONE;
		head->offload.gso_size = 0;
	}
	head->ip.tot_len = length;
	head->ip.check = (uint16_t)~fold(state->ip_sum + length);
	head->tcp.th_seq = htonl((uint32_t)offset);
	head->tcp.th_ack = htonl(number);
	head->tcp.th_flags = TH_ACK | flags;
	head->tcp.th_win = state->gather.attempt;
	/* of the pseudo header alone: what is left to be summed up begins with it */
	head->tcp.th_sum = fold(state->tcp_sum + htons((uint16_t)(sizeof(head->tcp) + bytes)));
}

size_t packet_wire_payload(const struct packet_gather *gather, const struct packet_head *head,
			   size_t received)
{
	const size_t length = ntohs(head->ip.tot_len);

	/* short ones are padded on their way, none is cut short */
	if (received < PACKET_HEAD_BYTES || length < PACKET_INNER_BYTES ||
	    length - PACKET_INNER_BYTES > received - PACKET_HEAD_BYTES || head->tcp.th_win != gather->attempt)
		return SIZE_MAX;
	return length - PACKET_INNER_BYTES;
}

/* A packet of a message behind the one that was awaited, which is lost then. False: the newer one is as well. */
static bool skip_to(struct floor_state *state, uint32_t number, size_t offset, size_t bytes)
{
	struct packet_gather *gather = &state->gather;
	uint8_t *const payload = state->in + PACKET_HEAD_BYTES;

	memmove(payload, payload + gather->gathered, bytes);
	gather->number = number;
	gather->gathered = 0;
	if (!offset)
		return true;
	gather->number++;
	return false;
}

bool packet_wire_take(struct floor_state *state, const uint8_t covered[PACKET_HEAD_BYTES], size_t received,
		      size_t *bytes_out)
{
	struct packet_gather *gather = &state->gather;
	uint8_t *const at = state->in + gather->gathered;
	struct packet_head head;
	uint32_t number, offset;
	size_t bytes;

	memcpy(&head, at, sizeof(head));
	memcpy(at, covered, sizeof(head));
	bytes = packet_wire_payload(gather, &head, received);
	if (bytes == SIZE_MAX)
		return false;
	number = ntohl(head.tcp.th_ack);
	offset = ntohl(head.tcp.th_seq);
	gather->asked |= (head.tcp.th_flags & TH_FIN) != 0;
	/* it came twice, or after a newer one */
	if ((int32_t)(number - gather->number) < 0)
		return false;
	if (number != gather->number && !skip_to(state, number, offset, bytes))
		return false;
	/* twice, or a piece before it is lost and so is the message: whatever of it follows comes here as well */
	if (offset != gather->gathered)
		return false;
	gather->gathered += bytes;
	/* longer than any: it ends here, and is of a wrong length */
	if (gather->gathered + PACKET_HEAD_BYTES + PACKET_BYTES_MAX <= state->in_bytes &&
	    !(head.tcp.th_flags & TH_PUSH))
		return false;
	*bytes_out = gather->gathered;
	gather->number++;
	gather->gathered = 0;
	return true;
}
