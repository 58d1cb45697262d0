/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets in Ethernet frames of our own making, past the kernel's network stack by AF_XDP: Ethernet, IPv4,
 * the prefix of the wire ip, the packet. An address is {IPv4, number, hardware address}, so nothing has to be
 * resolved; both ends are on one link. One endpoint a device (its queue 0).
 *
 * In copy mode the kernel sends when it is told to (a kick), so packets that follow each other share one. It
 * copies each packet into the receiver's memory there and then, and the receiver polls that memory.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_xdp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "datagram.h"
#include "xdp_program.h"

enum {
	HEADERS_BYTES = ETH_HLEN + PGR_IP_BYTES + PGR_PREFIX_BYTES,
	AT_MAC = PGR_AT_NUMBER + 4, /* in an address */
	PACKET_BYTES_MAX = PGR_XDP_FRAME_BYTES - PGR_XDP_HEADROOM_BYTES - HEADERS_BYTES,
	PACKET_BYTES_MIN = 128, /* room for header, extensions and some data */
	POLL_PACKETS = 32,
	HELD_MAX = 32,  /* packets that wait for a kick: as many as the kernel sends at one */
	KICKS_MAX = 64, /* in a row, while the kernel cannot */
};
_Static_assert((PGR_XDP_HEADROOM_BYTES + HEADERS_BYTES) % 8 == 0, "arguments begin at a multiple of 8");

struct xdp {
	struct pgr_wire wire;
	pgr_input *input;
	void *engine;
	struct pgr_xdp_socket socket;
	uint32_t number;
	uint32_t sum; /* of the fields of our IP headers that stay the same */
	/* our ends of the rings: places that never wrap, as the kernel counts them */
	uint32_t fill, complete, receive, transmit;
	uint32_t reported;    /* what the kernel knows of `transmit` */
	bool stalled;         /* the kernel could not send all when it was told to */
	uint32_t spare_count; /* frames to send from; the one used last is used next, while it is warm */
	uint64_t spare[PGR_XDP_OUT];
	char text[160];
};

/* ---- sending ---- */

/* Frames that were sent are ours again. */
static void take_back(struct xdp *xdp)
{
	const struct pgr_xdp_ring *ring = &xdp->socket.complete;
	const uint32_t ready = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);

	if (ready == xdp->complete)
		return;
	while (xdp->complete != ready)
		xdp->spare[xdp->spare_count++] =
			((const uint64_t *)ring->entries)[xdp->complete++ % PGR_XDP_OUT];
	__atomic_store_n(ring->consumer, ready, __ATOMIC_RELEASE);
}

/* Sends what lies in the ring. What the kernel cannot send now stays there until the next kick. */
static void kick(struct xdp *xdp)
{
	const struct pgr_xdp_ring *ring = &xdp->socket.transmit;

	__atomic_store_n(ring->producer, xdp->transmit, __ATOMIC_RELEASE);
	xdp->reported = xdp->transmit;
	xdp->stalled = false;
	for (unsigned int kicks = 0;; kicks++) {
		/* In copy mode the kernel always asks for it; a later one may not. */
		if (PGR_LIKELY(__atomic_load_n(ring->flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP) &&
		    PGR_UNLIKELY(sendto(xdp->socket.fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0) &&
		    errno != EAGAIN && errno != EBUSY && errno != ENOBUFS && errno != EINTR)
			break; /* the device is down, or gone */
		take_back(xdp);
		if (PGR_LIKELY(__atomic_load_n(ring->consumer, __ATOMIC_ACQUIRE) == xdp->transmit))
			return;
		if (kicks == KICKS_MAX)
			break;
	}
	xdp->stalled = true;
}

static void xdp_flush(struct pgr_wire *wire)
{
	struct xdp *xdp = (struct xdp *)wire;

	if (xdp->reported != xdp->transmit)
		kick(xdp);
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* What stands before the packet; `bytes` of the whole frame. */
static void write_headers(const struct xdp *xdp, uint8_t *frame, const struct pgr_to *to, size_t bytes)
{
	uint8_t *ip = frame + ETH_HLEN;
	uint32_t sum;

	memcpy(frame, to->bytes + AT_MAC, ETH_ALEN);
	memcpy(frame + ETH_ALEN, xdp->socket.mac, ETH_ALEN);
	put16(frame + 12, ETH_P_IP);
	ip[0] = 0x45; /* version 4, five words */
	ip[1] = 0;
	put16(ip + 2, (uint32_t)bytes - ETH_HLEN);
	put16(ip + 4, 0); /* identifies fragments, of which there are none */
	put16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = PGR_IP_PROTOCOL;
	memcpy(ip + 12, xdp->wire.own.bytes, 4);
	memcpy(ip + 16, to->bytes, 4);
	sum = xdp->sum + get16(ip + 2) + get16(ip + 16) + get16(ip + 18);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~(sum + (sum >> 16)));
	memcpy(ip + PGR_IP_BYTES, to->bytes + PGR_AT_NUMBER, 4);
	memcpy(ip + PGR_IP_BYTES + 4, &xdp->number, 4);
}

static int xdp_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		    unsigned int count, bool more)
{
	struct xdp *xdp = (struct xdp *)wire;
	size_t bytes = HEADERS_BYTES;
	uint8_t *frame;
	uint64_t place;

	if (PGR_UNLIKELY(!xdp->spare_count)) {
		kick(xdp);
		if (!xdp->spare_count)
			return 0; /* lost, as on any network */
	}
	place = xdp->spare[--xdp->spare_count];
	frame = xdp->socket.frames + place;
	for (unsigned int i = 0; i < count; i++) {
		memcpy(frame + bytes, pieces[i].base, pieces[i].bytes);
		bytes += pieces[i].bytes;
	}
	write_headers(xdp, frame, to, bytes);
	/* As many entries as frames: there is room. */
	((struct xdp_desc *)xdp->socket.transmit.entries)[xdp->transmit++ % PGR_XDP_OUT] =
		(struct xdp_desc){.addr = place, .len = (uint32_t)bytes};
	if (!more || xdp->transmit - xdp->reported >= HELD_MAX)
		kick(xdp);
	return 0;
}

/* ---- receiving ---- */

/* The program in the kernel has seen to protocol and number, nobody yet to the lengths. */
static void take(struct xdp *xdp, const uint8_t *frame, size_t bytes)
{
	const uint8_t *ip = frame + ETH_HLEN;
	struct pgr_to from = {{0}};
	size_t packet_bytes;

	if (PGR_UNLIKELY(bytes < HEADERS_BYTES || (get16(ip + 6) & 0x3fff) != 0))
		return; /* a fragment */
	packet_bytes = get16(ip + 2);
	if (PGR_UNLIKELY(packet_bytes < PGR_IP_BYTES + PGR_PREFIX_BYTES || packet_bytes > bytes - ETH_HLEN))
		return;
	memcpy(from.bytes, ip + 12, 4);
	memcpy(from.bytes + PGR_AT_NUMBER, ip + PGR_IP_BYTES + 4, 4);
	memcpy(from.bytes + AT_MAC, frame + ETH_ALEN, ETH_ALEN);
	xdp->input(xdp->engine, &from, frame + HEADERS_BYTES, packet_bytes - PGR_IP_BYTES - PGR_PREFIX_BYTES);
}

/*
 * The kernel wrote the frame on the sender's core, and its lines are fetched from there. It fills frames in
 * the order in which they were given to it: where the next one lies is known before its entry has come over.
 */
static void fetch_next(const struct xdp *xdp)
{
	const uint64_t *given = xdp->socket.fill.entries;
	const uint8_t *frame = xdp->socket.frames + given[xdp->receive % PGR_XDP_IN] + PGR_XDP_HEADROOM_BYTES;

	__builtin_prefetch(frame);
	__builtin_prefetch(frame + 64); /* headers take more than one line */
}

static int xdp_receive(struct pgr_wire *wire)
{
	struct xdp *xdp = (struct xdp *)wire;
	const struct pgr_xdp_ring *ring = &xdp->socket.receive;
	uint32_t count = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) - xdp->receive;

	if (PGR_UNLIKELY(xdp->stalled))
		kick(xdp);
	if (!count)
		return 0;
	fetch_next(xdp);
	if (count > POLL_PACKETS)
		count = POLL_PACKETS;
	for (uint32_t i = 0; i < count; i++) {
		const struct xdp_desc entry =
			((const struct xdp_desc *)ring->entries)[xdp->receive++ % PGR_XDP_IN];

		if (i + 1 < count)
			fetch_next(xdp);
		take(xdp, xdp->socket.frames + entry.addr, entry.len);
		if (pgr_wire_is_copy(wire)) /* since a moment ago: the rings are the parent's */
			return (int)i;
		/* As many entries as frames here too. */
		((uint64_t *)xdp->socket.fill.entries)[xdp->fill++ % PGR_XDP_IN] =
			entry.addr / PGR_XDP_FRAME_BYTES * PGR_XDP_FRAME_BYTES;
	}
	__atomic_store_n(ring->consumer, xdp->receive, __ATOMIC_RELEASE);
	__atomic_store_n(xdp->socket.fill.producer, xdp->fill, __ATOMIC_RELEASE);
	return (int)count;
}

static void xdp_wait(struct pgr_wire *wire, uint64_t timeout_ns)
{
	pgr_wait_readable(((struct xdp *)wire)->socket.fd, -1, timeout_ns);
}

static void xdp_watch(struct pgr_wire *wire, int fds[PGR_FDS])
{
	fds[0] = ((struct xdp *)wire)->socket.fd;
	fds[1] = -1;
}

/* ---- life ---- */

static bool xdp_is_address(const struct pgr_wire *wire, const struct pgr_to *to)
{
	static const uint8_t zeros[ETH_ALEN];
	union pgr_name name = {.v4 = {.sin_family = AF_INET}};

	(void)wire;
	memcpy(&name.v4.sin_addr, to->bytes, 4);
	/* not one of another wire, say */
	return pgr_is_unicast(&name) && memcmp(to->bytes + PGR_AT_NUMBER, zeros, 4) &&
	       memcmp(to->bytes + AT_MAC, zeros, ETH_ALEN);
}

static void xdp_close(struct pgr_wire *wire)
{
	struct xdp *xdp = (struct xdp *)wire;

	pgr_xdp_socket_close(&xdp->socket);
	free(xdp);
}

static void xdp_describe(const struct pgr_wire *wire, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "%s", ((const struct xdp *)wire)->text);
}

static int xdp_open(const struct pgr_config *config, pgr_input *input, void *engine,
		    struct pgr_wire **wire_out)
{
	const uint32_t overhead = PGR_IP_BYTES + PGR_PREFIX_BYTES;
	struct in_addr own;
	struct xdp *xdp;
	int code;

	if (!config->device || !config->device[0])
		return pgr_open_fail(config, PGR_E_ARGUMENT, "the wire xdp needs a device");
	if (!config->address || inet_pton(AF_INET, config->address, &own) != 1)
		return pgr_open_fail(config, PGR_E_ARGUMENT, "the wire xdp needs an IPv4 address, not '%s'",
				     config->address ? config->address : "");
	if (config->xdp_attach && strcmp(config->xdp_attach, "native") != 0 &&
	    strcmp(config->xdp_attach, "generic") != 0)
		return pgr_open_fail(config, PGR_E_ARGUMENT, "xdp_attach is native or generic, not '%s'",
				     config->xdp_attach);
	xdp = calloc(1, sizeof(*xdp));
	if (!xdp)
		return PGR_E_MEMORY;
	xdp->wire.ops = &pgr_wire_xdp;
	xdp->input = input;
	xdp->engine = engine;
	xdp->number = pgr_number_new();
	code = pgr_xdp_open(&xdp->socket, config, xdp->number);
	if (code == PGR_OK && xdp->socket.mtu < overhead + PACKET_BYTES_MIN)
		code = pgr_open_fail(config, PGR_E_WIRE, "an MTU of %u bytes is too small", xdp->socket.mtu);
	if (code != PGR_OK) {
		xdp_close(&xdp->wire);
		return code;
	}
	xdp->fill = PGR_XDP_IN;
	for (uint32_t i = 0; i < PGR_XDP_OUT; i++)
		xdp->spare[xdp->spare_count++] = (uint64_t)(PGR_XDP_IN + i) * PGR_XDP_FRAME_BYTES;
	memcpy(xdp->wire.own.bytes, &own, 4);
	memcpy(xdp->wire.own.bytes + PGR_AT_NUMBER, &xdp->number, 4);
	memcpy(xdp->wire.own.bytes + AT_MAC, xdp->socket.mac, ETH_ALEN);
	xdp->sum = 0x4500 + 0x4000 + (64u << 8 | PGR_IP_PROTOCOL) + get16(xdp->wire.own.bytes) +
		   get16(xdp->wire.own.bytes + 2);
	xdp->wire.packet_bytes_max = xdp->socket.mtu - overhead;
	if (xdp->wire.packet_bytes_max > PACKET_BYTES_MAX)
		xdp->wire.packet_bytes_max = PACKET_BYTES_MAX;
	xdp->wire.window_packets = PGR_XDP_IN;
	snprintf(xdp->text, sizeof(xdp->text),
		 "xdp %s on %s, %s attachment in copy mode, packets of %u bytes", config->address,
		 config->device, xdp->socket.native ? "native" : "generic", xdp->wire.packet_bytes_max);
	*wire_out = &xdp->wire;
	return PGR_OK;
}

const struct pgr_wire_ops pgr_wire_xdp = {
	.name = "xdp",
	.open = xdp_open,
	.close = xdp_close,
	.send = xdp_send,
	.flush = xdp_flush,
	.receive = xdp_receive,
	.wait = xdp_wait,
	.watch = xdp_watch,
	.is_address = xdp_is_address,
	.describe = xdp_describe,
};
