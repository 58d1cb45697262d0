/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP connections over real sockets: in a row, pipelined, slow, broken off, and nonsense. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "press/http/connection.h"
#include "tap.h"

#define HOST        " HTTP/1.1\r\nHost: a\r\n\r\n"
#define SMALL       5u
#define LARGE       (8u << 20)
#define TURN_NS     UINT64_C(1000000)
#define TURNS       500
#define ANSWER_ROOM 65536u

struct server {
	struct press_loop loop;
	struct press_connections connections;
	struct press_entry *small, *large;
	/* the one request that waits, and how many have gone meanwhile */
	struct press_connection *waits;
	unsigned gone;
};

static struct press_entry *entry_of(uint32_t bytes, int letter)
{
	struct press_entry *entry = press_entry_new(0, bytes, NULL);

	entry->whole = true;
	memset(entry->data, letter, bytes);
	return entry;
}

static void on_request(void *arg, struct press_connection *connection)
{
	struct server *server = arg;
	const uint32_t file = press_target_file(connection->parser.request.target, 3);

	if (file == 0) {
		press_connection_answer(connection, 200, server->small);
	} else if (file == 1) {
		press_connection_answer(connection, 200, server->large);
	} else if (file == 2) {
		server->waits = connection;
		connection->task = server;
	} else {
		press_connection_answer(connection, 404, NULL);
	}
}

static void on_gone(void *arg, struct press_connection *connection)
{
	struct server *server = arg;

	(void)connection;
	server->waits = NULL;
	server->gone++;
}

static void start(struct server *server)
{
	*server = (struct server){.small = entry_of(SMALL, 's'), .large = entry_of(LARGE, 'l')};
	server->connections.request = on_request;
	server->connections.gone = on_gone;
	server->connections.arg = server;
	server->connections.now_ns = 1;
	tap_ok(!press_loop_start(&server->loop) &&
		       !press_connections_start(&server->connections, &server->loop, "127.0.0.1") &&
		       server->connections.port,
	       "it listens");
}

static void turns(struct server *server, int count)
{
	while (count-- > 0)
		press_loop_turn(&server->loop, TURN_NS);
}

static int visit(const struct server *server, int receive_bytes)
{
	const struct sockaddr_in there = {.sin_family = AF_INET,
					  .sin_port = htons(server->connections.port),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (receive_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	if (connect(fd, (const struct sockaddr *)&there, sizeof(there))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void say(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* What the client has been told when so many bytes have come, or it ends, or nothing comes for a while. */
static const char *hear(struct server *server, int fd, size_t wanted, bool *ended_out)
{
	static char answer[ANSWER_ROOM];
	size_t bytes = 0;

	*ended_out = false;
	for (int turn = 0; turn < TURNS && bytes < wanted; turn++) {
		const ssize_t got = recv(fd, answer + bytes, sizeof(answer) - 1 - bytes, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno != EAGAIN)) {
			*ended_out = true;
			break;
		}
		if (got > 0)
			bytes += (size_t)got;
		press_loop_turn(&server->loop, TURN_NS);
	}
	answer[bytes] = '\0';
	return answer;
}

static const char *const small_answer =
	"HTTP/1.1 200 OK\r\nServer: cadge-press\r\nContent-Length: 5\r\n\r\nsssss";

static void check_row(struct server *server)
{
	const int fd = visit(server, 0);
	const size_t bytes = strlen(small_answer);
	bool ended, good = true;

	for (int i = 0; i < 3; i++) {
		say(fd, "GET /f/0" HOST);
		good &= !strcmp(hear(server, fd, bytes, &ended), small_answer) && !ended;
	}
	tap_ok(good && server->connections.open == 1, "three requests over one connection");
	for (const char *letter = "GET /f/0" HOST; *letter; letter++) {
		(void)!send(fd, letter, 1, MSG_NOSIGNAL);
		turns(server, 1);
	}
	tap_ok(!strcmp(hear(server, fd, bytes, &ended), small_answer),
	       "a request that comes letter by letter");
	say(fd, "HEAD /f/1" HOST);
	tap_ok(strstr(hear(server, fd, bytes, &ended), "Content-Length: 8388608\r\n\r\n") && !ended,
	       "HEAD: the length, and no content");
	say(fd, "GET /f/0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	tap_ok(strstr(hear(server, fd, ANSWER_ROOM, &ended), "Connection: close\r\n\r\nsssss") && ended,
	       "closed when it was asked for");
	close(fd);
	tap_ok(server->connections.open == 0 && server->small->pins == 1, "nothing is left of it");
}

static void check_pipeline(struct server *server)
{
	const int fd = visit(server, 0);
	const char *answer;
	bool ended;

	say(fd, "GET /f/0" HOST "GET /f/2" HOST "GET /none" HOST "GET /f/0" HOST);
	answer = hear(server, fd, strlen(small_answer), &ended);
	tap_ok(!strcmp(answer, small_answer) && server->waits, "of four at once, the second one waits");
	say(fd, "GET /f/0" HOST);
	turns(server, 5);
	answer = hear(server, fd, 1, &ended);
	tap_ok(!*answer, "and none overtakes it");
	server->waits->task = NULL;
	press_connection_answer(server->waits, 503, NULL);
	answer = hear(server, fd, 4 * 100 + 3 * 5, &ended);
	tap_ok(!strncmp(answer, "HTTP/1.1 503 ", 13) && strstr(answer, "HTTP/1.1 404 ") &&
		       strlen(strstr(answer, "HTTP/1.1 200 ")) == 2 * strlen(small_answer),
	       "all others follow in order");
	close(fd);
	turns(server, 5);
	tap_ok(server->connections.open == 0, "it ends with its client");
}

static void check_gone(struct server *server)
{
	int fd = visit(server, 4096);

	say(fd, "GET /f/1" HOST);
	turns(server, 5);
	tap_ok(server->large->pins == 2, "a file on its way is in use");
	close(fd);
	turns(server, 5);
	tap_ok(server->large->pins == 1 && server->connections.open == 0,
	       "a client that goes away in the middle of a file");
	fd = visit(server, 0);
	say(fd, "GET /f/2" HOST);
	turns(server, 5);
	tap_ok(server->waits != NULL, "a request is being served");
	/* with a reset, as when the process was killed */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
	close(fd);
	turns(server, 5);
	tap_ok(server->gone == 1 && server->connections.open == 0, "its client goes away, and that is told");
}

static void check_slow(struct server *server)
{
	int fd = visit(server, 0);
	bool ended;

	say(fd, "GET /f/0 HT");
	turns(server, 5);
	server->connections.now_ns += PRESS_SLOW_NS / 2;
	press_connections_tidy(&server->connections);
	tap_ok(server->connections.open == 1, "a slow request is waited for");
	server->connections.now_ns += PRESS_SLOW_NS;
	press_connections_tidy(&server->connections);
	tap_ok(!strncmp(hear(server, fd, ANSWER_ROOM, &ended), "HTTP/1.1 408 ", 13) && ended,
	       "and then no longer: 408");
	close(fd);
	fd = visit(server, 4096);
	say(fd, "GET /f/1" HOST);
	turns(server, 20);
	server->connections.now_ns += PRESS_SLOW_NS + 1;
	press_connections_tidy(&server->connections);
	tap_ok(server->connections.open == 0 && server->large->pins == 1, "who takes no answer is let go");
	close(fd);
	fd = visit(server, 0);
	turns(server, 5);
	server->connections.now_ns += PRESS_SLOW_NS + 1;
	press_connections_tidy(&server->connections);
	tap_ok(server->connections.open == 1, "who has nothing to ask may stay a while");
	say(fd, "GET /f/0" HOST);
	hear(server, fd, 1, &ended);
	server->connections.now_ns += PRESS_SLOW_NS + 1;
	press_connections_tidy(&server->connections);
	tap_ok(server->connections.open == 1, "who has nothing more to ask, too");
	server->connections.now_ns += PRESS_IDLE_NS;
	press_connections_tidy(&server->connections);
	tap_ok(server->connections.open == 0, "and not for ever");
	close(fd);
}

/* This process has as many descriptors as it may have. */
static void allow_no_more(void)
{
	const int next = dup(STDIN_FILENO);
	struct rlimit limit;

	close(next);
	if (getrlimit(RLIMIT_NOFILE, &limit))
		exit(77);
	limit.rlim_cur = (rlim_t)next;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Clients that there is no descriptor for wait, and meanwhile the loop sleeps and serves the others. */
static void check_full(struct server *server)
{
	struct rlimit limit;
	int first, second, third;
	bool ended;

	getrlimit(RLIMIT_NOFILE, &limit);
	first = visit(server, 0);
	turns(server, 5);
	second = visit(server, 0);
	say(second, "GET /f/0" HOST);
	third = visit(server, 0);
	say(third, "GET /f/0" HOST);
	allow_no_more();
	turns(server, 5);
	tap_ok(server->connections.open == 1 && server->connections.times_full == 1,
	       "without a descriptor nobody comes in, and it is looked once");
	tap_ok(press_loop_turn(&server->loop, TURN_NS) == 0, "the loop sleeps meanwhile");
	say(first, "GET /f/0" HOST);
	tap_ok(!strcmp(hear(server, first, strlen(small_answer), &ended), small_answer),
	       "who is inside is served");
	say(first, "GET /f/0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	hear(server, first, ANSWER_ROOM, &ended);
	tap_ok(ended && !strcmp(hear(server, second, strlen(small_answer), &ended), small_answer),
	       "the next one comes in for who has gone");
	turns(server, 5);
	tap_ok(server->connections.open == 1, "and the one after it waits");
	setrlimit(RLIMIT_NOFILE, &limit);
	press_connections_tidy(&server->connections);
	tap_ok(!strcmp(hear(server, third, strlen(small_answer), &ended), small_answer),
	       "until there is one from elsewhere");
	close(first);
	close(second);
	close(third);
	turns(server, 5);
	tap_ok(server->connections.open == 0, "nobody is left");
}

static void check_nonsense(struct server *server)
{
	const int fd = visit(server, 0);
	bool ended;

	say(fd, "nonsense\r\n\r\nGET /f/0" HOST);
	tap_ok(!strncmp(hear(server, fd, ANSWER_ROOM, &ended), "HTTP/1.1 400 ", 13) && ended,
	       "nonsense is answered by 400, and nothing after it");
	close(fd);
	tap_ok(server->connections.open == 0, "no connection is left");
}

int main(void)
{
	static struct server server;
	int last;

	start(&server);
	check_row(&server);
	check_pipeline(&server);
	check_gone(&server);
	check_slow(&server);
	check_nonsense(&server);
	check_full(&server);
	last = visit(&server, 0);
	turns(&server, 5);
	press_connections_end(&server.connections);
	tap_ok(server.connections.open == 0, "all connections end at the end");
	close(last);
	press_loop_end(&server.loop);
	free(server.small);
	free(server.large);
	return tap_done();
}
