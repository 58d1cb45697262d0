/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets in UDP datagrams, each in one frame: anywhere, without privilege.
 *
 * A packet on its own is one sendmsg, gathered from where it lies. Several at once are held back and leave
 * together, those of equal length to one place as one segmented send (UDP_SEGMENT) where the kernel can, else
 * by sendmmsg; so what costs latency is paid under load only. Likewise recvmmsg is used only after a receive
 * that found a second datagram waiting.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

enum {
	HELD_MAX = 32,   /* packets held back */
	HELD_PIECES = 4, /* of each; more are sent at once */
	BATCH = 32,      /* received by one call, under load */
	DATAGRAM_BYTES = 65535,
	HEADERS_BYTES = 28, /* IPv4 and UDP */
	PACKET_BYTES_MAX = 65507,
	SOCKET_BUFFER_BYTES = 4 << 20,
	FRAME_OVERHEAD_BYTES = 1024, /* what the kernel charges a datagram beyond its bytes, generously */
};

struct held {
	struct pgr_to to;
	uint8_t head[PGR_HEADER_BYTES + PGR_EXTENSIONS_BYTES];
	struct iovec iov[HELD_PIECES];
	unsigned int count;
};

struct udp {
	struct pgr_wire wire;
	pgr_input *input;
	void *engine;
	int fd;
	unsigned int streak; /* receives in a row that found something: more than one means load */
	unsigned int held_count;
	struct held held[HELD_MAX];
	uint8_t *rooms; /* BATCH datagrams */
	char text[128];
};

static struct sockaddr_in address_of(const struct pgr_to *to)
{
	struct sockaddr_in address = {.sin_family = AF_INET};

	memcpy(&address.sin_addr, to->bytes, 4);
	memcpy(&address.sin_port, to->bytes + 4, 2);
	return address;
}

static struct pgr_to to_of(const struct sockaddr_in *address)
{
	struct pgr_to to = {{0}};

	memcpy(to.bytes, &address->sin_addr, 4);
	memcpy(to.bytes + 4, &address->sin_port, 2);
	return to;
}

/* ---- sending ---- */

/* Held packets own their headers, but their data lie with the caller; all leave before the next poll ends. */
static void udp_flush(struct pgr_wire *wire)
{
	struct udp *udp = (struct udp *)wire;
	struct mmsghdr messages[HELD_MAX];
	struct sockaddr_in names[HELD_MAX];
	unsigned int sent = 0, count = udp->held_count;

	if (PGR_LIKELY(!count))
		return;
	udp->held_count = 0;
	memset(messages, 0, count * sizeof(messages[0]));
	for (unsigned int i = 0; i < count; i++) {
		names[i] = address_of(&udp->held[i].to);
		messages[i].msg_hdr.msg_name = &names[i];
		messages[i].msg_hdr.msg_namelen = sizeof(names[i]);
		messages[i].msg_hdr.msg_iov = udp->held[i].iov;
		messages[i].msg_hdr.msg_iovlen = udp->held[i].count;
	}
	while (sent < count) {
		const int done = sendmmsg(udp->fd, messages + sent, count - sent, MSG_DONTWAIT);

		if (done > 0)
			sent += (unsigned int)done;
		else if (errno == EINTR)
			continue;
		else
			sent++; /* no room, or nobody there: lost, as on any network */
	}
}

static int udp_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		    unsigned int count, bool more)
{
	struct udp *udp = (struct udp *)wire;
	struct iovec iov[1 + PGR_IOV_MAX];
	struct sockaddr_in name;
	struct msghdr message = {.msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = iov};

	if (PGR_UNLIKELY((more || udp->held_count) && count <= HELD_PIECES)) {
		struct held *held = &udp->held[udp->held_count++];

		held->to = *to;
		memcpy(held->head, pieces[0].base, pieces[0].bytes);
		held->iov[0] = (struct iovec){held->head, pieces[0].bytes};
		for (unsigned int i = 1; i < count; i++)
			held->iov[i] = (struct iovec){(void *)(uintptr_t)pieces[i].base, pieces[i].bytes};
		held->count = count;
		if (!more || udp->held_count == HELD_MAX)
			udp_flush(wire);
		return 0;
	}
	udp_flush(wire);
	name = address_of(to);
	for (unsigned int i = 0; i < count; i++)
		iov[i] = (struct iovec){(void *)(uintptr_t)pieces[i].base, pieces[i].bytes};
	message.msg_iovlen = count;
	while (sendmsg(udp->fd, &message, MSG_DONTWAIT) < 0 && errno == EINTR)
		;
	return 0; /* what could not be sent is lost, as on any network */
}

/* ---- receiving ---- */

static int receive_many(struct udp *udp)
{
	struct mmsghdr messages[BATCH];
	struct sockaddr_in names[BATCH];
	struct iovec iov[BATCH];
	int count;

	memset(messages, 0, sizeof(messages));
	for (unsigned int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){udp->rooms + (size_t)i * DATAGRAM_BYTES, DATAGRAM_BYTES};
		messages[i].msg_hdr.msg_iov = &iov[i];
		messages[i].msg_hdr.msg_iovlen = 1;
		messages[i].msg_hdr.msg_name = &names[i];
		messages[i].msg_hdr.msg_namelen = sizeof(names[i]);
	}
	count = recvmmsg(udp->fd, messages, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < count; i++) {
		const struct pgr_to from = to_of(&names[i]);

		udp->input(udp->engine, &from, iov[i].iov_base, messages[i].msg_len);
	}
	if (count < 2)
		udp->streak = 0;
	return count > 0 ? count : 0;
}

static int udp_receive(struct pgr_wire *wire)
{
	struct udp *udp = (struct udp *)wire;
	struct sockaddr_in name;
	struct iovec iov = {udp->rooms, DATAGRAM_BYTES};
	struct msghdr message = {
		.msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = &iov, .msg_iovlen = 1};
	struct pgr_to from;
	ssize_t bytes;

	if (PGR_UNLIKELY(udp->streak > 1))
		return receive_many(udp);
	bytes = recvmsg(udp->fd, &message, MSG_DONTWAIT);
	if (bytes < 0) {
		udp->streak = 0;
		return 0;
	}
	udp->streak++;
	from = to_of(&name);
	udp->input(udp->engine, &from, udp->rooms, (size_t)bytes);
	return 1;
}

static void udp_wait(struct pgr_wire *wire, uint64_t timeout_ns, bool room)
{
	struct udp *udp = (struct udp *)wire;
	struct pollfd fd = {.fd = udp->fd, .events = POLLIN};
	const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000)),
					 .tv_nsec = (long)(timeout_ns % UINT64_C(1000000000))};

	(void)room;
	ppoll(&fd, 1, timeout_ns > UINT64_C(1000000000000) ? NULL : &timeout, NULL);
}

/* ---- life ---- */

static void udp_close(struct pgr_wire *wire)
{
	struct udp *udp = (struct udp *)wire;

	if (udp->fd >= 0)
		close(udp->fd);
	free(udp->rooms);
	free(udp);
}

static void udp_describe(const struct pgr_wire *wire, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "%s", ((const struct udp *)wire)->text);
}

/* Bytes of a datagram that still goes out in one frame of the device that has this address. */
static uint32_t frame_bytes(int fd, struct in_addr own, const char *device)
{
	struct ifreq requests[64], request = {0};
	struct ifconf all = {.ifc_len = sizeof(requests), .ifc_req = requests};
	int mtu = 1500;

	if (device) {
		snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", device);
	} else if (ioctl(fd, SIOCGIFCONF, &all) == 0) {
		for (size_t i = 0; i < (size_t)all.ifc_len / sizeof(requests[0]); i++) {
			struct sockaddr_in at;

			memcpy(&at, &requests[i].ifr_addr, sizeof(at));
			if (at.sin_addr.s_addr == own.s_addr)
				memcpy(request.ifr_name, requests[i].ifr_name, sizeof(request.ifr_name));
		}
	}
	if (request.ifr_name[0] && ioctl(fd, SIOCGIFMTU, &request) == 0)
		mtu = request.ifr_mtu;
	mtu -= HEADERS_BYTES;
	return (uint32_t)(mtu > PACKET_BYTES_MAX ? PACKET_BYTES_MAX : mtu);
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
	struct udp *udp = calloc(1, sizeof(*udp));
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t length = sizeof(at);
	int bytes = SOCKET_BUFFER_BYTES, code;
	char name[INET_ADDRSTRLEN];

	if (!udp)
		return PGR_E_MEMORY;
	udp->wire.ops = &pgr_wire_udp;
	udp->input = input;
	udp->engine = engine;
	udp->rooms = malloc((size_t)BATCH * DATAGRAM_BYTES);
	udp->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!udp->rooms || udp->fd < 0) {
		code = pgr_wire_fail(config, udp->rooms ? PGR_E_WIRE : PGR_E_MEMORY, "a UDP socket: %s",
				     strerror(errno));
		udp_close(&udp->wire);
		return code;
	}
	if (!config->address || inet_pton(AF_INET, config->address, &at.sin_addr) != 1) {
		udp_close(&udp->wire);
		return pgr_wire_fail(config, PGR_E_ARGUMENT, "the wire udp needs an IPv4 address, not '%s'",
				     config->address ? config->address : "");
	}
	setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)); /* up to what the machine allows */
	setsockopt(udp->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	code = bind_in_range(udp->fd, &at, config);
	if (code != PGR_OK) {
		udp_close(&udp->wire);
		return code;
	}
	getsockname(udp->fd, (struct sockaddr *)&at, &length);
	udp->wire.own = to_of(&at);
	udp->wire.packet_bytes_max = frame_bytes(udp->fd, at.sin_addr, config->device);
	length = sizeof(bytes);
	getsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length);
	udp->wire.window_packets = (uint32_t)bytes / (2 * udp->wire.packet_bytes_max + FRAME_OVERHEAD_BYTES);
	if (udp->wire.window_packets < 4)
		udp->wire.window_packets = 4;
	inet_ntop(AF_INET, &at.sin_addr, name, sizeof(name));
	snprintf(udp->text, sizeof(udp->text), "udp %s:%u, packets of %u bytes, receive buffer of %d bytes",
		 name, ntohs(at.sin_port), udp->wire.packet_bytes_max, bytes);
	*wire_out = &udp->wire;
	return PGR_OK;
}

const struct pgr_wire_ops pgr_wire_udp = {
	.name = "udp",
	.open = udp_open,
	.close = udp_close,
	.send = udp_send,
	.flush = udp_flush,
	.receive = udp_receive,
	.wait = udp_wait,
	.describe = udp_describe,
};
