/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets directly on IP, as in the paper of 1993: no UDP between. IP has no ports, so each endpoint draws a
 * number, and a filter on its socket lets in only what is addressed to it. An address is {IPv4, number}.
 *
 * The kernel offers each packet of our protocol to every endpoint of the host, and the filters of all but one
 * refuse it: with many endpoints on one host, UDP is the better wire.
 */
#include <errno.h>
#include <linux/filter.h>
#include <stdio.h>
#include <sys/socket.h>

#include "datagram.h"

static size_t ip_address(const struct pgr_datagram *ip, const struct pgr_to *to, union pgr_name *name,
			 uint8_t *prefix)
{
	name->v4 = (struct sockaddr_in){.sin_family = AF_INET};
	memcpy(&name->v4.sin_addr, to->bytes, 4);
	memcpy(prefix, to->bytes + PGR_AT_NUMBER, 4);
	memcpy(prefix + 4, &ip->number, 4);
	return PGR_PREFIX_BYTES;
}

/* A raw socket gives the IP header too. What came before the filter was in place is refused here. */
static size_t ip_skip(const struct pgr_datagram *ip, const union pgr_name *name, const uint8_t *at,
		      size_t bytes, struct pgr_to *from)
{
	const size_t header_bytes = bytes ? (size_t)(at[0] & 15) * 4 : 0;

	if (PGR_UNLIKELY(header_bytes < PGR_IP_BYTES || at[0] >> 4 != 4 ||
			 bytes < header_bytes + PGR_PREFIX_BYTES ||
			 memcmp(at + header_bytes, &ip->number, 4) != 0))
		return SIZE_MAX;
	memcpy(from->bytes, &name->v4.sin_addr, 4);
	memcpy(from->bytes + PGR_AT_NUMBER, at + header_bytes + 4, 4);
	return header_bytes + PGR_PREFIX_BYTES;
}

/* Only packets that are addressed to our number. A filter's word is big-endian. */
static int filter(int fd, uint32_t number)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9), /* the protocol */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PGR_IP_PROTOCOL, 0, 4),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), /* X = bytes of the IP header */
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(number), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog all = {sizeof(program) / sizeof(program[0]), program};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all));
}

static bool ip_is_address(const struct pgr_wire *wire, const struct pgr_to *to)
{
	static const uint8_t no_number[4];
	uint8_t prefix[PGR_PREFIX_BYTES];
	union pgr_name name;

	ip_address((const struct pgr_datagram *)wire, to, &name, prefix);
	return pgr_is_unicast(&name) && memcmp(prefix, no_number, sizeof(no_number)) != 0;
}

static int ip_open(const struct pgr_config *config, pgr_input *input, void *engine,
		   struct pgr_wire **wire_out)
{
	struct pgr_datagram *ip;
	union pgr_name at;
	int bytes, code = pgr_datagram_open(config, &pgr_wire_ip, false, SOCK_RAW, PGR_IP_PROTOCOL, &ip, &at);

	if (code != PGR_OK)
		return code;
	ip->input = input;
	ip->engine = engine;
	ip->address = ip_address;
	ip->skip = ip_skip;
	ip->lead_bytes = 8 - (PGR_IP_BYTES + PGR_PREFIX_BYTES) % 8;
	ip->number = pgr_number_new();
	if (filter(ip->fd, ip->number) < 0)
		code = pgr_open_fail(config, PGR_E_WIRE, "preparing a raw IP socket: %s", strerror(errno));
	else if (bind(ip->fd, &at.any, sizeof(at.v4)) < 0)
		code = pgr_open_fail(config, PGR_E_WIRE, "binding a raw IP socket to %s: %s", config->address,
				     strerror(errno));
	else
		code = pgr_datagram_measure(ip, config, &at, &bytes);
	if (code != PGR_OK) {
		pgr_datagram_close(&ip->wire);
		return code;
	}
	memcpy(ip->wire.own.bytes, &at.v4.sin_addr, 4);
	memcpy(ip->wire.own.bytes + PGR_AT_NUMBER, &ip->number, 4);
	snprintf(ip->text, sizeof(ip->text),
		 "ip %s, protocol %d, packets of %u bytes, receive buffer of %d bytes", config->address,
		 PGR_IP_PROTOCOL, ip->wire.packet_bytes_max, bytes);
	*wire_out = &ip->wire;
	return PGR_OK;
}

const struct pgr_wire_ops pgr_wire_ip = {
	.name = "ip",
	.open = ip_open,
	.close = pgr_datagram_close,
	.send = pgr_datagram_send,
	.flush = pgr_datagram_flush,
	.receive = pgr_datagram_receive,
	.wait = pgr_datagram_wait,
	.watch = pgr_datagram_watch,
	.is_address = ip_is_address,
	.describe = pgr_datagram_describe,
};
