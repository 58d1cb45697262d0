/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sockets-tcp: messages over one TCP connection a peer, with the kernel's defaults and TCP_NODELAY.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sockets/endpoint.h"
#include "sockets/session.h"

static int tcp_listen(const struct cadge_open_args *args, int *fd_out)
{
	return cadge_bind_in_range(args, SOCK_STREAM, fd_out);
}

static int tcp_tune(const struct sock_settings *settings, int fd)
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

static int tcp_describe(int fd, enum cadge_place place, const char *device, struct cadge_path *path_out)
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

static const struct cadge_option tcp_options[] = {
	{"nodelay", "1", "TCP_NODELAY: 1 sends small messages at once, 0 lets the kernel collect them."},
	{"congestion_control", "", "Name of the congestion control; empty: the kernel's default."},
	{"send_buffer_bytes", "", "SO_SNDBUF; empty: the kernel sizes it."},
	{"receive_buffer_bytes", "", "SO_RCVBUF; empty: the kernel sizes it."},
	{0},
};

static const uint64_t tcp_caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
				 CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK |
				 CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_WHY;

static const struct sock_family tcp_family = {
	.caps = tcp_caps,
	.options = tcp_options,
	.listen = tcp_listen,
	.tune = tcp_tune,
	.describe = tcp_describe,
};

static int tcp_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	return sock_session_open(&tcp_family, args, ctx_out);
}

static const struct cadge_layer tcp_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(tcp_layer),
	.name = "sockets-tcp",
	.style = "sockets",
	.substrate = "tcp",
	.caps = tcp_caps,
	.options = tcp_options,
	.open = tcp_open,
	.close = sock_session_close,
	.limits = sock_session_limits,
	.address = sock_session_address,
	.connect = sock_session_connect,
	.disconnect = sock_session_disconnect,
	.post = sock_session_post,
	.poll = sock_session_poll,
	.describe_path = sock_session_describe_path,
	.library = sock_session_library,
	.semantics = cadge_semantics_of_messages,
	.traits = sock_session_traits,
	.wait = sock_session_wait,
	.event = sock_session_event,
	.release = sock_session_release,
	.why = sock_session_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &tcp_layer;
}
