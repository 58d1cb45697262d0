/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/tcp_family.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sockets/endpoint.h"

int sock_tcp_listen(const struct cadge_open_args *args, int *fd_out)
{
	return cadge_bind_in_range(args, SOCK_STREAM, fd_out);
}

int sock_tcp_tune(const struct sock_settings *settings, int fd)
{
	const char *congestion = settings->congestion_control;
	const int nodelay = (int)settings->nodelay;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay)) < 0)
		return cadge_errno_code(errno);
	if (*congestion &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) < 0)
		return errno == ENOENT ? CADGE_E_ABSENT : cadge_errno_code(errno);
	return sock_settings_apply(settings, fd);
}

int sock_tcp_describe(int fd, enum cadge_place place, const char *device, struct cadge_path *path_out)
{
	char congestion[16] = "";
	int nodelay = 0, send_bytes = 0, receive_bytes = 0, segment_bytes = 0;
	socklen_t congestion_bytes = sizeof(congestion) - 1, bytes = sizeof(int);

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, &congestion_bytes) < 0 ||
	    getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &bytes) < 0 ||
	    getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment_bytes, &bytes) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, &bytes) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, &bytes) < 0)
		return CADGE_E_LIBRARY;
	snprintf(path_out->used, sizeof(path_out->used),
		 "tcp; congestion control %s; TCP_NODELAY %s; segment %d B; send buffer %d B, receive buffer "
		 "%d B at start",
		 congestion, nodelay ? "on" : "off", segment_bytes, send_bytes, receive_bytes);
	return cadge_describe_route(fd, place, device, path_out);
}

const struct cadge_option sock_tcp_options[] = {
	{"nodelay", "1", "TCP_NODELAY: 1 sends small messages at once, 0 lets the kernel collect them."},
	{"congestion_control", "", "Name of the congestion control; empty: the kernel's default."},
	{"send_buffer_bytes", "", "SO_SNDBUF; empty: the kernel sizes it."},
	{"receive_buffer_bytes", "", "SO_RCVBUF; empty: the kernel sizes it."},
	{0},
};
