/* SPDX-License-Identifier: BSD-3-Clause */
/* Floor udp: datagrams on bare system calls. A reference: not the best that there is. */
#include "socket.h"

DRV_INLINE int udp_send(struct drv_floor_loop *loop, size_t bytes)
{
	const int fd = loop->run->state->fd;

	while (DRV_UNLIKELY(send(fd, loop->out, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)) {
		int status;

		if (!socket_again() && errno != ENOBUFS)
			return socket_failed(loop, "send");
		status = socket_room(loop);
		if (status)
			return status;
	}
	return 0;
}

DRV_INLINE int udp_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes, const int flags)
{
	const ssize_t count = recv(loop->run->state->fd, loop->in, loop->bytes + 1, flags);

	if (DRV_LIKELY(count >= 0)) {
		*data = loop->in;
		*bytes = (size_t)count;
		return 1;
	}
	return socket_again() ? 0 : socket_failed(loop, "recv");
}

SOCKET_LOOPS(udp_poll, udp, false, true, MSG_DONTWAIT)
SOCKET_LOOPS(udp_block, udp, true, true, 0)

static int udp_client(struct drv_floor_loop *loop)
{
	return loop->run->block ? udp_block_client(loop) : udp_poll_client(loop);
}

static int udp_server(struct drv_floor_loop *loop)
{
	return loop->run->block ? udp_block_server(loop) : udp_poll_server(loop);
}

static int udp_open(struct drv_floor_run *run, struct drv_fail *fail)
{
	return sockets_open(run, false, fail);
}

static const struct drv_floor udp = {
	.name = "floor-udp",
	.substrate = "udp",
	.within = true,
	.between = true,
	.poll = true,
	.block = true,
	.lossy = true,
	.open = udp_open,
	.connect = sockets_connect,
	.begin = sockets_begin,
	.exchange = {udp_client, udp_server},
	.close = sockets_close,
};
DRV_FLOOR(udp);
