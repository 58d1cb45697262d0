/* SPDX-License-Identifier: BSD-3-Clause */
/* How the endpoints of a launch find each other: listening, connecting, the proof of the token, hello. */
#include "oob/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure/clock.h"
#include "base/text.h"
#include "launch/watchdog.h"

#define HANDSHAKE_NS UINT64_C(1000000000)
#define RETRY_NS     UINT64_C(10000000)
#define REFUSAL_NS   UINT64_C(100000000)

enum { PENDING_MAX = 64 };

static uint64_t sooner(uint64_t left_ns, uint64_t right_ns)
{
	return left_ns < right_ns ? left_ns : right_ns;
}

/* Small messages leave at once; a host that vanished without a word is noticed within about two seconds. */
static int tune(int fd, struct drv_fail *fail)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},  {SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 1}, {IPPROTO_TCP, TCP_KEEPINTVL, 1},
		{IPPROTO_TCP, TCP_KEEPCNT, 1},  {IPPROTO_TCP, TCP_USER_TIMEOUT, 1500},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (setsockopt(fd, options[i].level, options[i].option, &options[i].value,
			       sizeof(options[i].value)))
			return drv_fail_set(fail, DRV_SYSTEM,
					    "setting up the out-of-band connection failed: %s",
					    strerror(errno));
	return 0;
}

/* "HOST:PORT" or "[v6]:PORT" to an address list, which the caller frees. */
static int resolve(const char *host_port, struct addrinfo **list_out, struct drv_fail *fail)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	const char *colon = strrchr(host_port, ':');
	char host[256];
	size_t host_bytes;
	int status;

	if (!colon || colon == host_port || !colon[1])
		return drv_fail_set(fail, DRV_ARGUMENT, "--oob %s: must be HOST:PORT", host_port);
	host_bytes = (size_t)(colon - host_port);
	if (host_port[0] == '[' && colon[-1] == ']') {
		host_port++;
		host_bytes -= 2;
	}
	if (host_bytes == 0 || host_bytes >= sizeof(host))
		return drv_fail_set(fail, DRV_ARGUMENT, "--oob: must be HOST:PORT");
	memcpy(host, host_port, host_bytes);
	host[host_bytes] = '\0';
	status = getaddrinfo(host, colon + 1, &hints, list_out);
	if (status)
		return drv_fail_set(fail, DRV_ARGUMENT, "--oob %s: %s", host, gai_strerror(status));
	return 0;
}

int drv_rendezvous_pause(int fd, short events, uint64_t until_ns)
{
	struct pollfd entry = {.fd = fd, .events = events};
	const uint64_t now_ns = drv_now_ns();
	const uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 + 1 : 0;

	return poll(&entry, 1, left_ms > 100 ? 100 : (int)left_ms);
}

static int open_listener(const struct addrinfo *address, const char *host_port, int *fd_out,
			 struct drv_fail *fail)
{
	const int yes = 1;
	const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return drv_fail_set(fail, DRV_SYSTEM,
				    "cannot create a socket for the out-of-band channel: %s",
				    strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, 128)) {
		drv_fail_set(fail, errno == EADDRINUSE ? DRV_PORT : DRV_SYSTEM, "listening on %s failed: %s",
			     host_port, strerror(errno));
		close(fd);
		return -1;
	}
	*fd_out = fd;
	return 0;
}

/* Text of a member for comparison and for people: strings as they are, numbers printed. */
static void show_member(const json_t *object, const char *key, char *out, size_t out_bytes)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_string(value))
		snprintf(out, out_bytes, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(out, out_bytes, "%lld", (long long)json_integer_value(value));
	else
		snprintf(out, out_bytes, "nothing");
}

/* Whether two endpoints are the same build with the same launch. */
static int compare_hellos(const json_t *mine, const json_t *theirs, int endpoint, struct drv_fail *fail)
{
	static const char *const equal[] = {"abi", "schema", "version", "revision", "launch"};
	char ours[100], others[100];

	for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++) {
		show_member(mine, equal[i], ours, sizeof(ours));
		show_member(theirs, equal[i], others, sizeof(others));
		if (strcmp(ours, others) != 0)
			return drv_fail_set(fail,
					    strcmp(equal[i], "launch") ? DRV_VERSION_MISMATCH : DRV_PROTOCOL,
					    "the endpoints differ in %s: %s at endpoint 0, %s at endpoint %d",
					    equal[i], ours, others, endpoint);
	}
	return 0;
}

/* Waits for one message on one connection. */
static int await_message(struct drv_link *link, const char *name, uint64_t deadline_ns, json_t **message_out,
			 struct drv_fail *fail)
{
	for (;;) {
		/* what was said before the connection ended counts */
		const int status = drv_link_pump(link, fail);
		json_t *message = drv_link_take(link);

		if (message && !strcmp(json_string_value(json_object_get(message, "m")), name)) {
			*message_out = message;
			return 0;
		}
		if (message) {
			json_decref(message);
			return drv_fail_set(fail, DRV_PROTOCOL, "a connection sent something other than %s",
					    name);
		}
		if (status)
			return -1;
		if (drv_stop_signal)
			return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d while meeting",
					    (int)drv_stop_signal);
		if (drv_now_ns() >= deadline_ns)
			return drv_fail_set(fail, DRV_DEADLINE, "not all endpoints connected in time");
		if (drv_rendezvous_pause(link->fd, POLLIN, deadline_ns) < 0 && errno != EINTR)
			return drv_fail_set(fail, DRV_SYSTEM, "waiting for another endpoint failed: %s",
					    strerror(errno));
	}
}

/* Tells the other end why it is not wanted, and closes. */
static void reject(struct drv_link *link, const struct drv_fail *why)
{
	json_t *message =
		json_pack("{s:s, s:s, s:o, s:b}", "m", "abort", "reason", drv_reason_name(why->reason),
			  "text", drv_json_text(why->text), "relayed", 1);
	struct drv_fail ignored;

	if (message && drv_link_send(link, message, drv_now_ns() + REFUSAL_NS, &ignored))
		fprintf(stderr, "cadge: cannot tell a refused endpoint why: %s\n", ignored.text);
	json_decref(message);
	drv_link_close(link);
}

/*
 * No connection was taken. 0: nobody is there, or went away again. -1: somebody is, and this process cannot take anybody:
 * looking again would only spin until the deadline, which says nothing of that.
 */
static int not_taken(int listener, int error, struct drv_fail *fail)
{
	/* it says so without anybody there as well */
	if (!drv_errno_exhausted(error) || drv_rendezvous_pause(listener, POLLIN, 0) <= 0)
		return 0;
	return drv_fail_set(fail, DRV_SYSTEM, "cannot take the connection of another endpoint: %s",
			    strerror(error));
}

/* Connections that have proved nothing yet, the oldest first. */
struct pending {
	int listener, count;
	struct drv_oob_greeting list[PENDING_MAX];
};

static void forget(struct pending *pending, int place)
{
	pending->count--;
	memmove(&pending->list[place], &pending->list[place + 1],
		(size_t)(pending->count - place) * sizeof(pending->list[0]));
}

/* Takes all connections that are there. Where there are many the oldest goes: an endpoint is done in no time. */
static int accept_pending(struct pending *pending, uint64_t deadline_ns, struct drv_fail *last,
			  struct drv_fail *fail)
{
	for (;;) {
		const int fd = accept4(pending->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return not_taken(pending->listener, errno, fail);
		if (tune(fd, last)) {
			close(fd);
			continue;
		}
		if (pending->count == PENDING_MAX) {
			close(pending->list[0].fd);
			forget(pending, 0);
		}
		pending->list[pending->count++] = (struct drv_oob_greeting){
			.fd = fd, .until_ns = sooner(deadline_ns, drv_now_ns() + HANDSHAKE_NS)};
	}
}

/*
 * Lets in who has proved to hold the token. 1: an endpoint came in; 0: somebody who does not belong here; -1: an endpoint
 * of ours that cannot take part.
 */
static int admit(const struct drv_oob_greeting *greeting, struct drv_link *links, int endpoints,
		 const json_t *hello, struct drv_fail *last, struct drv_fail *fail)
{
	struct drv_link link = {.fd = greeting->fd};
	json_t *theirs = NULL;
	json_int_t number;

	if (drv_link_start(&link, link.fd, -1, last) ||
	    await_message(&link, "hello", greeting->until_ns, &theirs, last)) {
		fprintf(stderr, "cadge: out-of-band channel: %s\n", last->text);
		drv_link_close(&link);
		return 0;
	}
	number = json_is_integer(json_object_get(theirs, "endpoint"))
			 ? json_integer_value(json_object_get(theirs, "endpoint"))
			 : -1;
	if (compare_hellos(hello, theirs, (int)number, fail)) {
		json_decref(theirs);
		reject(&link, fail);
		return -1;
	}
	json_decref(theirs);
	if (number < 1 || number >= endpoints || links[number - 1].fd >= 0) {
		drv_fail_set(last, DRV_PROTOCOL, "endpoint %d is already connected, or not of this launch",
			     (int)number);
		fprintf(stderr, "cadge: out-of-band channel: %s\n", last->text);
		reject(&link, last);
		return 0;
	}
	link.endpoint = (int)number;
	links[number - 1] = link;
	return 1;
}

/* Goes on with all that have something to say. Returns how many endpoints came in, or -1 as `admit`. */
static int read_hellos(struct pending *pending, struct drv_link *links, int endpoints,
		       const struct drv_oob_token *token, const json_t *hello, struct drv_fail *last,
		       struct drv_fail *fail)
{
	int came = 0, place = 0;

	while (place < pending->count) {
		struct drv_oob_greeting greeting;
		int status = drv_oob_greet(&pending->list[place], token, last);

		if (status == 0) {
			place++;
			continue;
		}
		greeting = pending->list[place];
		forget(pending, place);
		if (status < 0) {
			fprintf(stderr, "cadge: out-of-band channel: %s\n", last->text);
			close(greeting.fd);
			continue;
		}
		status = admit(&greeting, links, endpoints, hello, last, fail);
		if (status < 0)
			return -1;
		came += status;
	}
	return came;
}

/* Sleeps until somebody connects or says something, at most 100 ms: then who says nothing may have to go. */
static int await_pending(const struct pending *pending)
{
	struct pollfd entries[1 + PENDING_MAX] = {{.fd = pending->listener, .events = POLLIN}};

	for (int i = 0; i < pending->count; i++)
		entries[1 + i] = (struct pollfd){.fd = pending->list[i].fd, .events = POLLIN};
	return poll(entries, 1 + (nfds_t)pending->count, 100);
}

/* The lowest number that is missing. */
static int missing(const struct drv_link *links, int endpoints)
{
	int number = 1;

	while (number < endpoints && links[number - 1].fd >= 0)
		number++;
	return number;
}

static int take_all(struct pending *pending, struct drv_link *links, int endpoints, const char *host_port,
		    const struct drv_oob_token *token, const json_t *hello, uint64_t deadline_ns,
		    struct drv_fail *fail)
{
	struct drv_fail last = {.text = "no connection yet"};
	int came = 0;

	while (came < endpoints - 1) {
		int status = accept_pending(pending, deadline_ns, &last, fail);

		if (!status)
			status = read_hellos(pending, links, endpoints, token, hello, &last, fail);
		if (status < 0)
			return -1;
		came += status;
		if (status > 0)
			continue;
		if (drv_stop_signal)
			return drv_fail_set(fail, DRV_STOPPED,
					    "stopped by signal %d while waiting for other endpoints",
					    (int)drv_stop_signal);
		if (drv_now_ns() >= deadline_ns)
			return drv_fail_set(fail, last.reason == DRV_TOKEN ? DRV_TOKEN : DRV_DEADLINE,
					    "endpoint %d did not connect to %s in time (%s)",
					    missing(links, endpoints), host_port, last.text);
		if (await_pending(pending) < 0 && errno != EINTR)
			return drv_fail_set(fail, DRV_SYSTEM, "waiting for other endpoints failed: %s",
					    strerror(errno));
	}
	return 0;
}

int drv_rendezvous_listen(struct drv_link *links, int endpoints, const char *host_port,
			  const struct drv_oob_token *token, const json_t *hello, uint64_t deadline_ns,
			  struct drv_fail *fail)
{
	struct pending pending = {.listener = -1};
	struct addrinfo *list;
	int status;

	for (int i = 0; i < endpoints - 1; i++)
		links[i].fd = -1;
	if (resolve(host_port, &list, fail))
		return -1;
	status = open_listener(list, host_port, &pending.listener, fail);
	freeaddrinfo(list);
	if (status)
		return -1;
	status = take_all(&pending, links, endpoints, host_port, token, hello, deadline_ns, fail);
	close(pending.listener);
	for (int i = 0; i < pending.count; i++)
		close(pending.list[i].fd);
	/* all are there: each is told, and begins */
	for (int i = 0; !status && i < endpoints - 1; i++)
		status = drv_link_send(&links[i], hello, deadline_ns, fail);
	for (int i = 0; status && i < endpoints - 1; i++)
		if (links[i].fd >= 0)
			reject(&links[i], fail);
	return status;
}

/* One try to connect. 1: connected, 0: not now, -1: never. */
static int try_connect(const struct addrinfo *address, uint64_t deadline_ns, int *fd_out,
		       struct drv_fail *fail)
{
	const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(int);
	int error = 0;

	if (fd < 0)
		return drv_fail_set(fail, DRV_SYSTEM,
				    "cannot create a socket for the out-of-band channel: %s",
				    strerror(errno));
	if (connect(fd, address->ai_addr, address->ai_addrlen) && errno != EINPROGRESS) {
		error = errno;
	} else {
		const uint64_t until_ns = sooner(deadline_ns, drv_now_ns() + HANDSHAKE_NS);
		int ready = 0;

		while (ready == 0 && drv_now_ns() < until_ns && !drv_stop_signal)
			ready = drv_rendezvous_pause(fd, POLLOUT, until_ns);
		if (ready <= 0)
			error = ETIMEDOUT;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
			error = errno;
	}
	if (!error) {
		*fd_out = fd;
		return 1;
	}
	close(fd);
	drv_fail_set(fail, DRV_DEADLINE, "%s", strerror(error));
	return 0;
}

/* One connection to endpoint 0, from the proof to the word that all are there. */
static int join(struct drv_link *link, int fd, const struct drv_oob_token *token, const json_t *hello,
		uint64_t deadline_ns, struct drv_fail *fail)
{
	json_t *theirs;
	int status;

	if (tune(fd, fail) || drv_oob_auth_client(fd, token, deadline_ns, fail)) {
		close(fd);
		return -1;
	}
	if (drv_link_start(link, fd, 0, fail))
		return -1;
	status = drv_link_send(link, hello, deadline_ns, fail);
	if (!status)
		status = await_message(link, "hello", deadline_ns, &theirs, fail);
	if (!status)
		json_decref(theirs);
	else
		drv_link_close(link);
	return status;
}

int drv_rendezvous_join(struct drv_link *link, int endpoint, const char *host_port,
			const struct drv_oob_token *token, const json_t *hello, uint64_t deadline_ns,
			struct drv_fail *fail)
{
	struct drv_fail last = {.text = "not tried"};
	struct addrinfo *list;
	int result = 1;

	if (resolve(host_port, &list, fail))
		return -1;
	while (result > 0) {
		const struct timespec pause = {.tv_nsec = (long)RETRY_NS};
		int fd = -1;
		const int status = try_connect(list, deadline_ns, &fd, &last);

		if (status > 0 && !join(link, fd, token, hello, deadline_ns, &last)) {
			result = 0;
		} else if (status < 0 || (status > 0 && last.reason != DRV_PEER_LOST)) {
			/* a connection that was closed on us may have met a listener that was just going; all else is final */
			*fail = last;
			result = -1;
		} else if (drv_stop_signal) {
			result = drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d while connecting",
					      (int)drv_stop_signal);
		} else if (drv_now_ns() >= deadline_ns) {
			result = drv_fail_set(fail, DRV_DEADLINE, "endpoint 0 at %s could not be reached: %s",
					      host_port, last.text);
		} else {
			nanosleep(&pause, NULL);
		}
	}
	(void)endpoint;
	freeaddrinfo(list);
	return result;
}
