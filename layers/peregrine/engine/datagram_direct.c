/* SPDX-License-Identifier: BSD-3-Clause */
/* See struct pgr_direct. */
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include "datagram.h"

enum { AT_SOURCE = 12 }; /* of an IPv4 header */

static bool allow_second(int fd, int yes)
{
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0;
}

/*
 * Lets in what comes from this address and port. A filter's word is big-endian; it sees the UDP header
 * first.
 */
static bool let_in_only(int fd, const struct sockaddr_in *peer)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + AT_SOURCE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(peer->sin_addr.s_addr), 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(peer->sin_port), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog all = {sizeof(program) / sizeof(program[0]), program};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)) == 0;
}

static bool whole_or_not_at_all(int fd)
{
	const int no_fragments = IP_PMTUDISC_PROBE;

	return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &no_fragments, sizeof(no_fragments)) == 0;
}

/*
 * Both sockets have the same address and port, which each has to allow, and only while the second one is
 * bound: a stranger shall not share the port. Of two sockets that fit, the kernel takes the one that is
 * connected. Until it is, the filter keeps others out; so who sent what lies in it need not be asked.
 */
static bool bind_beside(int fd, int first_fd, const struct sockaddr_in *own, const struct sockaddr_in *peer)
{
	const bool bound = whole_or_not_at_all(fd) && let_in_only(fd, peer) && allow_second(first_fd, 1) &&
			   allow_second(fd, 1) && bind(fd, (const struct sockaddr *)own, sizeof(*own)) == 0 &&
			   connect(fd, (const struct sockaddr *)peer, sizeof(*peer)) == 0;

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
	struct sockaddr_in own, peer;
	socklen_t length = sizeof(own);
	uint8_t prefix[PGR_PREFIX_BYTES];
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	datagram->address(datagram, &direct->last, &peer, prefix);
	if (fd >= 0 && getsockname(datagram->fd, (struct sockaddr *)&own, &length) == 0) {
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
