/* SPDX-License-Identifier: BSD-3-Clause */
/* See struct pgr_direct. */
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include "datagram.h"

enum { AT_SOURCE = 12, AT_SOURCE_V6 = 8, FILTER_MAX = 16 }; /* of an IPv4, of an IPv6 header */

static bool allow_second(int fd, int yes)
{
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0;
}

/*
 * Lets in what comes from this address and port. A filter's word is big-endian; it sees the UDP header
 * first.
 */
static bool let_in_only(int fd, const union pgr_name *peer)
{
	const bool v4 = peer->any.sa_family == AF_INET;
	struct sock_filter program[FILTER_MAX];
	struct sock_fprog all = {0, program};
	uint32_t words[4];
	const unsigned int count = v4 ? 1 : 4;

	if (v4)
		memcpy(words, &peer->v4.sin_addr, sizeof(peer->v4.sin_addr));
	else
		memcpy(words, &peer->v6.sin6_addr, sizeof(peer->v6.sin6_addr));
	/* each compare that fails goes to the last instruction; two are for the port, one lets in */
	for (unsigned int i = 0; i < count; i++) {
		const uint32_t at = (uint32_t)SKF_NET_OFF + (v4 ? AT_SOURCE : AT_SOURCE_V6) + 4 * i;
		const uint8_t to_end = (uint8_t)(2 * (count - 1 - i) + 3);

		program[all.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
		program[all.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(words[i]), 0, to_end);
	}
	program[all.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0);
	program[all.len++] = (struct sock_filter)BPF_JUMP(
		BPF_JMP | BPF_JEQ | BPF_K, ntohs(v4 ? peer->v4.sin_port : peer->v6.sin6_port), 0, 1);
	program[all.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	program[all.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)) == 0;
}

/*
 * Both sockets have the same address and port, which each has to allow, and only while the second one is
 * bound: a stranger shall not share the port. Of two sockets that fit, the kernel takes the one that is
 * connected. Until it is, the filter keeps others out; so who sent what lies in it need not be asked.
 */
static bool bind_beside(int fd, int first_fd, const union pgr_name *own, const union pgr_name *peer)
{
	const int family = own->any.sa_family;
	const bool bound = pgr_datagram_forbid_fragments(fd, family) &&
			   pgr_datagram_keep_errors(fd, family) && let_in_only(fd, peer) &&
			   allow_second(first_fd, 1) && allow_second(fd, 1) &&
			   bind(fd, &own->any, pgr_name_bytes(own)) == 0 &&
			   connect(fd, &peer->any, pgr_name_bytes(peer)) == 0;

	return allow_second(first_fd, 0) && bound && allow_second(fd, 0) &&
	       setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){0}, sizeof(int)) == 0;
}

/* Of buffers the kernel tells twice what was asked for. */
static void copy_buffer_size(int to_fd, int from_fd, int name)
{
	socklen_t length = sizeof(int);
	int bytes;

	if (getsockopt(from_fd, SOL_SOCKET, name, &bytes, &length) < 0)
		return;
	bytes /= 2;
	setsockopt(to_fd, SOL_SOCKET, name, &bytes, sizeof(bytes));
}

void pgr_direct_open(struct pgr_datagram *datagram)
{
	struct pgr_direct *direct = &datagram->direct;
	union pgr_name own, peer;
	socklen_t length = sizeof(own);
	uint8_t prefix[PGR_PREFIX_BYTES];
	int fd;

	datagram->address(datagram, &direct->last, &peer, prefix);
	fd = socket(peer.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && getsockname(datagram->fd, &own.any, &length) == 0) {
		copy_buffer_size(fd, datagram->fd, SO_RCVBUF);
		copy_buffer_size(fd, datagram->fd, SO_SNDBUF);
		if (bind_beside(fd, datagram->fd, &own, &peer)) {
			direct->fd = fd;
			direct->to = direct->last;
			direct->ending = direct->joined = false;
			direct->passed = PGR_DIRECT_PASS; /* what came before lies in the first socket */
			return;
		}
	}
	if (fd >= 0)
		close(fd);
	direct->wanted = false;
}

void pgr_direct_close(struct pgr_direct *direct)
{
	if (direct->fd >= 0)
		close(direct->fd);
	direct->fd = -1;
	direct->ending = false;
}
