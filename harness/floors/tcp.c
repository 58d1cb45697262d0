/* SPDX-License-Identifier: BSD-3-Clause */
/* Floor tcp: a stream of bytes on bare system calls. A reference: not the best that there is. */
#include <sys/uio.h>

#include "socket.h"

#define CONFIRM_MAGIC UINT64_C(0x6361646765657266)

/* What precedes each message of a TCP stream, in the same call: messages are moved one at a time, as layers do. */
struct message_head {
	uint64_t last; /* 1: nothing follows, confirm */
};

DRV_INLINE int tcp_send(struct drv_floor_loop *loop, size_t bytes)
{
	const int fd = loop->run->state->fd;
	size_t done = 0;
	int status;

	while (done < bytes) {
		const ssize_t count = send(fd, loop->out + done, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (DRV_LIKELY(count >= 0)) {
			done += (size_t)count;
			continue;
		}
		if (!socket_again())
			return socket_failed(loop, "send");
		status = socket_room(loop);
		if (status)
			return status;
	}
	return 0;
}

DRV_INLINE int tcp_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes, const int flags)
{
	struct floor_state *state = loop->run->state;
	const size_t have = (size_t)state->received_bytes;
	const ssize_t count = recv(state->fd, loop->in + have, loop->bytes - have, flags);

	if (DRV_UNLIKELY(count <= 0)) {
		if (count < 0 && socket_again())
			return 0;
		if (count == 0)
			errno = ECONNRESET;
		return socket_failed(loop, "recv");
	}
	if (DRV_UNLIKELY(have + (size_t)count < loop->bytes)) {
		state->received_bytes += (uint64_t)count;
		return 0;
	}
	state->received_bytes = 0;
	*data = loop->in;
	*bytes = loop->bytes;
	return 1;
}

SOCKET_LOOPS(tcp_poll, tcp, false, false, MSG_DONTWAIT)
SOCKET_LOOPS(tcp_block, tcp, true, false, 0)

static int tcp_client(struct drv_floor_loop *loop)
{
	return loop->run->block ? tcp_block_client(loop) : tcp_poll_client(loop);
}

static int tcp_server(struct drv_floor_loop *loop)
{
	if (sockets_accept(loop))
		return -1;
	return loop->run->block ? tcp_block_server(loop) : tcp_poll_server(loop);
}

/* Moves all parts. 0; 1: asked to stop (server); -1. */
static int move_all(struct drv_floor_loop *loop, bool out, struct iovec *parts, int count)
{
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
	const int fd = loop->run->state->fd, flags = loop->run->block && !out ? 0 : MSG_DONTWAIT;
	uint32_t idle = 0;

	while (message.msg_iovlen) {
		ssize_t moved =
			out ? sendmsg(fd, &message, flags | MSG_NOSIGNAL) : recvmsg(fd, &message, flags);

		if (moved < 0 && !socket_again())
			return socket_failed(loop, out ? "sendmsg" : "recvmsg");
		if (moved == 0 && !out) {
			errno = ECONNRESET;
			return socket_failed(loop, "recvmsg");
		}
		if (moved < 0) {
			int status = 0;

			if (out && loop->run->block)
				status = socket_room(loop);
			else if (loop->run->block || (++idle & 255) == 0)
				status = drv_floor_poll_oob(loop);
			if (status)
				return status;
			continue;
		}
		while (message.msg_iovlen && (size_t)moved >= message.msg_iov->iov_len) {
			moved -= (ssize_t)message.msg_iov->iov_len;
			message.msg_iov++;
			message.msg_iovlen--;
		}
		if (message.msg_iovlen) {
			message.msg_iov->iov_base = (uint8_t *)message.msg_iov->iov_base + moved;
			message.msg_iov->iov_len -= (size_t)moved;
		}
	}
	return 0;
}

static int tcp_flow_client(struct drv_floor_loop *loop)
{
	struct floor_state *state = loop->run->state;
	uint64_t last = drv_clock_now(&loop->run->clock), now, confirm[2];
	struct message_head head = {.last = 0};
	struct iovec parts[2];

	loop->started = last;
	while (!head.last) {
		if (DRV_UNLIKELY(loop->bodies))
			drv_floor_write(loop, loop->out, loop->seed, state->next);
		drv_head_write(loop->out, loop->bytes, loop->seed, state->next);
		now = drv_clock_now(&loop->run->clock);
		if (loop->mode == DRV_STEP_VERIFY)
			head.last = loop->done + 1 >= loop->limit;
		else if (loop->mode == DRV_STEP_WARMUP)
			head.last = loop->done && drv_warmup_add(&loop->warmup, now, now - last);
		else
			head.last = now >= loop->end;
		last = now;
		parts[0] = (struct iovec){.iov_base = &head, .iov_len = sizeof(head)};
		parts[1] = (struct iovec){.iov_base = loop->out, .iov_len = loop->bytes};
		if (move_all(loop, true, parts, 2))
			return -1;
		state->next++;
		loop->done++;
	}
	parts[0] = (struct iovec){.iov_base = confirm, .iov_len = sizeof(confirm)};
	if (move_all(loop, false, parts, 1))
		return -1;
	loop->ended = drv_clock_now(&loop->run->clock);
	if (confirm[0] != CONFIRM_MAGIC || confirm[1] != loop->done)
		drv_floor_mismatch(loop, "%llu messages of a stream sent, %llu confirmed",
				   (unsigned long long)loop->done, (unsigned long long)confirm[1]);
	return 0;
}

static int tcp_flow_server(struct drv_floor_loop *loop)
{
	struct floor_state *state = loop->run->state;
	uint64_t confirm[2] = {CONFIRM_MAGIC};
	struct message_head head;
	struct iovec parts[2];
	int status;

	if (sockets_accept(loop))
		return -1;
	for (;;) {
		parts[0] = (struct iovec){.iov_base = &head, .iov_len = sizeof(head)};
		parts[1] = (struct iovec){.iov_base = loop->in, .iov_len = loop->bytes};
		status = move_all(loop, false, parts, 2);
		if (status)
			return status < 0 ? -1 : 0;
		if (DRV_LIKELY(drv_head_holds(loop->in, loop->bytes, loop->seed, state->next)))
			loop->checked++;
		else
			drv_floor_mismatch(loop, "a message of a stream has a wrong head");
		if (DRV_UNLIKELY(loop->bodies))
			drv_floor_read(loop, loop->in, loop->seed, state->next, "a message of a stream");
		state->next++;
		loop->executions++;
		loop->phase_executions++;
		if (!head.last)
			continue;
		confirm[1] = loop->phase_executions;
		parts[0] = (struct iovec){.iov_base = confirm, .iov_len = sizeof(confirm)};
		status = move_all(loop, true, parts, 1);
		if (status)
			return status < 0 ? -1 : 0;
	}
}

static int tcp_open(struct drv_floor_run *run, struct drv_fail *fail)
{
	return sockets_open(run, true, fail);
}

static const struct drv_floor tcp = {
	.name = "floor-tcp",
	.substrate = "tcp",
	.within = true,
	.between = true,
	.poll = true,
	.block = true,
	.bytes_min = 1,
	.bytes_min_reason = "a byte stream carries no empty message",
	.open = tcp_open,
	.connect = sockets_connect,
	.begin = sockets_begin,
	.settle = sockets_settle,
	.exchange = {tcp_client, tcp_server},
	.flow = {tcp_flow_client, tcp_flow_server},
	.close = sockets_close,
};
DRV_FLOOR(tcp);
