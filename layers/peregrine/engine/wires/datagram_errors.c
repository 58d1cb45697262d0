/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See datagram.h. Routers and hosts say which packets they did not take, and quote them (ICMP); anybody can make such a word up.
 * So it ends a call only where it quotes the call: its 64 random bits are known to none but those who saw it pass. Many hosts
 * quote no further than the UDP header: then it only explains why nothing comes.
 */
#include <errno.h>
#include <time.h>

#include <linux/errqueue.h>
#include <sys/socket.h>

#include "datagram.h"

enum { ERRORS_MAX = 32 }; /* in one poll */

union control {
	char room[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
	struct cmsghdr align;
};

bool pgr_datagram_keep_errors(int fd, int family)
{
	const int yes = 1;

	return family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &yes, sizeof(yes)) == 0
				  : setsockopt(fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof(yes)) == 0;
}

bool pgr_datagram_forbid_fragments(int fd, int family)
{
	const int v4 = IP_PMTUDISC_PROBE, v6 = IPV6_PMTUDISC_PROBE, yes = 1;

	return family == AF_INET6
		       ? setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6)) == 0 &&
				 setsockopt(fd, IPPROTO_IPV6, IPV6_DONTFRAG, &yes, sizeof(yes)) == 0
		       : setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4)) == 0;
}

/* What others said; false: it is of this host's own kernel, which has said so to the sender. */
static bool read_error(struct msghdr *message, struct sock_extended_err *error_out)
{
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control;
	     control = CMSG_NXTHDR(message, control))
		if ((control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVERR) ||
		    (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_RECVERR)) {
			memcpy(error_out, CMSG_DATA(control), sizeof(*error_out));
			return error_out->ee_origin == SO_EE_ORIGIN_ICMP ||
			       error_out->ee_origin == SO_EE_ORIGIN_ICMP6;
		}
	return false;
}

static void take_error(struct pgr_datagram *datagram, const union pgr_name *to, int error,
		       const uint8_t *quoted, size_t bytes)
{
	struct pgr_wire *wire = &datagram->wire;
	const size_t before = datagram->number ? PGR_PREFIX_BYTES : 0;

	wire->refused = error;
	wire->refused_to = (struct pgr_to){{0}};
	if (!before)
		datagram->skip(datagram, to, NULL, 0, &wire->refused_to);
	else
		memcpy(wire->refused_to.bytes, &to->v4.sin_addr, sizeof(to->v4.sin_addr));
	if (before && bytes >= before)
		memcpy(wire->refused_to.bytes + PGR_AT_NUMBER, quoted, 4);
	/* no such port, no such protocol; the rest may be a router that finds another way */
	if ((error == ECONNREFUSED || error == ENOPROTOOPT) && bytes > before && wire->on_unreachable)
		wire->on_unreachable(datagram->engine, quoted + before, bytes - before);
}

/* Returns whether the socket has no more. */
static bool read_errors(struct pgr_datagram *datagram, int fd)
{
	for (unsigned int i = 0; i < ERRORS_MAX; i++) {
		uint8_t quoted[PGR_PREFIX_BYTES + PGR_HEADER_BYTES];
		struct iovec iov = {quoted, sizeof(quoted)};
		struct sock_extended_err error;
		union pgr_name to;
		union control control;
		struct msghdr message = {.msg_name = &to,
					 .msg_namelen = sizeof(to),
					 .msg_iov = &iov,
					 .msg_iovlen = 1,
					 .msg_control = &control,
					 .msg_controllen = sizeof(control)};
		const ssize_t bytes = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);

		if (bytes < 0)
			return true;
		if (read_error(&message, &error) && message.msg_namelen)
			take_error(datagram, &to, (int)error.ee_errno, quoted, (size_t)bytes);
	}
	return false;
}

void pgr_datagram_errors(struct pgr_datagram *datagram)
{
	const bool all = read_errors(datagram, datagram->fd);
	const bool all_direct = datagram->direct.fd < 0 || read_errors(datagram, datagram->direct.fd);

	datagram->errors = !all || !all_direct;
}
