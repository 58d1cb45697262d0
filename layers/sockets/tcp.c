/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sockets-tcp: messages over one TCP connection a peer, with the kernel's defaults and TCP_NODELAY.
 */

#include "sockets/session/state.h"
#include "sockets/tcp_family.h"

static const uint64_t tcp_caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |
				 CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK |
				 CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_WHY;

static const struct sock_family tcp_family = {
	.caps = tcp_caps,
	.options = sock_tcp_options,
	.ctx_bytes = sizeof(struct cadge_ctx),
	.chan_bytes = sizeof(struct cadge_chan),
	.start = sock_session_start,
	.stop = sock_session_stop,
	.listen = sock_tcp_listen,
	.tune = sock_tcp_tune,
	.describe = sock_tcp_describe,
};

static int tcp_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	return sock_session_open(&tcp_family, args, ctx_out);
}

static const struct cadge_layer tcp_layer = {
	.name = "sockets-tcp",
	.substrate = "tcp",
	.caps = tcp_caps,
	.options = sock_tcp_options,
	.open = tcp_open,
	SOCK_SESSION_SLOTS,
	SOCK_STREAM_SLOTS,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &tcp_layer;
}
