/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See datagram.h. recvmsg; recvmmsg only after a receive that found a second datagram waiting, because it
 * costs latency. Where the kernel joins the datagrams of a sender (UDP_GRO), what one receive brings is cut
 * up here.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <sys/socket.h>

#include "datagram.h"

/* Where the kernel writes how long the datagrams were that it joined. */
union control {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static size_t segment_bytes(struct msghdr *message)
{
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control;
	     control = CMSG_NXTHDR(message, control))
		if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
			int bytes;

			memcpy(&bytes, CMSG_DATA(control), sizeof(bytes));
			return bytes > 0 ? (size_t)bytes : 0;
		}
	return 0;
}

/*
 * Arguments begin at a multiple of 8, and so do packets. But for those behind options of IP, and those behind an odd one
 * that the kernel joined with them: they are moved down, over what was taken already.
 */
static uint8_t *aligned(uint8_t *packet, size_t bytes)
{
	const size_t off = (uintptr_t)packet % 8;

	return PGR_LIKELY(!off) ? packet : memmove(packet - off, packet, bytes);
}

static void take_one(struct pgr_datagram *datagram, const union pgr_name *name, uint8_t *at, size_t bytes)
{
	struct pgr_to from = {{0}};
	const size_t before = datagram->skip(datagram, name, at, bytes, &from);

	if (PGR_LIKELY(before <= bytes) &&
	    PGR_LIKELY(datagram->input(datagram->engine, &from, aligned(at + before, bytes - before),
				       bytes - before)))
		pgr_direct_note(&datagram->direct, &from);
}

static void take(struct pgr_datagram *datagram, struct msghdr *message, size_t bytes)
{
	const union pgr_name *name = message->msg_name;
	uint8_t *at = message->msg_iov->iov_base;
	size_t part = PGR_UNLIKELY(message->msg_controllen != 0) ? segment_bytes(message) : 0;

	if (PGR_LIKELY(!part || part > bytes))
		part = bytes;
	do {
		take_one(datagram, name, at, part);
		at += part, bytes -= part;
		if (part > bytes)
			part = bytes;
	} while (bytes);
}

static struct msghdr message_for(struct iovec *iov, union pgr_name *name, union control *control, bool joined)
{
	return (struct msghdr){
		.msg_name = name,
		.msg_namelen = sizeof(*name),
		.msg_iov = iov,
		.msg_iovlen = 1,
		.msg_control = joined ? control : NULL,
		.msg_controllen = joined ? sizeof(*control) : 0,
	};
}

/* Nothing was received; or an error was told instead, once, of an earlier packet, of which the kernel keeps more. */
static void nothing_came(struct pgr_datagram *datagram)
{
	datagram->busy_receives = 0;
	if (PGR_UNLIKELY(errno != EAGAIN && errno != EINTR))
		pgr_datagram_errors(datagram);
}

static int receive_many(struct pgr_datagram *datagram, int fd)
{
	struct mmsghdr messages[PGR_RECEIVE_MAX];
	union pgr_name names[PGR_RECEIVE_MAX];
	union control controls[PGR_RECEIVE_MAX];
	struct iovec iov[PGR_RECEIVE_MAX];
	int count;

	for (unsigned int i = 0; i < PGR_RECEIVE_MAX; i++) {
		iov[i] = (struct iovec){datagram->rooms + (size_t)i * PGR_ROOM_BYTES + datagram->lead_bytes,
					PGR_DATAGRAM_BYTES};
		messages[i].msg_hdr = message_for(&iov[i], &names[i], &controls[i], datagram->joined);
	}
	count = recvmmsg(fd, messages, PGR_RECEIVE_MAX, MSG_DONTWAIT, NULL);
	if (count < 0)
		nothing_came(datagram);
	for (int i = 0; i < count; i++)
		take(datagram, &messages[i].msg_hdr, messages[i].msg_len);
	if (count < 2)
		datagram->busy_receives = 0;
	return count > 0 ? count : 0;
}

static int receive_from(struct pgr_datagram *datagram, int fd)
{
	struct iovec iov = {datagram->rooms + datagram->lead_bytes, PGR_DATAGRAM_BYTES};
	union pgr_name name;
	union control control;
	struct msghdr message;
	ssize_t bytes;

	if (PGR_UNLIKELY(datagram->busy_receives > 1))
		return receive_many(datagram, fd);
	message = message_for(&iov, &name, &control, datagram->joined);
	bytes = recvmsg(fd, &message, MSG_DONTWAIT);
	if (bytes < 0) {
		nothing_came(datagram);
		return 0;
	}
	datagram->busy_receives++;
	take(datagram, &message, (size_t)bytes);
	return 1;
}

/* As long as one packet comes at a time, by the shortest call that there is. */
static int receive_direct(struct pgr_datagram *datagram)
{
	struct pgr_direct *direct = &datagram->direct;
	ssize_t bytes;

	if (PGR_UNLIKELY(direct->joined || datagram->busy_receives > 1))
		return receive_from(datagram, direct->fd);
	bytes = recv(direct->fd, datagram->rooms, PGR_DATAGRAM_BYTES, MSG_DONTWAIT);
	if (bytes < 0) {
		nothing_came(datagram);
		return 0;
	}
	if (++datagram->busy_receives > 1 && datagram->joined)
		direct->joined = setsockopt(direct->fd, IPPROTO_UDP, UDP_GRO, &(int){1}, sizeof(int)) == 0;
	datagram->input(datagram->engine, &direct->to, datagram->rooms, (size_t)bytes);
	return 1;
}

int pgr_datagram_receive(struct pgr_wire *wire)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;
	struct pgr_direct *direct = &datagram->direct;
	unsigned int busy_receives;
	int received;

	if (PGR_UNLIKELY(datagram->errors)) /* that packets met on their way out */
		pgr_datagram_errors(datagram);
	if (direct->fd < 0) {
		if (PGR_UNLIKELY(direct->wanted && direct->run == PGR_DIRECT_RUN))
			pgr_direct_open(datagram);
		return receive_from(datagram, datagram->fd);
	}
	received = receive_direct(datagram);
	direct->passed += 1 + (unsigned int)received;
	if (PGR_LIKELY(!direct->ending && direct->passed < PGR_DIRECT_PASS))
		return received;
	if (pgr_wire_is_copy(wire)) /* since a moment ago */
		return received;
	if (direct->ending && received == 0)
		pgr_direct_close(direct);
	direct->passed = 0;
	busy_receives = datagram->busy_receives; /* it is about the other socket */
	datagram->busy_receives = 0;
	received += receive_from(datagram, datagram->fd);
	datagram->busy_receives = busy_receives;
	return received;
}
