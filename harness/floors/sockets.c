/* SPDX-License-Identifier: BSD-3-Clause */
/* floor-tcp and floor-udp: one connected socket and bare system calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loop.h"

#define BLOCK_TIMEOUT_US 5000
#define DATAGRAM_MAX     65507u
#define LOOPBACK         "127.0.0.1"
#define BATCH_BYTES      (UINT64_C(256) << 10)
#define CONFIRM_MAGIC    UINT64_C(0x6361646765657266)

struct floor_state {
	int fd, listener;
	uint64_t received_bytes; /* of the message that is arriving */
	uint64_t next;           /* stream: message */
};

/* What precedes each batch of a TCP stream, little endian as stored. */
struct batch_head {
	uint64_t messages;
	uint64_t last; /* 1: nothing follows, confirm */
};

static const char *address_of(const struct floor_run *run, int endpoint)
{
	return run->launch.place == DRV_PLACE_WITHIN ? LOOPBACK : run->launch.endpoints[endpoint].address;
}

static int parse_address(const char *text, uint16_t port, struct sockaddr_storage *out, socklen_t *bytes_out,
			 struct drv_fail *fail)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
		memcpy(out, &four, sizeof(four));
		*bytes_out = sizeof(four);
	} else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1) {
		memcpy(out, &six, sizeof(six));
		*bytes_out = sizeof(six);
	} else {
		return drv_fail_set(fail, DRV_ARGUMENT, "'%s' is not an IP address", text);
	}
	return 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at);
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (getsockname(fd, (void *)&at, &bytes) < 0)
		return 0;
	if (at.ss_family == AF_INET) {
		memcpy(&four, &at, sizeof(four));
		return ntohs(four.sin_port);
	}
	memcpy(&six, &at, sizeof(six));
	return ntohs(six.sin6_port);
}

/*
 * A socket bound to this end's address: what others send to is on the first free port of the launch's range,
 * and who only connects takes any. -1 with fail.
 */
static int socket_bound(struct floor_run *run, int type, bool any_port, struct drv_fail *fail)
{
	const uint32_t first = any_port ? 0 : run->launch.port_first,
		       last = any_port ? 0 : run->launch.port_last;
	const char *address = address_of(run, run->endpoint);
	struct sockaddr_storage at;
	socklen_t bytes;
	int fd, one = 1;

	for (uint32_t port = first; port <= last; port++) {
		if (parse_address(address, (uint16_t)port, &at, &bytes, fail))
			return -1;
		fd = socket(at.ss_family, type | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return drv_fail_set(fail, DRV_SYSTEM, "no socket: %s", strerror(errno));
		/*
		 * A port in TIME_WAIT of an earlier launch is free for us; one that somebody listens on is
		 * not.
		 */
		if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0) {
			close(fd);
			return drv_fail_set(fail, DRV_SYSTEM, "SO_REUSEADDR: %s", strerror(errno));
		}
		if (bind(fd, (void *)&at, bytes) == 0)
			return fd;
		close(fd);
		if (errno != EADDRINUSE)
			return drv_fail_set(fail, errno == EADDRNOTAVAIL ? DRV_TRANSPORT : DRV_SYSTEM,
					    "address %s cannot be used: %s", address, strerror(errno));
	}
	return drv_fail_set(fail, DRV_PORT, "no port from %u to %u is free on %s", run->launch.port_first,
			    run->launch.port_last, address);
}

static bool is_tcp(const struct floor_run *run)
{
	return run->floor == &floor_tcp;
}

static int sockets_open(struct floor_run *run, struct drv_fail *fail)
{
	const struct drv_endpoint *self = &run->launch.endpoints[run->endpoint];
	struct floor_state *state = calloc(1, sizeof(*state));

	if (!state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the floor's state");
	run->state = state;
	state->fd = state->listener = -1;
	run->bytes_max = is_tcp(run) ? DRV_MESSAGE_BYTES_MAX : DATAGRAM_MAX;
	run->path = (struct cadge_path){.bytes = sizeof(run->path), .as_asked = 1};
	if (run->launch.place == DRV_PLACE_WITHIN) {
		run->path.medium = CADGE_MEDIUM_LOOPBACK;
		snprintf(run->path.asked, sizeof(run->path.asked), "loopback of this host");
		snprintf(run->path.device, sizeof(run->path.device), "lo");
	} else {
		run->path.medium = CADGE_MEDIUM_NETWORK;
		snprintf(run->path.asked, sizeof(run->path.asked), "device %.100s", self->device);
		snprintf(run->path.device, sizeof(run->path.device), "%.60s", self->device);
	}
	snprintf(run->path.used, sizeof(run->path.used), "%s socket, %s", is_tcp(run) ? "TCP" : "UDP",
		 run->block ? "blocking calls" : "non-blocking calls in a loop");
	if (is_tcp(run)) {
		/* Endpoint 1 listens on it, endpoint 0 connects from it. */
		state->listener = socket_bound(run, SOCK_STREAM, run->endpoint == 0, fail);
		if (state->listener >= 0 && run->endpoint == 1 && listen(state->listener, 1) < 0)
			return drv_fail_set(fail, DRV_PORT, "cannot listen: %s", strerror(errno));
		return state->listener < 0 ? -1 : 0;
	}
	state->fd = socket_bound(run, SOCK_DGRAM, false, fail);
	return state->fd < 0 ? -1 : 0;
}

/* In block mode calls come back now and then, so that a stop is noticed. */
static int socket_settle(struct floor_run *run, struct drv_fail *fail)
{
	const struct timeval timeout = {.tv_usec = BLOCK_TIMEOUT_US};
	int fd = run->state->fd, one = 1;

	if (is_tcp(run) && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "TCP_NODELAY: %s", strerror(errno));
	if (run->block && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "SO_RCVTIMEO: %s", strerror(errno));
	return 0;
}

static int accept_peer(struct floor_state *state, struct drv_fail *fail)
{
	struct pollfd ready = {.fd = state->listener, .events = POLLIN};

	if (poll(&ready, 1, 5000) <= 0 ||
	    (state->fd = accept4(state->listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
		return drv_fail_set(fail, DRV_TRANSPORT, "endpoint 0 did not connect within 5 s");
	close(state->listener);
	state->listener = -1;
	return 0;
}

static int sockets_connect(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	struct sockaddr_storage to;
	json_t *theirs = NULL;
	socklen_t bytes;
	int port, fd = is_tcp(run) ? state->listener : state->fd, status;

	if (floor_exchange(run, "port", json_pack("{s:i}", "port", (int)port_of(fd)), &theirs, fail))
		return -1;
	status = json_unpack(theirs, "{s:i}", "port", &port);
	json_decref(theirs);
	if (status || port <= 0 || port > 65535)
		return drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint named no port");
	if (is_tcp(run) && run->endpoint == 1) {
		if (accept_peer(state, fail))
			return -1;
		return socket_settle(run, fail);
	}
	if (parse_address(address_of(run, 1 - run->endpoint), (uint16_t)port, &to, &bytes, fail))
		return -1;
	if (connect(fd, (void *)&to, bytes) < 0)
		return drv_fail_set(fail, DRV_TRANSPORT, "cannot connect to %s port %d: %s",
				    address_of(run, 1 - run->endpoint), port, strerror(errno));
	state->fd = fd;
	state->listener = -1;
	return socket_settle(run, fail);
}

static int sockets_begin(struct floor_loop *loop, struct drv_fail *fail)
{
	struct floor_state *state = loop->run->state;

	(void)fail;
	state->received_bytes = state->next = 0;
	/* Datagrams of an earlier point that came late. */
	while (!is_tcp(loop->run) && recv(state->fd, loop->in, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0)
		;
	return 0;
}

static void sockets_close(struct floor_run *run)
{
	if (!run->state)
		return;
	if (run->state->fd >= 0)
		close(run->state->fd);
	if (run->state->listener >= 0)
		close(run->state->listener);
	free(run->state);
	run->state = NULL;
}

static void __attribute__((cold, noinline)) note_socket(struct floor_loop *loop, const char *what)
{
	if (errno == ECONNRESET || errno == EPIPE || errno == ECONNREFUSED)
		drv_fail_set(&loop->fail, DRV_PEER_LOST, "the socket of the other endpoint is closed");
	else
		floor_note_broke(loop, what);
}

FLOOR_INLINE int socket_failed(struct floor_loop *loop, const char *what)
{
	note_socket(loop, what);
	return -1;
}

FLOOR_INLINE bool again(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* A socket that is full: waits a little for room. 0 or -1. */
static int __attribute__((cold, noinline)) wait_for_room(struct floor_loop *loop)
{
	struct pollfd ready = {.fd = loop->run->state->fd, .events = POLLOUT};
	int status = floor_look(loop);

	if (status < 0)
		return -1;
	if (poll(&ready, 1, loop->run->block ? 5 : 0) < 0 && errno != EINTR)
		return floor_broke(loop, "poll");
	return 0;
}

FLOOR_INLINE int udp_send(struct floor_loop *loop, size_t bytes)
{
	const int fd = loop->run->state->fd;

	while (FLOOR_UNLIKELY(send(fd, loop->out, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)) {
		if (!again() && errno != ENOBUFS)
			return socket_failed(loop, "send");
		if (wait_for_room(loop))
			return -1;
	}
	return 0;
}

FLOOR_INLINE int udp_receive(struct floor_loop *loop, const uint8_t **data, size_t *bytes, const int flags)
{
	const ssize_t count = recv(loop->run->state->fd, loop->in, loop->bytes + 1, flags);

	if (FLOOR_LIKELY(count >= 0)) {
		*data = loop->in;
		*bytes = (size_t)count;
		return 1;
	}
	return again() ? 0 : socket_failed(loop, "recv");
}

FLOOR_INLINE int tcp_send(struct floor_loop *loop, size_t bytes)
{
	const int fd = loop->run->state->fd;
	size_t done = 0;

	while (done < bytes) {
		const ssize_t count = send(fd, loop->out + done, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (FLOOR_LIKELY(count >= 0)) {
			done += (size_t)count;
			continue;
		}
		if (!again())
			return socket_failed(loop, "send");
		if (wait_for_room(loop))
			return -1;
	}
	return 0;
}

FLOOR_INLINE int tcp_receive(struct floor_loop *loop, const uint8_t **data, size_t *bytes, const int flags)
{
	struct floor_state *state = loop->run->state;
	const size_t have = (size_t)state->received_bytes;
	const ssize_t count = recv(state->fd, loop->in + have, loop->bytes - have, flags);

	if (FLOOR_UNLIKELY(count <= 0)) {
		if (count < 0 && again())
			return 0;
		if (count == 0)
			errno = ECONNRESET;
		return socket_failed(loop, "recv");
	}
	if (FLOOR_UNLIKELY(have + (size_t)count < loop->bytes)) {
		state->received_bytes += (uint64_t)count;
		return 0;
	}
	state->received_bytes = 0;
	*data = loop->in;
	*bytes = loop->bytes;
	return 1;
}

#define LOOPS(name, kind, block, lossy, flags)                                                               \
	FLOOR_INLINE int name##_receive(struct floor_loop *loop, const uint8_t **data, size_t *bytes)        \
	{                                                                                                    \
		return kind##_receive(loop, data, bytes, flags);                                             \
	}                                                                                                    \
	static int name##_client(struct floor_loop *loop)                                                    \
	{                                                                                                    \
		return floor_client_loop(loop, block, lossy, kind##_send, name##_receive);                   \
	}                                                                                                    \
	static int name##_server(struct floor_loop *loop)                                                    \
	{                                                                                                    \
		return floor_server_loop(loop, block, kind##_send, name##_receive);                          \
	}
LOOPS(udp_poll, udp, false, true, MSG_DONTWAIT)
LOOPS(udp_block, udp, true, true, 0)
LOOPS(tcp_poll, tcp, false, false, MSG_DONTWAIT)
LOOPS(tcp_block, tcp, true, false, 0)

static int udp_client(struct floor_loop *loop)
{
	return loop->run->block ? udp_block_client(loop) : udp_poll_client(loop);
}

static int udp_server(struct floor_loop *loop)
{
	return loop->run->block ? udp_block_server(loop) : udp_poll_server(loop);
}

static int tcp_client(struct floor_loop *loop)
{
	return loop->run->block ? tcp_block_client(loop) : tcp_poll_client(loop);
}

static int tcp_server(struct floor_loop *loop)
{
	return loop->run->block ? tcp_block_server(loop) : tcp_poll_server(loop);
}

/* Moves exactly `bytes`. 0; 1: told to stop before the first byte (server); -1. */
static int move_all(struct floor_loop *loop, bool out, struct iovec *parts, int count)
{
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
	const int fd = loop->run->state->fd, flags = loop->run->block && !out ? 0 : MSG_DONTWAIT;
	bool begun = false;
	uint32_t idle = 0;

	while (message.msg_iovlen) {
		ssize_t moved =
			out ? sendmsg(fd, &message, flags | MSG_NOSIGNAL) : recvmsg(fd, &message, flags);

		if (moved < 0 && !again())
			return socket_failed(loop, out ? "sendmsg" : "recvmsg");
		if (moved == 0 && !out) {
			errno = ECONNRESET;
			return socket_failed(loop, "recvmsg");
		}
		if (moved < 0) {
			int status = 0;

			if (out && loop->run->block && wait_for_room(loop))
				return -1;
			if (loop->run->block || (++idle & 255) == 0)
				status = floor_look(loop);
			if (status)
				return status > 0 && !begun ? 1 : -1;
			continue;
		}
		begun = true;
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

/* How many messages share a batch: both sides count alike, and a batch fits the buffers. */
static uint64_t batch_messages(const struct floor_loop *loop)
{
	const uint64_t fit = BATCH_BYTES / loop->bytes;

	return fit ? fit : 1;
}

static int tcp_stream_client(struct floor_loop *loop)
{
	struct floor_state *state = loop->run->state;
	const uint64_t batch = batch_messages(loop);
	uint64_t last = drv_clock_now(&loop->run->clock), now, confirm[2];
	struct batch_head head = {.last = 0};
	struct iovec parts[2];

	loop->started = last;
	while (!head.last) {
		head.messages = loop->mode == FLOOR_VERIFY && loop->limit - loop->done < batch
					? loop->limit - loop->done
					: batch;
		for (uint64_t i = 0; i < head.messages; i++) {
			uint8_t *message = loop->out + i * loop->bytes;
			uint64_t words[2];

			/*
			 * loop->out has room behind the last one only, so a head must not reach into its
			 * successor
			 */
			drv_head_words(words, loop->bytes, loop->seed, state->next + i);
			memcpy(message, words, loop->bytes < DRV_HEAD_BYTES ? loop->bytes : DRV_HEAD_BYTES);
			if (loop->mode == FLOOR_VERIFY)
				drv_body_fill(message, loop->bytes, loop->seed, loop->phase, state->next + i);
		}
		now = drv_clock_now(&loop->run->clock);
		if (loop->mode == FLOOR_VERIFY)
			head.last = loop->done + head.messages >= loop->limit;
		else if (loop->mode == FLOOR_WARMUP)
			head.last = loop->done && floor_warmup_done(loop, now, now - last);
		else
			head.last = now >= loop->end;
		last = now;
		parts[0] = (struct iovec){.iov_base = &head, .iov_len = sizeof(head)};
		parts[1] = (struct iovec){.iov_base = loop->out, .iov_len = head.messages * loop->bytes};
		if (move_all(loop, true, parts, 2))
			return -1;
		state->next += head.messages;
		loop->done += head.messages;
	}
	parts[0] = (struct iovec){.iov_base = confirm, .iov_len = sizeof(confirm)};
	if (move_all(loop, false, parts, 1))
		return -1;
	loop->ended = drv_clock_now(&loop->run->clock);
	if (confirm[0] != CONFIRM_MAGIC || confirm[1] != loop->done)
		floor_mismatch(loop, "client: %llu messages of a stream sent, %llu confirmed",
			       (unsigned long long)loop->done, (unsigned long long)confirm[1]);
	return 0;
}

static int tcp_stream_server(struct floor_loop *loop)
{
	struct floor_state *state = loop->run->state;
	const uint64_t batch = batch_messages(loop);
	uint64_t confirm[2] = {CONFIRM_MAGIC};
	struct batch_head head;
	struct iovec part;
	int status;

	for (;;) {
		part = (struct iovec){.iov_base = &head, .iov_len = sizeof(head)};
		status = move_all(loop, false, &part, 1);
		if (status)
			return status < 0 ? -1 : 0;
		if (!head.messages || head.messages > batch)
			return drv_fail_set(&loop->fail, DRV_PROTOCOL,
					    "a batch of a stream claims %llu messages",
					    (unsigned long long)head.messages);
		part = (struct iovec){.iov_base = loop->in, .iov_len = head.messages * loop->bytes};
		status = move_all(loop, false, &part, 1);
		if (status)
			return -1;
		for (uint64_t i = 0; i < head.messages; i++) {
			const uint8_t *message = loop->in + i * loop->bytes;

			if (FLOOR_LIKELY(drv_head_holds(message, loop->bytes, loop->seed, state->next + i)))
				loop->checked++;
			else
				floor_mismatch(loop, "server: a message of a stream has a wrong head");
			if (FLOOR_UNLIKELY(loop->mode == FLOOR_VERIFY)) {
				loop->full_checked++;
				if (!drv_body_holds(message, loop->bytes, loop->seed, loop->phase,
						    state->next + i))
					floor_mismatch(loop,
						       "server: a message of a stream has a wrong body");
			}
		}
		state->next += head.messages;
		loop->executions += head.messages;
		if (!head.last)
			continue;
		confirm[1] = loop->executions;
		part = (struct iovec){.iov_base = confirm, .iov_len = sizeof(confirm)};
		if (move_all(loop, true, &part, 1))
			return -1;
	}
}

const struct floor floor_tcp = {
	.name = "floor-tcp",
	.substrate = "tcp",
	.title = "TCP on bare system calls",
	.within = true,
	.between = true,
	.poll = true,
	.block = true,
	.stream = true,
	.bytes_min = 1,
	.bytes_min_reason = "a byte stream carries no empty message",
	.open = sockets_open,
	.connect = sockets_connect,
	.begin = sockets_begin,
	.client = tcp_client,
	.server = tcp_server,
	.stream_client = tcp_stream_client,
	.stream_server = tcp_stream_server,
	.close = sockets_close,
};

const struct floor floor_udp = {
	.name = "floor-udp",
	.substrate = "udp",
	.title = "UDP on bare system calls",
	.within = true,
	.between = true,
	.poll = true,
	.block = true,
	.lossy = true,
	.open = sockets_open,
	.connect = sockets_connect,
	.begin = sockets_begin,
	.client = udp_client,
	.server = udp_server,
	.close = sockets_close,
};
