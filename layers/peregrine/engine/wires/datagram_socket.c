/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See datagram.h: a socket's life. What it sends and receives: datagram_send.c, datagram_receive.c.
 */
#include "datagram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	HEADERS_BYTES = 28,    /* IPv4, and 8 of UDP or of our own prefix */
	HEADERS_V6_BYTES = 48, /* IPv6, and UDP */
	PACKET_BYTES_MAX = PGR_DATAGRAM_BYTES - HEADERS_BYTES,
	PACKET_BYTES_MIN = 128, /* room for header, extensions and some data */
	SOCKET_BUFFER_BYTES = 4 << 20,
	FRAME_OVERHEAD_BYTES = 1024, /* what the kernel charges a datagram beyond its bytes, generously */
};

uint32_t pgr_number_new(void)
{
	uint32_t number;

	do
		number = (uint32_t)pgr_random();
	while (!number);
	return number;
}

/* ---- life ---- */

void pgr_wait_readable(int fd, int other_fd, uint64_t timeout_ns)
{
	struct pollfd ready[] = {{.fd = fd, .events = POLLIN}, {.fd = other_fd, .events = POLLIN}};
	const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000)),
					 .tv_nsec = (long)(timeout_ns % UINT64_C(1000000000))};

	ppoll(ready, other_fd < 0 ? 1 : 2, timeout_ns > UINT64_C(1000000000000) ? NULL : &timeout, NULL);
}

void pgr_datagram_wait(struct pgr_wire *wire, uint64_t timeout_ns)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;

	pgr_wait_readable(datagram->fd, datagram->direct.fd, timeout_ns);
	datagram->direct.passed = PGR_DIRECT_PASS; /* it may have been either */
}

void pgr_datagram_watch(struct pgr_wire *wire, int fds[PGR_FDS])
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;

	fds[0] = datagram->fd;
	fds[1] = datagram->direct.fd;
	datagram->direct.passed = PGR_DIRECT_PASS; /* it may be either */
}

void pgr_datagram_close(struct pgr_wire *wire)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;

	pgr_direct_close(&datagram->direct);
	if (datagram->fd >= 0)
		close(datagram->fd);
	free(datagram->rooms);
	free(datagram);
}

void pgr_datagram_describe(const struct pgr_wire *wire, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "%s", ((const struct pgr_datagram *)wire)->text);
}

bool pgr_is_unicast(const union pgr_name *name)
{
	const uint32_t v4 = ntohl(name->v4.sin_addr.s_addr);
	const struct in6_addr *v6 = &name->v6.sin6_addr;

	return name->any.sa_family == AF_INET
		       ? v4 != INADDR_ANY && v4 != INADDR_BROADCAST && !IN_MULTICAST(v4)
		       : !IN6_IS_ADDR_UNSPECIFIED(v6) && !IN6_IS_ADDR_MULTICAST(v6) &&
				 !IN6_IS_ADDR_V4MAPPED(v6);
}

/* What the text names: an address of this host's. */
static bool read_address(const char *text, bool allow_v6, union pgr_name *at)
{
	*at = (union pgr_name){.v4 = {.sin_family = AF_INET}};
	if (text && inet_pton(AF_INET, text, &at->v4.sin_addr) == 1)
		return true;
	if (text && allow_v6) {
		const struct addrinfo hints = {.ai_family = AF_INET6, .ai_flags = AI_NUMERICHOST};
		struct addrinfo *found; /* knows scopes, fe80::1%eth0 */

		if (getaddrinfo(text, NULL, &hints, &found) == 0) {
			memcpy(&at->v6, found->ai_addr, sizeof(at->v6));
			freeaddrinfo(found);
			return true;
		}
	}
	return false;
}

int pgr_datagram_open(const struct pgr_config *config, const struct pgr_wire_ops *ops, bool allow_v6,
		      int type, int protocol, struct pgr_datagram **datagram_out, union pgr_name *at_out)
{
	struct pgr_datagram *datagram;
	const int bytes = SOCKET_BUFFER_BYTES, yes = 1;
	int family, error;

	if (!read_address(config->address, allow_v6, at_out))
		return pgr_open_fail(config, PGR_E_ARGUMENT, "the wire %s needs an %s address, not '%s'",
				     ops->name, allow_v6 ? "IPv4 or IPv6" : "IPv4",
				     config->address ? config->address : "");
	family = at_out->any.sa_family;
	datagram = calloc(1, sizeof(*datagram));
	if (!datagram)
		return PGR_E_MEMORY;
	datagram->wire.ops = ops;
	datagram->direct.fd = -1;
	datagram->rooms = aligned_alloc(64, (size_t)PGR_RECEIVE_MAX * PGR_ROOM_BYTES);
	datagram->fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	error = errno;
	if (!datagram->rooms || datagram->fd < 0) {
		const bool memory = !datagram->rooms;

		pgr_datagram_close(&datagram->wire);
		if (memory)
			return PGR_E_MEMORY;
		if (error == EPERM || error == EACCES)
			return pgr_open_fail(config, PGR_E_PERMISSION,
					     "the wire %s: %s (a raw socket needs root, or CAP_NET_RAW)",
					     ops->name, strerror(error));
		return pgr_open_fail(config, PGR_E_WIRE, "a socket for the wire %s: %s", ops->name,
				     strerror(error));
	}
	if (!pgr_datagram_forbid_fragments(datagram->fd, family) ||
	    !pgr_datagram_keep_errors(datagram->fd, family) ||
	    (family == AF_INET6 &&
	     setsockopt(datagram->fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0)) {
		error = errno;
		pgr_datagram_close(&datagram->wire);
		return pgr_open_fail(config, PGR_E_WIRE,
				     "a socket for the wire %s that fragments nothing and keeps errors: %s",
				     ops->name, strerror(error));
	}
	/* Up to what the machine allows. */
	setsockopt(datagram->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(datagram->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*datagram_out = datagram;
	return PGR_OK;
}

static bool same_host(const struct sockaddr *here, const union pgr_name *at)
{
	union pgr_name own;

	if (!here || here->sa_family != at->any.sa_family)
		return false;
	if (here->sa_family == AF_INET) {
		memcpy(&own.v4, here, sizeof(own.v4));
		return own.v4.sin_addr.s_addr == at->v4.sin_addr.s_addr;
	}
	memcpy(&own.v6, here, sizeof(own.v6));
	return memcmp(&own.v6.sin6_addr, &at->v6.sin6_addr, sizeof(own.v6.sin6_addr)) == 0;
}

/* Of the device that has this address; 1500 where it is not found. */
static int mtu_of(int fd, const union pgr_name *own, const char *device)
{
	struct ifreq request = {0};
	struct ifaddrs *all;

	if (device) {
		snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", device);
	} else if (getifaddrs(&all) == 0) {
		for (const struct ifaddrs *each = all; each; each = each->ifa_next)
			if (same_host(each->ifa_addr, own))
				snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", each->ifa_name);
		freeifaddrs(all);
	}
	return request.ifr_name[0] && ioctl(fd, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 1500;
}

int pgr_datagram_measure(struct pgr_datagram *datagram, const struct pgr_config *config,
			 const union pgr_name *at, int *buffer_bytes_out)
{
	const int mtu = mtu_of(datagram->fd, at, config->device);
	const int headers_bytes = at->any.sa_family == AF_INET ? HEADERS_BYTES : HEADERS_V6_BYTES;
	struct pgr_wire *wire = &datagram->wire;
	socklen_t length = sizeof(*buffer_bytes_out);

	if (mtu < PACKET_BYTES_MIN + headers_bytes)
		return pgr_open_fail(config, PGR_E_WIRE, "an MTU of %d bytes is too small", mtu);
	wire->packet_bytes_max =
		mtu - headers_bytes > PACKET_BYTES_MAX ? PACKET_BYTES_MAX : (uint32_t)(mtu - headers_bytes);
	if (getsockopt(datagram->fd, SOL_SOCKET, SO_RCVBUF, buffer_bytes_out, &length) < 0)
		*buffer_bytes_out = 0;
	wire->window_packets =
		(uint32_t)*buffer_bytes_out / (2 * wire->packet_bytes_max + FRAME_OVERHEAD_BYTES);
	if (wire->window_packets < 4)
		wire->window_packets = 4;
	return PGR_OK;
}
