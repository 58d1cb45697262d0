/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See datagram.h. A packet on its own is one sendmsg, gathered from where it lies. Several at once are held
 * back and leave together by sendmmsg, and recvmmsg is used only after a receive that found a second datagram
 * waiting: so what costs latency is paid under load only.
 */
#include "datagram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 32, /* received by one call, under load */
	DATAGRAM_BYTES = 65535,
	HEADERS_BYTES = 28, /* IPv4, and 8 of UDP or of our own prefix */
	PACKET_BYTES_MAX = DATAGRAM_BYTES - HEADERS_BYTES,
	PACKET_BYTES_MIN = 128, /* room for header, extensions and some data */
	SOCKET_BUFFER_BYTES = 4 << 20,
	FRAME_OVERHEAD_BYTES = 1024, /* what the kernel charges a datagram beyond its bytes, generously */
	INTERFACES = 64,
};

uint32_t pgr_number_new(void)
{
	uint32_t number;

	do
		number = (uint32_t)pgr_random();
	while (!number);
	return number;
}

/* ---- sending ---- */

/* Held packets own their headers, but their data lie with the caller; all leave before the next poll ends. */
void pgr_datagram_flush(struct pgr_wire *wire)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;
	struct mmsghdr messages[PGR_HELD_MAX];
	struct sockaddr_in names[PGR_HELD_MAX];
	uint8_t prefix[PGR_PREFIX_BYTES]; /* is in the held header already */
	unsigned int sent = 0, count = datagram->held_count;

	if (PGR_LIKELY(!count))
		return;
	datagram->held_count = 0;
	memset(messages, 0, count * sizeof(messages[0]));
	for (unsigned int i = 0; i < count; i++) {
		datagram->address(datagram, &datagram->held[i].to, &names[i], prefix);
		messages[i].msg_hdr.msg_name = &names[i];
		messages[i].msg_hdr.msg_namelen = sizeof(names[i]);
		messages[i].msg_hdr.msg_iov = datagram->held[i].iov;
		messages[i].msg_hdr.msg_iovlen = datagram->held[i].count;
	}
	while (sent < count) {
		const int done = sendmmsg(datagram->fd, messages + sent, count - sent, MSG_DONTWAIT);

		if (done > 0)
			sent += (unsigned int)done;
		else if (errno == EINTR)
			continue;
		else
			sent++; /* no room, or nobody there: lost, as on any network */
	}
}

static void hold(struct pgr_datagram *datagram, const struct pgr_to *to, const struct pgr_piece *pieces,
		 unsigned int count)
{
	struct pgr_held *held = &datagram->held[datagram->held_count++];
	struct sockaddr_in name;
	const size_t prefix_bytes = datagram->address(datagram, to, &name, held->head);

	held->to = *to;
	memcpy(held->head + prefix_bytes, pieces[0].base, pieces[0].bytes);
	held->iov[0] = (struct iovec){held->head, prefix_bytes + pieces[0].bytes};
	for (unsigned int i = 1; i < count; i++)
		held->iov[i] = (struct iovec){(void *)(uintptr_t)pieces[i].base, pieces[i].bytes};
	held->count = count;
}

int pgr_datagram_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		      unsigned int count, bool more)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;
	uint8_t prefix[PGR_PREFIX_BYTES];
	struct iovec iov[2 + PGR_IOV_MAX];
	struct sockaddr_in name;
	struct msghdr message = {.msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = iov};

	if (PGR_UNLIKELY((more || datagram->held_count) && count <= PGR_HELD_PIECES)) {
		hold(datagram, to, pieces, count);
		if (!more || datagram->held_count == PGR_HELD_MAX)
			pgr_datagram_flush(wire);
		return 0;
	}
	pgr_datagram_flush(wire);
	iov[0] = (struct iovec){prefix, datagram->address(datagram, to, &name, prefix)};
	message.msg_iovlen = iov[0].iov_len ? 1 : 0;
	for (unsigned int i = 0; i < count; i++)
		iov[message.msg_iovlen++] =
			(struct iovec){(void *)(uintptr_t)pieces[i].base, pieces[i].bytes};
	while (sendmsg(datagram->fd, &message, MSG_DONTWAIT) < 0 && errno == EINTR)
		;
	return 0; /* what could not be sent is lost, as on any network */
}

/* ---- receiving ---- */

static void take(struct pgr_datagram *datagram, const struct sockaddr_in *name, const uint8_t *at,
		 size_t bytes)
{
	struct pgr_to from = {{0}};
	const size_t before = datagram->skip(datagram, name, at, bytes, &from);

	if (PGR_LIKELY(before <= bytes))
		datagram->input(datagram->engine, &from, at + before, bytes - before);
}

static int receive_many(struct pgr_datagram *datagram)
{
	struct mmsghdr messages[BATCH];
	struct sockaddr_in names[BATCH];
	struct iovec iov[BATCH];
	int count;

	memset(messages, 0, sizeof(messages));
	for (unsigned int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){datagram->rooms + (size_t)i * DATAGRAM_BYTES, DATAGRAM_BYTES};
		messages[i].msg_hdr.msg_iov = &iov[i];
		messages[i].msg_hdr.msg_iovlen = 1;
		messages[i].msg_hdr.msg_name = &names[i];
		messages[i].msg_hdr.msg_namelen = sizeof(names[i]);
	}
	count = recvmmsg(datagram->fd, messages, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < count; i++)
		take(datagram, &names[i], iov[i].iov_base, messages[i].msg_len);
	if (count < 2)
		datagram->streak = 0;
	return count > 0 ? count : 0;
}

int pgr_datagram_receive(struct pgr_wire *wire)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;
	struct sockaddr_in name;
	struct iovec iov = {datagram->rooms, DATAGRAM_BYTES};
	struct msghdr message = {
		.msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = &iov, .msg_iovlen = 1};
	ssize_t bytes;

	if (PGR_UNLIKELY(datagram->streak > 1))
		return receive_many(datagram);
	bytes = recvmsg(datagram->fd, &message, MSG_DONTWAIT);
	if (bytes < 0) {
		datagram->streak = 0;
		return 0;
	}
	datagram->streak++;
	take(datagram, &name, datagram->rooms, (size_t)bytes);
	return 1;
}

void pgr_wait_readable(int fd, uint64_t timeout_ns)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000)),
					 .tv_nsec = (long)(timeout_ns % UINT64_C(1000000000))};

	ppoll(&ready, 1, timeout_ns > UINT64_C(1000000000000) ? NULL : &timeout, NULL);
}

void pgr_datagram_wait(struct pgr_wire *wire, uint64_t timeout_ns, bool room)
{
	(void)room;
	pgr_wait_readable(((struct pgr_datagram *)wire)->fd, timeout_ns);
}

/* ---- life ---- */

void pgr_datagram_close(struct pgr_wire *wire)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;

	if (datagram->fd >= 0)
		close(datagram->fd);
	free(datagram->rooms);
	free(datagram);
}

void pgr_datagram_describe(const struct pgr_wire *wire, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "%s", ((const struct pgr_datagram *)wire)->text);
}

int pgr_datagram_open(const struct pgr_config *config, const struct pgr_wire_ops *ops, int type, int protocol,
		      struct pgr_datagram **datagram_out, struct sockaddr_in *at_out)
{
	struct pgr_datagram *datagram;
	const int bytes = SOCKET_BUFFER_BYTES;
	int error;

	*at_out = (struct sockaddr_in){.sin_family = AF_INET};
	if (!config->address || inet_pton(AF_INET, config->address, &at_out->sin_addr) != 1)
		return pgr_wire_fail(config, PGR_E_ARGUMENT, "the wire %s needs an IPv4 address, not '%s'",
				     ops->name, config->address ? config->address : "");
	datagram = calloc(1, sizeof(*datagram));
	if (!datagram)
		return PGR_E_MEMORY;
	datagram->wire.ops = ops;
	datagram->rooms = malloc((size_t)BATCH * DATAGRAM_BYTES);
	datagram->fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
	error = errno;
	if (!datagram->rooms || datagram->fd < 0) {
		const bool memory = !datagram->rooms;

		pgr_datagram_close(&datagram->wire);
		if (memory)
			return PGR_E_MEMORY;
		if (error == EPERM || error == EACCES)
			return pgr_wire_fail(config, PGR_E_PERMISSION,
					     "the wire %s: %s (a raw socket needs root, or CAP_NET_RAW)",
					     ops->name, strerror(error));
		return pgr_wire_fail(config, PGR_E_WIRE, "a socket for the wire %s: %s", ops->name,
				     strerror(error));
	}
	/* Up to what the machine allows. */
	setsockopt(datagram->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(datagram->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*datagram_out = datagram;
	return PGR_OK;
}

/* Of the device that has this address; 1500 where it is not found. */
static int mtu_of(int fd, struct in_addr own, const char *device)
{
	struct ifreq requests[INTERFACES], request = {0};
	struct ifconf all = {.ifc_len = sizeof(requests), .ifc_req = requests};

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
	return request.ifr_name[0] && ioctl(fd, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 1500;
}

int pgr_datagram_measure(struct pgr_datagram *datagram, const struct pgr_config *config,
			 const struct sockaddr_in *at, int *buffer_bytes_out)
{
	const int mtu = mtu_of(datagram->fd, at->sin_addr, config->device);
	struct pgr_wire *wire = &datagram->wire;
	socklen_t length = sizeof(*buffer_bytes_out);

	if (mtu < PACKET_BYTES_MIN + HEADERS_BYTES)
		return pgr_wire_fail(config, PGR_E_WIRE, "an MTU of %d bytes is too small", mtu);
	wire->packet_bytes_max =
		mtu - HEADERS_BYTES > PACKET_BYTES_MAX ? PACKET_BYTES_MAX : (uint32_t)(mtu - HEADERS_BYTES);
	if (getsockopt(datagram->fd, SOL_SOCKET, SO_RCVBUF, buffer_bytes_out, &length) < 0)
		*buffer_bytes_out = 0;
	wire->window_packets =
		(uint32_t)*buffer_bytes_out / (2 * wire->packet_bytes_max + FRAME_OVERHEAD_BYTES);
	if (wire->window_packets < 4)
		wire->window_packets = 4;
	return PGR_OK;
}
