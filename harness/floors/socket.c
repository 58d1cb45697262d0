/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the one socket between the two endpoints. */
#include "socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK_TIMEOUT_US 5000
#define DATAGRAM_MAX     65507u
#define STREAM_BYTES_MAX (UINT64_C(1) << 30)
#define LOOPBACK         "127.0.0.1"

static const char *address_of(const struct drv_floor_run *run, int endpoint)
{
	return run->launch->place == DRV_PLACE_WITHIN ? LOOPBACK : run->launch->endpoints[endpoint].address;
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
static int socket_bound(struct drv_floor_run *run, int type, bool any_port, struct drv_fail *fail)
{
	const uint32_t first = any_port ? 0 : run->launch->port_first,
		       last = any_port ? 0 : run->launch->port_last;
	const char *address = address_of(run, run->endpoint);
	struct sockaddr_storage at;
	socklen_t bytes;
	int fd, one = 1;

	for (uint32_t port = first; port <= last; port++) {
		if (parse_address(address, (uint16_t)port, &at, &bytes, fail))
			return -1;
		fd = socket(at.ss_family, type | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return drv_fail_set(fail, DRV_SYSTEM, "cannot create a socket: %s", strerror(errno));
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
	return drv_fail_set(fail, DRV_PORT, "no port from %u to %u is free on %s", run->launch->port_first,
			    run->launch->port_last, address);
}

int sockets_open(struct drv_floor_run *run, bool tcp, struct drv_fail *fail)
{
	const struct drv_endpoint *self = &run->launch->endpoints[run->endpoint];
	struct floor_state *state = calloc(1, sizeof(*state));

	if (!state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the floor's state");
	run->state = state;
	state->fd = state->listener = -1;
	state->tcp = tcp;
	run->bytes_max = tcp ? STREAM_BYTES_MAX : DATAGRAM_MAX;
	run->path = (struct cadge_path){.bytes = sizeof(run->path), .as_asked = 1};
	if (run->launch->place == DRV_PLACE_WITHIN) {
		run->path.medium = CADGE_MEDIUM_LOOPBACK;
		snprintf(run->path.asked, sizeof(run->path.asked), "loopback of this host");
		snprintf(run->path.device, sizeof(run->path.device), "lo");
	} else {
		run->path.medium = CADGE_MEDIUM_NETWORK;
		snprintf(run->path.asked, sizeof(run->path.asked), "device %.100s", self->device);
		snprintf(run->path.device, sizeof(run->path.device), "%.60s", self->device);
	}
	snprintf(run->path.used, sizeof(run->path.used), "%s socket, %s", run->state->tcp ? "TCP" : "UDP",
		 run->block ? "blocking calls" : "non-blocking calls in a loop");
	if (run->state->tcp) {
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
static int socket_settle(struct drv_floor_run *run, struct drv_fail *fail)
{
	const struct timeval timeout = {.tv_usec = BLOCK_TIMEOUT_US};
	int fd = run->state->fd, one = 1;

	if (run->state->tcp && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "TCP_NODELAY: %s", strerror(errno));
	if (run->block && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "SO_RCVTIMEO: %s", strerror(errno));
	return 0;
}

static int accept_peer(struct drv_floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	struct pollfd ready = {.fd = state->listener, .events = POLLIN};

	if (poll(&ready, 1, 5000) <= 0)
		return drv_fail_set(fail, DRV_TRANSPORT, "endpoint 0 did not connect within 5 s");
	state->fd = accept4(state->listener, NULL, NULL, SOCK_CLOEXEC);
	if (state->fd < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "cannot take endpoint 0's connection: %s",
				    strerror(errno));
	return socket_settle(run, fail);
}

/* Connects `fd`, which becomes the socket. */
static int connect_peer(struct drv_floor_run *run, int fd, struct drv_fail *fail)
{
	const char *address = address_of(run, 1 - run->endpoint);
	struct sockaddr_storage to;
	socklen_t bytes;

	run->state->fd = fd;
	if (parse_address(address, run->state->port, &to, &bytes, fail))
		return -1;
	if (connect(fd, (void *)&to, bytes) < 0)
		return drv_fail_set(fail, DRV_TRANSPORT, "cannot connect to %s port %d: %s", address,
				    run->state->port, strerror(errno));
	return socket_settle(run, fail);
}

int sockets_connect(struct drv_floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	const int fd = state->tcp ? state->listener : state->fd;
	json_t *theirs = NULL;
	int port, status;

	if (drv_floor_swap(run, "port", json_pack("{s:i}", "port", (int)port_of(fd)), &theirs, fail))
		return -1;
	status = json_unpack(theirs, "{s:i}", "port", &port);
	json_decref(theirs);
	if (status || port <= 0 || port > 65535)
		return drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint sent no port");
	if (state->tcp && run->endpoint == 1)
		return accept_peer(run, fail);
	state->port = (uint16_t)port;
	state->listener = -1;
	return connect_peer(run, fd, fail);
}

/* TCP: there is none until the next attempt has made or taken another. */
static void drop(struct floor_state *state)
{
	if (state->fd >= 0)
		close(state->fd);
	state->fd = -1;
	state->torn = false;
}

/*
 * What a given-up attempt left in a stream of bytes cannot be told from what follows: the next one gets another stream.
 * Endpoint 1 still reads from this one when endpoint 0 gives up, and has stopped when it comes here itself.
 */
bool sockets_settle(struct drv_floor_loop *loop)
{
	struct floor_state *state = loop->run->state;

	state->torn = loop->run->endpoint == 0;
	if (!state->torn)
		drop(state);
	return true;
}

int sockets_accept(struct drv_floor_loop *loop)
{
	return loop->run->state->fd < 0 ? accept_peer(loop->run, &loop->fail) : 0;
}

int sockets_begin(struct drv_floor_loop *loop, struct drv_fail *fail)
{
	struct drv_floor_run *run = loop->run;
	struct floor_state *state = run->state;

	state->received_bytes = state->next = 0;
	/* endpoint 1 takes the other one when it serves: it is ready before endpoint 0 begins */
	if (state->torn) {
		int fd;

		drop(state);
		fd = socket_bound(run, SOCK_STREAM, true, fail);
		return fd < 0 ? -1 : connect_peer(run, fd, fail);
	}
	/* Datagrams of an earlier point that came late. */
	while (!state->tcp && recv(state->fd, loop->in, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0)
		;
	return 0;
}

void sockets_close(struct drv_floor_run *run)
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

void socket_note_failed(struct drv_floor_loop *loop, const char *what)
{
	if (errno == ECONNRESET || errno == EPIPE || errno == ECONNREFUSED)
		drv_fail_set(&loop->fail, DRV_PEER_LOST, "the socket of the other endpoint is closed");
	else
		drv_floor_note_broke(loop, what);
}

int socket_room(struct drv_floor_loop *loop)
{
	struct pollfd ready = {.fd = loop->run->state->fd, .events = POLLOUT};
	const int status = drv_floor_poll_oob(loop);

	if (status)
		return status;
	if (poll(&ready, 1, loop->run->block ? 5 : 0) < 0 && errno != EINTR)
		return drv_floor_broke(loop, "poll");
	return 0;
}
