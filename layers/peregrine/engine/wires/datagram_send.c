/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See datagram.h. A packet on its own is one sendmsg, gathered from where it lies. Several at once are held
 * back and leave together by sendmmsg, and those of one length to one address as a single large datagram that
 * the kernel, or the device, cuts up (UDP_SEGMENT): so what costs latency is paid under load only.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <sys/socket.h>

#include "datagram.h"

enum {
	SEGMENTED_BYTES_MAX = 65507, /* of one datagram before it is cut up */
	PIECES_MAX = PGR_HELD_MAX * PGR_HELD_PIECES,
};

/* What one sendmmsg takes. */
struct batch {
	int fd; /* of all */
	struct mmsghdr messages[PGR_HELD_MAX];
	union pgr_name names[PGR_HELD_MAX];
	unsigned int packets[PGR_HELD_MAX]; /* in each message */
	unsigned int count, pieces;
	struct iovec iov[PIECES_MAX];
	union {
		char room[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control[PGR_HELD_MAX];
};

/* a socket first tells what became of an earlier packet, once for each; after so many in a row it is about this one */
enum { TRIES_MAX = 3 };

/* Nothing was sent. Whether it is worth another try. */
static PGR_COLD bool again(struct pgr_datagram *datagram, int error, unsigned int *tries_inout)
{
	if (error == EINTR)
		return true;
	if (error == EAGAIN || error == ENOBUFS)
		return false;
	datagram->errors = true;
	return ++*tries_inout < TRIES_MAX;
}

/* The kernel refuses a packet, which is lost. Where there is only no room, nobody is to blame. */
static PGR_COLD void record_refusal(struct pgr_datagram *datagram, const struct pgr_to *to, int error)
{
	if (error == EAGAIN || error == ENOBUFS)
		return;
	datagram->wire.refused = error;
	datagram->wire.refused_to = *to;
}

/*
 * How many held packets may leave as one: to one address, all as long as the first; the last may be
 * shorter.
 */
static unsigned int segment_run(const struct pgr_datagram *datagram, unsigned int first)
{
	const struct pgr_held *head = &datagram->held[first];
	size_t bytes = head->bytes;
	unsigned int count = 1;

	if (!datagram->segments)
		return 1;
	while (first + count < datagram->held_count) {
		const struct pgr_held *next = &datagram->held[first + count];

		if (next->bytes > head->bytes || bytes + next->bytes > SEGMENTED_BYTES_MAX ||
		    memcmp(&next->to, &head->to, sizeof(head->to)) != 0)
			break;
		bytes += next->bytes;
		count++;
		if (next->bytes < head->bytes)
			break;
	}
	return count;
}

static void add_message(struct batch *batch, const struct pgr_datagram *datagram, unsigned int first)
{
	const unsigned int packets = segment_run(datagram, first);
	struct msghdr *message = &batch->messages[batch->count].msg_hdr;
	union pgr_name *name = &batch->names[batch->count];
	uint8_t prefix[PGR_PREFIX_BYTES]; /* is in the held header already */

	*message = (struct msghdr){.msg_iov = &batch->iov[batch->pieces]};
	if (batch->fd == datagram->fd) {
		datagram->address(datagram, &datagram->held[first].to, name, prefix);
		message->msg_name = name;
		message->msg_namelen = pgr_name_bytes(name);
	}
	for (unsigned int i = first; i < first + packets; i++) {
		const struct pgr_held *held = &datagram->held[i];

		memcpy(&batch->iov[batch->pieces], held->iov, held->count * sizeof(held->iov[0]));
		batch->pieces += held->count;
		message->msg_iovlen += held->count;
	}
	if (packets > 1) {
		const uint16_t segment_bytes = (uint16_t)datagram->held[first].bytes;
		struct cmsghdr *control = &batch->control[batch->count].align;

		message->msg_control = control;
		message->msg_controllen = sizeof(batch->control[0].room);
		*control = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(segment_bytes)),
					    .cmsg_level = IPPROTO_UDP,
					    .cmsg_type = UDP_SEGMENT};
		memcpy(CMSG_DATA(control), &segment_bytes, sizeof(segment_bytes));
	}
	batch->packets[batch->count++] = packets;
}

/* Sends held packets from `first` on; returns how many of them are done with, which may be none: then it is called again. */
static unsigned int send_some(struct pgr_datagram *datagram, unsigned int first, unsigned int *tries_inout)
{
	struct batch batch;
	unsigned int packets = 0;
	int sent, error;

	batch.count = batch.pieces = 0;
	batch.fd = pgr_datagram_fd(datagram, &datagram->held[first].to);
	for (unsigned int i = first; i < datagram->held_count; i += batch.packets[batch.count - 1]) {
		if (pgr_datagram_fd(datagram, &datagram->held[i].to) != batch.fd)
			break;
		add_message(&batch, datagram, i);
	}
	sent = sendmmsg(batch.fd, batch.messages, batch.count, MSG_DONTWAIT);
	for (int i = 0; i < sent; i++)
		packets += batch.packets[i];
	if (sent > 0) {
		*tries_inout = 0;
		return packets;
	}
	error = errno;
	if (again(datagram, error, tries_inout))
		return 0;
	*tries_inout = 0;
	if (batch.packets[0] > 1 && (error == EINVAL || error == EIO || error == EMSGSIZE)) {
		datagram->segments = false; /* this route does not cut them up */
		return 0;
	}
	record_refusal(datagram, &datagram->held[first].to,
		       error); /* no room, or no way: lost, as on any network */
	return batch.packets[0];
}

void pgr_datagram_flush(struct pgr_wire *wire)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;
	unsigned int tries = 0;

	for (unsigned int done = 0; done < datagram->held_count;)
		done += send_some(datagram, done, &tries);
	datagram->held_count = 0;
	wire->holds_callers_data = false;
}

/* A held packet owns its header and few data; what is more stays with the caller until the flush. */
static void hold(struct pgr_datagram *datagram, const struct pgr_to *to, const struct pgr_piece *pieces,
		 unsigned int count)
{
	struct pgr_held *held = &datagram->held[datagram->held_count++];
	union pgr_name name;
	size_t used = datagram->address(datagram, to, &name, held->head);

	held->to = *to;
	memcpy(held->head + used, pieces[0].base, pieces[0].bytes);
	used += pieces[0].bytes;
	held->bytes = used;
	for (unsigned int i = 1; i < count; i++)
		held->bytes += pieces[i].bytes;
	held->count = 1;
	if (held->bytes <= sizeof(held->head)) {
		for (unsigned int i = 1; i < count; used += pieces[i++].bytes)
			if (pieces[i].bytes)
				memcpy(held->head + used, pieces[i].base, pieces[i].bytes);
	} else {
		for (unsigned int i = 1; i < count; i++)
			held->iov[held->count++] =
				(struct iovec){(void *)(uintptr_t)pieces[i].base, pieces[i].bytes};
		datagram->wire.holds_callers_data = true;
	}
	held->iov[0] = (struct iovec){held->head, used};
}

int pgr_datagram_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		      unsigned int count, bool more)
{
	struct pgr_datagram *datagram = (struct pgr_datagram *)wire;
	uint8_t prefix[PGR_PREFIX_BYTES];
	struct iovec iov[2 + PGR_IOV_MAX];
	union pgr_name name;
	struct msghdr message = {.msg_iov = iov};
	const int fd = pgr_datagram_fd(datagram, to);
	unsigned int tries = 0;
	ssize_t sent;

	if (PGR_UNLIKELY((more || datagram->held_count) && count <= PGR_HELD_PIECES)) {
		hold(datagram, to, pieces, count);
		if (!more || datagram->held_count == PGR_HELD_MAX)
			pgr_datagram_flush(wire);
		return 0;
	}
	if (PGR_UNLIKELY(datagram->held_count))
		pgr_datagram_flush(wire);
	if (count == 1 && fd != datagram->fd) {
		do
			sent = send(fd, pieces[0].base, pieces[0].bytes, MSG_DONTWAIT);
		while (PGR_UNLIKELY(sent < 0) && again(datagram, errno, &tries));
		if (PGR_UNLIKELY(sent < 0))
			record_refusal(datagram, to, errno);
		return 0;
	}
	if (fd == datagram->fd) {
		iov[0] = (struct iovec){prefix, datagram->address(datagram, to, &name, prefix)};
		message.msg_iovlen = iov[0].iov_len ? 1 : 0;
		message.msg_name = &name;
		message.msg_namelen = pgr_name_bytes(&name);
	}
	for (unsigned int i = 0; i < count; i++)
		iov[message.msg_iovlen++] =
			(struct iovec){(void *)(uintptr_t)pieces[i].base, pieces[i].bytes};
	do
		sent = sendmsg(fd, &message, MSG_DONTWAIT);
	while (PGR_UNLIKELY(sent < 0) && again(datagram, errno, &tries));
	if (PGR_UNLIKELY(sent < 0))
		record_refusal(datagram, to, errno);
	return 0; /* what could not be sent is lost, as on any network */
}
