/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See floors.h: frames made once and sent again and again through the sockets and the program of the wire xdp,
 * by code that knows nothing of packets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_xdp.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "wires/datagram.h"
#include "wires/xdp_program.h"
#include "floors.h"

enum {
	CLIENT = 0,
	SERVER = 1,
	HEADERS_BYTES = ETH_HLEN + PGR_IP_BYTES + PGR_PREFIX_BYTES,
	FULL_BYTES = ETH_HLEN + 1500,
	DATA_BYTES = FULL_BYTES - HEADERS_BYTES - PGR_HEADER_BYTES,
	AT_ONCE = 32,
	WINDOW = 512,
};

static struct pgr_xdp_socket xdp;
static uint32_t received, transmitted;
static uint8_t *message; /* touched: where data come from, and go to */

static uint32_t number_of(int side)
{
	return 0x77000000u + (uint32_t)side;
}

/* The same frame in every place that is sent from. */
static void make_frames(int side, const uint8_t *peer_mac, size_t bytes)
{
	uint8_t frame[PGR_XDP_FRAME_BYTES] = {0};
	const uint32_t to = number_of(1 - side), from = number_of(side);
	struct iphdr ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = PGR_IP_PROTOCOL};

	ip.tot_len = htons((uint16_t)(bytes - ETH_HLEN));
	ip.frag_off = htons(0x4000);
	memcpy(frame, peer_mac, ETH_ALEN);
	memcpy(frame + ETH_ALEN, xdp.mac, ETH_ALEN);
	frame[12] = ETH_P_IP >> 8;
	memcpy(frame + ETH_HLEN, &ip, sizeof(ip));
	memcpy(frame + ETH_HLEN + PGR_IP_BYTES, &to, sizeof(to));
	memcpy(frame + ETH_HLEN + PGR_IP_BYTES + 4, &from, sizeof(from));
	for (uint32_t i = 0; i < PGR_XDP_OUT; i++)
		memcpy(xdp.frames + (size_t)(PGR_XDP_IN + i) * PGR_XDP_FRAME_BYTES, frame, sizeof(frame));
}

/* Opens this side and waits for the other. */
static void open_frames(int side, size_t bytes)
{
	char error[256] = "";
	const struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = "xdp",
		.device = side == CLIENT ? PAIR_CLIENT_DEVICE : PAIR_SERVER_DEVICE,
		.xdp_attach = reading->attach,
		.error = error,
		.error_bytes = sizeof(error),
	};

	if (pgr_xdp_open(&xdp, &config, number_of(side)) != PGR_OK) {
		fprintf(stderr, "%s\n", error);
		exit(PAIR_SKIPPED);
	}
	memcpy(shared->mac[side], xdp.mac, sizeof(xdp.mac));
	atomic_fetch_add(&shared->macs, 1);
	shared->ready = 1;
	while (shared->macs != 2)
		if (side == SERVER && *shared->stop)
			exit(PAIR_SKIPPED);
	make_frames(side, shared->mac[1 - side], bytes);
	received = transmitted = 0;
}

static void send_frames(uint32_t count, size_t bytes)
{
	const struct pgr_xdp_ring *ring = &xdp.transmit;

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t place = transmitted++ % PGR_XDP_OUT;

		((struct xdp_desc *)ring->entries)[place] = (struct xdp_desc){
			.addr = (uint64_t)(PGR_XDP_IN + place) * PGR_XDP_FRAME_BYTES, .len = (uint32_t)bytes};
	}
	__atomic_store_n(ring->producer, transmitted, __ATOMIC_RELEASE);
	do {
		sendto(xdp.fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
		__atomic_store_n(xdp.complete.consumer,
				 __atomic_load_n(xdp.complete.producer, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	} while (__atomic_load_n(ring->consumer, __ATOMIC_ACQUIRE) != transmitted);
}

/* The frames of a message of BIG_BYTES; it may end in the last one. */
static uint32_t message_frames(void)
{
	return (BIG_BYTES + DATA_BYTES - 1) / DATA_BYTES;
}

/* Writes the data of the next frames, from the frame of the message that has this number on. */
static void write_frames(uint32_t number, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t place = PGR_XDP_IN + (transmitted + i) % PGR_XDP_OUT;

		memcpy(xdp.frames + (size_t)place * PGR_XDP_FRAME_BYTES + HEADERS_BYTES + PGR_HEADER_BYTES,
		       message + (size_t)(number + i) * DATA_BYTES, DATA_BYTES);
	}
}

static uint32_t receive_frames(void)
{
	const uint32_t count = __atomic_load_n(xdp.receive.producer, __ATOMIC_ACQUIRE) - received;

	for (uint32_t i = 0; i < count; i++, received++) {
		const struct xdp_desc entry =
			((const struct xdp_desc *)xdp.receive.entries)[received % PGR_XDP_IN];

		if (message)
			memcpy(message + (size_t)(received % message_frames()) * DATA_BYTES,
			       xdp.frames + entry.addr + HEADERS_BYTES + PGR_HEADER_BYTES, DATA_BYTES);
		((uint64_t *)xdp.fill.entries)[received % PGR_XDP_IN] =
			entry.addr / PGR_XDP_FRAME_BYTES * PGR_XDP_FRAME_BYTES;
	}
	if (count) {
		__atomic_store_n(xdp.receive.consumer, received, __ATOMIC_RELEASE);
		__atomic_store_n(xdp.fill.producer, received + PGR_XDP_IN, __ATOMIC_RELEASE);
	}
	return count;
}

void frames_server(void)
{
	const size_t bytes = HEADERS_BYTES + PGR_HEADER_BYTES;

	open_frames(SERVER, bytes);
	while (!*shared->stop) {
		const uint32_t count = receive_frames();

		if (count)
			send_frames(count, bytes);
	}
	pgr_xdp_socket_close(&xdp);
}

double frames_client(void)
{
	const size_t bytes = HEADERS_BYTES + PGR_HEADER_BYTES + reading->bytes;

	open_frames(CLIENT, bytes);
	for (unsigned int i = 0; i < CALLS + WARM_UP; i++) {
		const uint64_t begin = __rdtsc();

		send_frames(1, bytes);
		while (!receive_frames())
			;
		if (i >= WARM_UP)
			samples[i - WARM_UP] = (uint32_t)(__rdtsc() - begin);
	}
	pgr_xdp_socket_close(&xdp);
	return p50(CALLS);
}

double frames_deep_client(void)
{
	const size_t bytes = HEADERS_BYTES + PGR_HEADER_BYTES;
	const uint32_t frames = 300000;
	uint64_t begin_ns;

	open_frames(CLIENT, bytes);
	begin_ns = now_ns();
	while (received < frames) {
		if (transmitted - received < DEPTH)
			send_frames(DEPTH - (transmitted - received), bytes);
		while (!receive_frames())
			;
	}
	begin_ns = now_ns() - begin_ns;
	pgr_xdp_socket_close(&xdp);
	return frames * 1e9 / (double)begin_ns;
}

/* As the engine has to: data go from where they lie into frames, and from there to their place. */
static void make_message(void)
{
	if (!reading->touch)
		return;
	message = malloc((size_t)message_frames() * DATA_BYTES);
	memset(message, 1, (size_t)message_frames() * DATA_BYTES);
}

void frames_stream_server(void)
{
	make_message();
	open_frames(SERVER, FULL_BYTES);
	while (!*shared->stop)
		if (receive_frames())
			atomic_store(&shared->lines[0].word, received);
	pgr_xdp_socket_close(&xdp);
}

/* Bytes of data a ns: of each frame what the wire's headers and the engine's leave. */
double frames_stream_client(void)
{
	const uint32_t frames = message_frames();

	make_message();
	open_frames(CLIENT, FULL_BYTES);
	for (unsigned int i = 0; i < BIG_ROUNDS; i++) {
		uint64_t begin_ns;

		for (size_t at = 0; message && at < BIG_BYTES; at += 64)
			message[at] = (uint8_t)i;
		begin_ns = now_ns();
		for (uint32_t sent = 0; sent < frames;) {
			const uint32_t count = frames - sent < AT_ONCE ? frames - sent : AT_ONCE;

			while (transmitted + count - (uint32_t)atomic_load(&shared->lines[0].word) > WINDOW)
				;
			if (message)
				write_frames(sent, count);
			send_frames(count, FULL_BYTES);
			sent += count;
		}
		while ((uint32_t)atomic_load(&shared->lines[0].word) != transmitted)
			;
		samples[i] = (uint32_t)(now_ns() - begin_ns);
	}
	pgr_xdp_socket_close(&xdp);
	return BIG_BYTES / p50(BIG_ROUNDS);
}
