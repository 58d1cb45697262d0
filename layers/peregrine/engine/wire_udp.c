/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in UDP datagrams, each in one frame: anywhere, without privilege. An address is {IPv4, port}. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "datagram.h"

static size_t udp_address(const struct pgr_datagram *udp, const struct pgr_to *to, struct sockaddr_in *name,
			  uint8_t *prefix)
{
	(void)udp;
	(void)prefix;
	*name = (struct sockaddr_in){.sin_family = AF_INET};
	memcpy(&name->sin_addr, to->bytes, 4);
	memcpy(&name->sin_port, to->bytes + 4, 2);
	return 0;
}

static size_t udp_skip(const struct pgr_datagram *udp, const struct sockaddr_in *name, const uint8_t *at,
		       size_t bytes, struct pgr_to *from)
{
	(void)udp;
	(void)at;
	(void)bytes;
	memcpy(from->bytes, &name->sin_addr, 4);
	memcpy(from->bytes + 4, &name->sin_port, 2);
	return 0;
}

static int bind_in_range(int fd, struct sockaddr_in *at, const struct pgr_config *config)
{
	uint32_t port = config->port_first;

	do {
		at->sin_port = htons((uint16_t)port);
		if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0)
			return PGR_OK;
		if (errno != EADDRINUSE)
			return pgr_wire_fail(config, PGR_E_WIRE, "binding a UDP socket to %s: %s",
					     config->address, strerror(errno));
	} while (++port <= config->port_last);
	return pgr_wire_fail(config, PGR_E_PORT, "no free UDP port from %u to %u on %s", config->port_first,
			     config->port_last, config->address);
}

static int udp_open(const struct pgr_config *config, pgr_input *input, void *engine,
		    struct pgr_wire **wire_out)
{
	struct pgr_datagram *udp;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	int bytes, code = pgr_datagram_open(config, &pgr_wire_udp, SOCK_DGRAM, 0, &udp, &at);

	if (code != PGR_OK)
		return code;
	udp->input = input;
	udp->engine = engine;
	udp->address = udp_address;
	udp->skip = udp_skip;
	udp->direct.wanted = true;
	code = bind_in_range(udp->fd, &at, config);
	if (code == PGR_OK)
		code = pgr_datagram_measure(udp, config, &at, &bytes);
	if (code != PGR_OK) {
		pgr_datagram_close(&udp->wire);
		return code;
	}
	/*
	 * Both came with Linux 5.0; UDP_SEGMENT is asked for per call, and given up where a route refuses
	 * it.
	 */
	udp->joined = setsockopt(udp->fd, IPPROTO_UDP, UDP_GRO, &(int){1}, sizeof(int)) == 0;
	udp->segments = udp->joined;
	getsockname(udp->fd, (struct sockaddr *)&at, &length);
	udp_skip(udp, &at, NULL, 0, &udp->wire.own);
	snprintf(udp->text, sizeof(udp->text), "udp %s:%u, packets of %u bytes, receive buffer of %d bytes%s",
		 config->address, ntohs(at.sin_port), udp->wire.packet_bytes_max, bytes,
		 udp->joined ? ", segmented" : "");
	*wire_out = &udp->wire;
	return PGR_OK;
}

const struct pgr_wire_ops pgr_wire_udp = {
	.name = "udp",
	.open = udp_open,
	.close = pgr_datagram_close,
	.send = pgr_datagram_send,
	.flush = pgr_datagram_flush,
	.receive = pgr_datagram_receive,
	.wait = pgr_datagram_wait,
	.watch = pgr_datagram_watch,
	.describe = pgr_datagram_describe,
};
