/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets in UDP datagrams, each in one frame: anywhere, without privilege. An address is {IPv4, port}, or, for IPv6, {word
 * of the network, port, 6, IPv6, scope}: the first four bytes say whose it is, as everywhere.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "datagram.h"

enum { IS_V6 = 6, HOST_BYTES = 256 };

struct address_v6 {
	/* of the first half, which is the network's: who has one has all of its addresses */
	uint8_t network[4];
	uint8_t port[2];
	/* IS_V6; 0 in an IPv4 address */
	uint8_t kind, zero;
	uint8_t host[16];
	/* of an address that is good on one link only, and there alone: the device's number here, as it is */
	uint32_t scope;
	uint8_t zeros[4];
};
_Static_assert(sizeof(struct address_v6) == PGR_ADDRESS_BYTES && offsetof(struct address_v6, kind) == 6,
	       "an IPv4 address ends before it");

static size_t udp_address(const struct pgr_datagram *udp, const struct pgr_to *to, union pgr_name *name,
			  uint8_t *prefix)
{
	(void)udp;
	(void)prefix;
	if (PGR_LIKELY(to->bytes[offsetof(struct address_v6, kind)] != IS_V6)) {
		name->v4 = (struct sockaddr_in){.sin_family = AF_INET};
		memcpy(&name->v4.sin_addr, to->bytes, 4);
		memcpy(&name->v4.sin_port, to->bytes + 4, 2);
	} else {
		struct address_v6 at;

		memcpy(&at, to->bytes, sizeof(at));
		name->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_scope_id = at.scope};
		memcpy(&name->v6.sin6_port, at.port, sizeof(at.port));
		memcpy(&name->v6.sin6_addr, at.host, sizeof(at.host));
	}
	return 0;
}

static PGR_COLD void from_v6(const struct sockaddr_in6 *name, struct pgr_to *from)
{
	struct address_v6 at = {.kind = IS_V6, .scope = name->sin6_scope_id};

	memcpy(at.host, &name->sin6_addr, sizeof(at.host));
	memcpy(at.port, &name->sin6_port, sizeof(at.port));
	for (unsigned int i = 0; i < 4; i++)
		at.network[i] = at.host[i] ^ at.host[4 + i];
	memcpy(from->bytes, &at, sizeof(at));
}

static size_t udp_skip(const struct pgr_datagram *udp, const union pgr_name *name, const uint8_t *at,
		       size_t bytes, struct pgr_to *from)
{
	(void)udp;
	(void)at;
	(void)bytes;
	if (PGR_UNLIKELY(name->any.sa_family != AF_INET)) {
		from_v6(&name->v6, from);
		return 0;
	}
	memcpy(from->bytes, &name->v4.sin_addr, 4);
	memcpy(from->bytes + 4, &name->v4.sin_port, 2);
	return 0;
}

/* ---- names ---- */

static bool is_v6(const struct pgr_wire *wire)
{
	return wire->own.bytes[offsetof(struct address_v6, kind)] == IS_V6;
}

static bool is_port(const char *text)
{
	const size_t digits = strspn(text, "0123456789");

	return digits && digits < 6 && !text[digits] && strtoul(text, NULL, 10) <= UINT16_MAX;
}

/* HOST:PORT, where HOST may be a name, and an IPv6 address stands in brackets. */
static int udp_resolve(const struct pgr_wire *wire, const char *text, struct pgr_to *to_out)
{
	const struct addrinfo hints = {.ai_family = is_v6(wire) ? AF_INET6 : AF_INET,
				       .ai_socktype = SOCK_DGRAM,
				       .ai_flags = AI_NUMERICSERV};
	const char *colon = strrchr(text, ':'), *begin = text, *end = colon;
	char host[HOST_BYTES];
	struct addrinfo *found;
	union pgr_name name;
	int code;

	if (!colon || !is_port(colon + 1) || colon == text)
		return PGR_E_ARGUMENT;
	if (text[0] == '[') {
		if (colon[-1] != ']')
			return PGR_E_ARGUMENT;
		begin++, end--;
	} else if (memchr(text, ':', (size_t)(colon - text))) {
		return PGR_E_ARGUMENT; /* where would the port begin? */
	}
	if (begin >= end || (size_t)(end - begin) >= sizeof(host))
		return PGR_E_ARGUMENT;
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	code = getaddrinfo(host, colon + 1, &hints, &found);
	if (code != 0)
		return code == EAI_MEMORY ? PGR_E_MEMORY : PGR_E_WIRE;
	memset(&name, 0, sizeof(name));
	memcpy(&name, found->ai_addr, found->ai_addrlen < sizeof(name) ? found->ai_addrlen : sizeof(name));
	freeaddrinfo(found);
	*to_out = (struct pgr_to){{0}};
	udp_skip(NULL, &name, NULL, 0, to_out);
	return PGR_OK;
}

static void udp_text(const struct pgr_wire *wire, const struct pgr_to *to, char *text, size_t text_bytes)
{
	char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 2] = "", port[8] = "";
	union pgr_name name;

	(void)wire;
	udp_address(NULL, to, &name, NULL);
	getnameinfo(&name.any, pgr_name_bytes(&name), host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, text_bytes, name.any.sa_family == AF_INET ? "%s:%s" : "[%s]:%s", host, port);
}

static bool udp_is_address(const struct pgr_wire *wire, const struct pgr_to *to)
{
	union pgr_name name;

	udp_address(NULL, to, &name, NULL);
	/* not one of the other kind, or of another wire */
	return (name.any.sa_family == AF_INET6) == is_v6(wire) && pgr_is_unicast(&name) &&
	       (name.any.sa_family == AF_INET ? name.v4.sin_port : name.v6.sin6_port);
}

/* ---- life ---- */

static int bind_in_range(int fd, union pgr_name *at, const struct pgr_config *config)
{
	uint32_t port = config->port_first;

	do {
		if (at->any.sa_family == AF_INET)
			at->v4.sin_port = htons((uint16_t)port);
		else
			at->v6.sin6_port = htons((uint16_t)port);
		if (bind(fd, &at->any, pgr_name_bytes(at)) == 0)
			return PGR_OK;
		if (errno != EADDRINUSE)
			return pgr_open_fail(config, PGR_E_WIRE, "binding a UDP socket to %s: %s",
					     config->address, strerror(errno));
	} while (++port <= config->port_last);
	return pgr_open_fail(config, PGR_E_PORT, "no free UDP port from %u to %u on %s", config->port_first,
			     config->port_last, config->address);
}

static int udp_open(const struct pgr_config *config, pgr_input *input, void *engine,
		    struct pgr_wire **wire_out)
{
	char own[PGR_ADDRESS_TEXT_BYTES];
	struct pgr_datagram *udp;
	union pgr_name at;
	socklen_t length = sizeof(at);
	int bytes, code = pgr_datagram_open(config, &pgr_wire_udp, true, SOCK_DGRAM, 0, &udp, &at);

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
	getsockname(udp->fd, &at.any, &length);
	udp_skip(udp, &at, NULL, 0, &udp->wire.own);
	udp_text(&udp->wire, &udp->wire.own, own, sizeof(own));
	snprintf(udp->text, sizeof(udp->text), "udp %s, packets of %u bytes, receive buffer of %d bytes%s",
		 own, udp->wire.packet_bytes_max, bytes, udp->joined ? ", segmented" : "");
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
	.is_address = udp_is_address,
	.resolve = udp_resolve,
	.text = udp_text,
	.describe = pgr_datagram_describe,
};
