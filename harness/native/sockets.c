/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a plain program reaches over the kernel's sockets, with send(2) and recv(2) alone: the yardstick beside sockets-*.
 *
 *	native-sockets KIND TEST HOW BYTES WINDOW COUNT listen|connect ADDRESS PORT
 *
 * KIND: tcp (TCP_NODELAY), udp (echo alone), unix (a stream; its name is cadge-native-PORT).
 * TEST: echo (the client prints the median round trip in ns), window (WINDOW messages, then one byte back), oneway
 * (the same, with one byte back at the end); both print messages a second. HOW: poll (recv never sleeps) or sleep.
 * A tenth more of everything is sent before it is timed. It ends after 10 s, whatever happens.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "timed.h"

enum { LONGEST_S = 10, TAKEN_BYTES = 65536 /* by one recv, at most, of a stream */ };

static int recv_flags; /* MSG_DONTWAIT: poll */

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void send_whole(int fd, const char *from, size_t bytes)
{
	for (ssize_t sent; bytes; from += sent, bytes -= (size_t)sent)
		if ((sent = send(fd, from, bytes, 0)) < 0)
			fail("send");
}

/* Takes in `bytes` bytes, at most `room` at a time, each time to the same place. */
static void recv_whole(int fd, char *to, size_t bytes, size_t room)
{
	while (bytes) {
		const ssize_t came = recv(fd, to, bytes < room ? bytes : room, recv_flags);

		if (came == 0 || (came < 0 && errno != EAGAIN))
			fail("recv");
		bytes -= came < 0 ? 0 : (size_t)came;
	}
}

static double echo(int fd, int begins, char *buffer, size_t bytes, long count)
{
	double *taken_ns = calloc((size_t)count, sizeof(*taken_ns));

	for (long i = -count / 10; taken_ns && i < count; i++) {
		const double began_ns = now_ns();

		if (begins)
			send_whole(fd, buffer, bytes);
		recv_whole(fd, buffer, bytes, bytes);
		if (!begins)
			send_whole(fd, buffer, bytes);
		if (i >= 0)
			taken_ns[i] = now_ns() - began_ns;
	}
	if (!taken_ns)
		fail("calloc");
	return median_of(taken_ns, count);
}

static void push(int fd, int sends, char *buffer, size_t bytes, long window, long windows, int answers)
{
	for (long i = 0; i < windows; i++) {
		const int answered = answers || i == windows - 1;

		for (long j = 0; sends && j < window; j++)
			send_whole(fd, buffer, bytes);
		if (sends && answered)
			recv_whole(fd, buffer, 1, 1);
		if (!sends)
			recv_whole(fd, buffer, bytes * (size_t)window, TAKEN_BYTES);
		if (!sends && answered)
			send_whole(fd, buffer, 1);
	}
}

static int meet(const char *kind, int listens, const char *address, const char *port)
{
	const int is_unix = !strcmp(kind, "unix"), is_udp = !strcmp(kind, "udp"), one = 1;
	const struct addrinfo hints = {.ai_socktype = is_udp ? SOCK_DGRAM : SOCK_STREAM};
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct addrinfo *ip = NULL;
	struct sockaddr_storage from;
	const int name_bytes =
		snprintf(path.sun_path + 1, sizeof(path.sun_path) - 1, "cadge-native-%s", port);
	socklen_t bytes = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)name_bytes;
	const struct sockaddr *at;
	int fd;

	if (!is_unix && getaddrinfo(address, port, &hints, &ip))
		fail("an IP address and a port");
	at = ip ? ip->ai_addr : (const void *)&path;
	bytes = ip ? ip->ai_addrlen : bytes;
	fd = socket(at->sa_family, is_udp ? SOCK_DGRAM : SOCK_STREAM, 0);
	if ((listens ? bind(fd, at, bytes) : connect(fd, at, bytes)) || (listens && !is_udp && listen(fd, 1)))
		fail(address);
	bytes = sizeof(from);
	/* the first datagram says where the client is, and stays for the test */
	if (listens && is_udp &&
	    (recvfrom(fd, &from, 0, MSG_PEEK, (struct sockaddr *)&from, &bytes) < 0 ||
	     connect(fd, (struct sockaddr *)&from, bytes)))
		fail("recvfrom");
	if (listens && !is_udp && (fd = accept(fd, NULL, NULL)) < 0)
		fail("accept");
	if (!is_unix && !is_udp && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		fail("TCP_NODELAY");
	return fd;
}

int main(int argc, char **argv)
{
	const long bytes = argc == 10 ? atol(argv[4]) : 0, window = argc == 10 ? atol(argv[5]) : 0;
	const long count = argc == 10 ? atol(argv[6]) : 0, windows = window > 0 ? count / window + 1 : 0;
	const int listens = argc == 10 && !strcmp(argv[7], "listen");
	char *buffer = calloc(1, bytes > TAKEN_BYTES ? (size_t)bytes : TAKEN_BYTES);
	double value;
	int fd;

	if (!buffer || bytes < 1 || window < 1 || count < 1) {
		fprintf(stderr,
			"usage: native-sockets tcp|udp|unix echo|window|oneway poll|sleep BYTES WINDOW "
			"COUNT listen|connect ADDRESS PORT\n");
		return 2;
	}
	alarm(LONGEST_S);
	recv_flags = strcmp(argv[3], "poll") ? 0 : MSG_DONTWAIT;
	fd = meet(argv[1], listens, argv[8], argv[9]);
	if (!strcmp(argv[2], "echo")) {
		value = echo(fd, !listens, buffer, (size_t)bytes, count);
	} else {
		push(fd, !listens, buffer, (size_t)bytes, window, windows / 10 + 1, *argv[2] == 'w');
		value = now_ns();
		push(fd, !listens, buffer, (size_t)bytes, window, windows, *argv[2] == 'w');
		value = (double)(windows * window) / ((now_ns() - value) / 1e9);
	}
	return listens ? 0 : printf("%.6g\n", value) < 0;
}
