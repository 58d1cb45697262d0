/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sockets-unix: messages over one UNIX stream socket a peer, within one host.
 *
 * SOCK_STREAM and not SOCK_SEQPACKET: a SEQPACKET record must fit in the send buffer as a whole (208 KiB by
 * default, and net.core.wmem_max bounds what a user may ask for), so that messages of 4 MiB would have to be
 * fragmented and put together here, with the same length prefix as a stream has and worse. The framing is
 * that of sockets-tcp.
 *
 * Names are abstract: no file is left behind, whatever happens to the process.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sockets/endpoint.h"
#include "sockets/session/state.h"

static int unix_listen(const struct cadge_open_args *args, int *fd_out)
{
	return sock_bind_abstract(args, fd_out);
}

static int unix_tune(const struct sock_settings *settings, int fd)
{
	return sock_settings_apply(settings, fd);
}

static int unix_describe(int fd, enum cadge_place place, const char *device, struct cadge_path *path_out)
{
	struct ucred peer;
	int send_bytes = 0, receive_bytes = 0, domain = 0;
	socklen_t bytes = sizeof(int), peer_bytes = sizeof(peer);

	(void)place, (void)device;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, &bytes) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, &bytes) < 0)
		return CADGE_E_LIBRARY;
	path_out->medium = CADGE_MEDIUM_LOOPBACK;
	path_out->as_asked = domain == AF_UNIX;
	snprintf(path_out->asked, sizeof(path_out->asked), "UNIX socket of this host");
	snprintf(path_out->used, sizeof(path_out->used),
		 "unix stream; peer %s; send buffer %d B, receive buffer %d B",
		 peer.pid == getpid() ? "in this process" : "in another process", send_bytes, receive_bytes);
	return CADGE_DONE;
}

static const struct cadge_option unix_options[] = {
	{"send_buffer_bytes", "", "SO_SNDBUF; empty: the kernel's default."},
	{0},
};

static const uint64_t unix_caps = CADGE_CAP_HOST | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
				  CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK |
				  CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_WHY;

static const struct sock_family unix_family = {
	.caps = unix_caps,
	.options = unix_options,
	.ctx_bytes = sizeof(struct cadge_ctx),
	.chan_bytes = sizeof(struct cadge_chan),
	.start = sock_session_start,
	.stop = sock_session_stop,
	.listen = unix_listen,
	.tune = unix_tune,
	.describe = unix_describe,
};

static int unix_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	return sock_session_open(&unix_family, args, ctx_out);
}

static const struct cadge_layer unix_layer = {
	.name = "sockets-unix",
	.substrate = "unix",
	.caps = unix_caps,
	.options = unix_options,
	.open = unix_open,
	SOCK_SESSION_SLOTS,
	SOCK_STREAM_SLOTS,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &unix_layer;
}
