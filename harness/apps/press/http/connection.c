/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/http/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fail.h"

/*
 * Whoever comes while there is no descriptor stays in the kernel's queue. The loop would be told of it again at once, and
 * the node would look again and again, with its processor taken from those whom it serves.
 */
static void pause_accepting(struct press_connections *all)
{
	if (!all->times_full++)
		fprintf(stderr, "press: clients wait with %" PRIu32 " connected: %s\n", all->open,
			strerror(errno));
	all->full = !press_loop_change(all->loop, &all->listening, 0);
}

static void resume_accepting(struct press_connections *all)
{
	if (all->full)
		all->full = press_loop_change(all->loop, &all->listening, EPOLLIN) != 0;
}

static void end_connection(struct press_connection *connection)
{
	struct press_connections *all = connection->all;

	if (connection->task)
		all->gone(all->arg, connection);
	if (connection->entry)
		press_entry_unpin(connection->entry);
	press_loop_remove(all->loop, &connection->watch);
	close(connection->watch.fd);
	*(connection->before ? &connection->before->next : &all->first) = connection->next;
	if (connection->next)
		connection->next->before = connection->before;
	all->open--;
	free(connection);
	resume_accepting(all);
}

static void watch_for(struct press_connection *connection, uint32_t events)
{
	if (connection->events == events)
		return;
	connection->events = events;
	press_loop_change(connection->all->loop, &connection->watch, events);
}

/* 1: all was written; 0: later; -1: the client is gone. */
static int write_answer(struct press_connection *connection)
{
	const size_t all_bytes = connection->head_bytes + connection->content_bytes;

	while (connection->written < all_bytes) {
		const size_t written = connection->written;
		const size_t head_left =
			written < connection->head_bytes ? connection->head_bytes - written : 0;
		const size_t content_from = head_left ? 0 : written - connection->head_bytes;
		struct iovec iov[2] = {{connection->head + (head_left ? written : 0), head_left}, {NULL, 0}};
		const struct msghdr message = {.msg_iov = head_left ? iov : iov + 1,
					       .msg_iovlen = (head_left ? 1u : 0u) +
							     (connection->content_bytes ? 1u : 0u)};
		ssize_t sent;

		if (connection->content_bytes)
			iov[1] = (struct iovec){connection->entry->data + content_from,
						connection->content_bytes - content_from};
		sent = sendmsg(connection->watch.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		connection->written += (size_t)sent;
		connection->moved_ns = connection->all->now_ns;
	}
	return 1;
}

/* 1: something came; 0: nothing yet; -1: the client is gone. */
static int read_more(struct press_connection *connection)
{
	const ssize_t got = recv(connection->watch.fd, connection->in, sizeof(connection->in), MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (got == 0)
		return -1;
	connection->in_used = 0;
	connection->in_bytes = (size_t)got;
	connection->moved_ns = connection->all->now_ns;
	return 1;
}

static void begin_answer(struct press_connection *connection, unsigned status, struct press_entry *entry)
{
	const struct press_request *request = &connection->parser.request;

	connection->state = PRESS_ANSWERING;
	connection->task = NULL;
	connection->keep_alive = request->keep_alive;
	connection->entry = entry;
	if (entry)
		press_entry_pin(entry);
	connection->head_bytes =
		press_answer_head(connection->head, status, entry ? entry->bytes : 0, request->keep_alive);
	connection->content_bytes = entry && !request->head_only ? entry->bytes : 0;
	connection->written = 0;
}

/* Looks for a request in what has come. */
static void read_request(struct press_connection *connection)
{
	size_t used;
	const enum press_parsed parsed =
		press_parse(&connection->parser, connection->in + connection->in_used,
			    connection->in_bytes - connection->in_used, &used);

	connection->in_used += used;
	if (parsed == PRESS_PARSED_MORE)
		return;
	if (parsed == PRESS_PARSED_BAD || connection->parser.request.status != 200) {
		begin_answer(connection, connection->parser.request.status, NULL);
		return;
	}
	connection->state = PRESS_SERVING;
	connection->all->request(connection->all->arg, connection);
}

/* The answer has left. False: the connection has ended. */
static bool end_answer(struct press_connection *connection)
{
	if (connection->entry)
		press_entry_unpin(connection->entry);
	connection->entry = NULL;
	connection->state = PRESS_READING;
	if (connection->keep_alive)
		return true;
	/* what the client still sends would make the kernel reset the connection, and the answer could be lost */
	shutdown(connection->watch.fd, SHUT_WR);
	while (recv(connection->watch.fd, connection->in, sizeof(connection->in), MSG_DONTWAIT) > 0)
		;
	end_connection(connection);
	return false;
}

/* Goes as far as it can. */
static void advance(struct press_connection *connection)
{
	connection->busy = true;
	while (connection->state != PRESS_SERVING) {
		int status;

		if (connection->state == PRESS_ANSWERING) {
			status = write_answer(connection);
			if (status == 0) {
				watch_for(connection, EPOLLOUT);
				break;
			}
			if (status > 0 && !end_answer(connection))
				return;
		} else if (connection->in_used < connection->in_bytes) {
			read_request(connection);
			continue;
		} else {
			status = read_more(connection);
			if (status == 0) {
				watch_for(connection, EPOLLIN);
				break;
			}
		}
		if (status < 0) {
			end_connection(connection);
			return;
		}
	}
	connection->busy = false;
}

static void on_ready(struct press_watch *watch, uint32_t events)
{
	struct press_connection *connection = (struct press_connection *)watch;

	if (events & (EPOLLHUP | EPOLLERR)) {
		end_connection(connection);
	} else if (connection->state == PRESS_SERVING) {
		/* a further request, or the end of them: looked at when this one has been answered */
		watch_for(connection, 0);
	} else {
		advance(connection);
	}
}

void press_connection_answer(struct press_connection *connection, unsigned status, struct press_entry *entry)
{
	begin_answer(connection, status, entry);
	if (!connection->busy)
		advance(connection);
}

static void on_client(struct press_watch *watch, uint32_t events)
{
	struct press_connections *all =
		(struct press_connections *)((char *)watch - offsetof(struct press_connections, listening));
	const int yes = 1;

	(void)events;
	for (;;) {
		const int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct press_connection *connection;

		if (fd < 0 && drv_errno_exhausted(errno))
			pause_accepting(all);
		if (fd < 0)
			return;
		connection = calloc(1, sizeof(*connection));
		if (!connection) {
			close(fd);
			return;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		connection->watch = (struct press_watch){.fd = fd, .ready = on_ready};
		connection->all = all;
		connection->moved_ns = all->now_ns;
		connection->events = EPOLLIN;
		press_parser_start(&connection->parser);
		if (press_loop_add(all->loop, &connection->watch, EPOLLIN)) {
			close(fd);
			free(connection);
			return;
		}
		connection->next = all->first;
		if (all->first)
			all->first->before = connection;
		all->first = connection;
		all->open++;
	}
}

static int listen_at(struct press_connections *connections, const char *address)
{
	struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
	struct sockaddr_in *four = (struct sockaddr_in *)&at;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&at;
	socklen_t bytes = sizeof(at);
	int fd;

	if (inet_pton(AF_INET, address, &four->sin_addr) == 1)
		at.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1)
		at.ss_family = AF_INET6;
	fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	connections->listening = (struct press_watch){.fd = fd, .ready = on_client};
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&at, at.ss_family == AF_INET ? sizeof(*four) : sizeof(*six)) ||
	    listen(fd, SOMAXCONN) || getsockname(fd, (struct sockaddr *)&at, &bytes))
		return -1;
	connections->port = ntohs(at.ss_family == AF_INET ? four->sin_port : six->sin6_port);
	return press_loop_add(connections->loop, &connections->listening, EPOLLIN);
}

int press_connections_start(struct press_connections *connections, struct press_loop *loop,
			    const char *address)
{
	connections->loop = loop;
	connections->first = NULL;
	return listen_at(connections, address);
}

void press_connections_end(struct press_connections *connections)
{
	while (connections->first)
		end_connection(connections->first);
	if (connections->listening.fd >= 0)
		close(connections->listening.fd);
	connections->listening.fd = -1;
}

void press_connections_tidy(struct press_connections *connections)
{
	struct press_connection *next;

	resume_accepting(connections);
	for (struct press_connection *connection = connections->first; connection; connection = next) {
		const uint64_t still_ns = connections->now_ns - connection->moved_ns;

		next = connection->next;
		if (connection->state == PRESS_ANSWERING && still_ns > PRESS_SLOW_NS) {
			end_connection(connection);
		} else if (connection->state == PRESS_READING && press_parser_busy(&connection->parser) &&
			   still_ns > PRESS_SLOW_NS) {
			connection->parser.request.keep_alive = false;
			press_connection_answer(connection, 408, NULL);
		} else if (connection->state == PRESS_READING && still_ns > PRESS_IDLE_NS) {
			end_connection(connection);
		}
	}
}
