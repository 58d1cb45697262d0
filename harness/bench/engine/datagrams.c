/* SPDX-License-Identifier: BSD-3-Clause */
/* See floors.h: what the wires udp and ip ask of the kernel, and nothing else. */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "wires/datagram.h"
#include "floors.h"

enum { MTU = 1500, LOOPBACK_MTU = 65536, HEADERS_BYTES = 28, WINDOW_PACKETS = 96 };

static bool is_ip(void)
{
	return strcmp(reading->wire, "ip") == 0;
}

static int bare_socket(bool client)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	const int fd = is_ip() ? socket(AF_INET, SOCK_RAW, PGR_IP_PROTOCOL) : socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET,
		  !reading->hosts ? "127.0.0.1"
		  : client        ? PAIR_CLIENT_ADDRESS
				  : PAIR_SERVER_ADDRESS,
		  &at.sin_addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		exit(PAIR_SKIPPED);
	if (is_ip()) {
		/* Two raw sockets on one address: each lets in what carries its number. */
		struct sock_filter program[] = {
			BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
			BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, client ? 1 : 2, 0, 1),
			BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
			BPF_STMT(BPF_RET | BPF_K, 0),
		};
		const struct sock_fprog all = {sizeof(program) / sizeof(program[0]), program};

		if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)) < 0)
			exit(PAIR_FAILED);
	}
	return fd;
}

/* Where its packet begins in what was received: behind the IP header of a raw socket. */
static size_t packet_bytes(size_t bytes)
{
	return is_ip() ? PGR_PREFIX_BYTES + bytes : bytes;
}

/* One datagram there; false: none came. */
static bool receive_one(int fd, struct sockaddr_in *from, uint8_t *room, size_t bytes)
{
	struct iovec iov = {room, bytes};
	struct msghdr message = {
		.msg_name = from, .msg_namelen = sizeof(*from), .msg_iov = &iov, .msg_iovlen = 1};

	return (reading->connected ? recv(fd, room, bytes, MSG_DONTWAIT)
				   : recvmsg(fd, &message, MSG_DONTWAIT)) >= 0;
}

static void send_one(int fd, struct sockaddr_in *to, uint8_t *packet, size_t bytes)
{
	struct iovec iov = {packet, bytes};
	const struct msghdr message = {
		.msg_name = to, .msg_namelen = sizeof(*to), .msg_iov = &iov, .msg_iovlen = 1};

	if (reading->connected)
		send(fd, packet, bytes, MSG_DONTWAIT);
	else
		sendmsg(fd, &message, MSG_DONTWAIT);
}

void datagrams_server(void)
{
	const int fd = bare_socket(false);
	socklen_t length = sizeof(shared->name);
	static uint8_t room[65536], answer[PGR_PREFIX_BYTES + PGR_HEADER_BYTES];
	struct sockaddr_in from;

	answer[3] = 1; /* the client's number */
	getsockname(fd, (struct sockaddr *)&shared->name, &length);
	shared->ready = 1;
	if (reading->connected) {
		while (recvfrom(fd, room, sizeof(room), MSG_PEEK | MSG_DONTWAIT, (struct sockaddr *)&from,
				&length) < 0)
			if (*shared->stop)
				return;
		connect(fd, (struct sockaddr *)&from, sizeof(from));
	}
	for (unsigned int i = 0; i < CALLS + WARM_UP; i++) {
		while (!receive_one(fd, &from, room, sizeof(room)))
			if (*shared->stop)
				return;
		send_one(fd, &from, answer, packet_bytes(PGR_HEADER_BYTES)); /* a result without data */
	}
}

double datagrams_client(void)
{
	const int fd = bare_socket(true);
	static uint8_t room[65536];
	uint8_t call[65536] = {0};

	call[3] = 2; /* the server's number */
	if (reading->connected)
		connect(fd, (struct sockaddr *)&shared->name, sizeof(shared->name));
	for (unsigned int i = 0; i < CALLS + WARM_UP; i++) {
		struct sockaddr_in to = shared->name;
		const uint64_t begin = __rdtsc();

		send_one(fd, &to, call, packet_bytes(PGR_HEADER_BYTES + reading->bytes));
		while (!receive_one(fd, &to, room, sizeof(room)))
			;
		if (i >= WARM_UP)
			samples[i - WARM_UP] = (uint32_t)(__rdtsc() - begin);
	}
	return p50(CALLS);
}

/* ---- stream ---- */

/* Bytes of a full packet as the wire makes it. */
static size_t full_packet_bytes(void)
{
	const size_t bytes = (reading->hosts ? MTU : LOOPBACK_MTU) - HEADERS_BYTES;

	return bytes > PGR_DATAGRAM_BYTES - HEADERS_BYTES ? PGR_DATAGRAM_BYTES - HEADERS_BYTES : bytes;
}

/* Datagrams as fast as they come, joined by the kernel where it can, and thrown away. */
void datagram_stream_server(void)
{
	const int fd = bare_socket(false), buffer = 4 << 20, one = 1;
	socklen_t length = sizeof(shared->name);
	static uint8_t room[65536];
	uint64_t got = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
	getsockname(fd, (struct sockaddr *)&shared->name, &length);
	shared->ready = 1;
	while (!*shared->stop) {
		const ssize_t bytes = recv(fd, room, sizeof(room), MSG_DONTWAIT);

		if (bytes > 0)
			atomic_store(&shared->lines[0].word, got += (uint64_t)bytes);
	}
}

/* Bytes of data a ns: of each packet all but the header. */
double datagram_stream_client(void)
{
	const size_t packet = full_packet_bytes(), data = packet - PGR_HEADER_BYTES;
	const size_t together = reading->hosts ? 44 : 1, window = reading->hosts ? WINDOW_PACKETS : 2;
	const int fd = bare_socket(true);
	uint8_t head[PGR_HEADER_BYTES] = {0}, *big = malloc(BIG_BYTES);
	union {
		char room[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control = {.align = {CMSG_LEN(sizeof(uint16_t)), IPPROTO_UDP, UDP_SEGMENT}};
	uint64_t sent_bytes = 0;

	*(uint16_t *)(void *)CMSG_DATA(&control.align) = (uint16_t)packet;
	memset(big, 1, BIG_BYTES);
	for (unsigned int i = 0; i < BIG_ROUNDS; i++) {
		const uint64_t begin_ns = now_ns();

		for (size_t at = 0; at < BIG_BYTES;) {
			struct iovec iov[2 * 64];
			struct msghdr message = {.msg_name = &shared->name,
						 .msg_namelen = sizeof(shared->name),
						 .msg_iov = iov,
						 .msg_control = together > 1 ? &control : NULL,
						 .msg_controllen = together > 1 ? sizeof(control) : 0};
			size_t bytes = 0;

			for (size_t k = 0; k < together && at < BIG_BYTES; k++) {
				const size_t part = BIG_BYTES - at < data ? BIG_BYTES - at : data;

				iov[2 * k] = (struct iovec){head, sizeof(head)};
				iov[2 * k + 1] = (struct iovec){big + at, part};
				at += part, bytes += sizeof(head) + part;
				message.msg_iovlen += 2;
			}
			while (sent_bytes + bytes - atomic_load(&shared->lines[0].word) > window * packet)
				; /* what its buffer surely holds */
			if (sendmsg(fd, &message, 0) > 0)
				sent_bytes += bytes;
		}
		while (atomic_load(&shared->lines[0].word) != sent_bytes)
			;
		samples[i] = (uint32_t)(now_ns() - begin_ns);
	}
	return BIG_BYTES / p50(BIG_ROUNDS);
}
