/* SPDX-License-Identifier: BSD-3-Clause */
#include "oob.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "oob_auth.h"
#include "text.h"
#include "watchdog.h"

#define HANDSHAKE_NS UINT64_C(1000000000)
#define RETRY_NS     UINT64_C(10000000)
#define CHUNK_BYTES  65536u

struct drv_oob {
	int fd;
	char *in; /* bytes received and not yet handed out */
	size_t in_bytes, in_room;
	json_t *pending; /* taken early by drv_oob_peek */
};

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

static int wrap(int fd, struct drv_oob **oob_out, struct drv_fail *fail)
{
	struct drv_oob *oob = calloc(1, sizeof(*oob));

	if (oob)
		oob->in = malloc(CHUNK_BYTES);
	if (!oob || !oob->in) {
		free(oob);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the out-of-band connection");
	}
	oob->in_room = CHUNK_BYTES;
	oob->fd = fd;
	*oob_out = oob;
	return 0;
}

static int pause_until(int fd, short events, uint64_t until_ns)
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
		return drv_fail_set(fail, DRV_SYSTEM, "no socket for the out-of-band channel: %s",
				    strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, 16)) {
		drv_fail_set(fail, errno == EADDRINUSE ? DRV_PORT : DRV_SYSTEM, "listening on %s failed: %s",
			     host_port, strerror(errno));
		close(fd);
		return -1;
	}
	*fd_out = fd;
	return 0;
}

/* Takes connections until one proves that it holds the token. */
static int accept_peer(const struct addrinfo *address, const char *host_port,
		       const struct drv_oob_token *token, uint64_t deadline_ns, int *fd_out,
		       struct drv_fail *fail)
{
	struct drv_fail last = {.text = "nobody came"};
	int listener = -1, fd;

	if (open_listener(address, host_port, &listener, fail))
		return -1;
	for (;;) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			if (!tune(fd, &last) &&
			    !drv_oob_auth_server(fd, token, sooner(deadline_ns, drv_now_ns() + HANDSHAKE_NS),
						 &last))
				break;
			fprintf(stderr, "cadge: out-of-band channel: %s\n", last.text);
			close(fd);
			continue;
		}
		if (drv_stop_signal) {
			drv_fail_set(fail, DRV_STOPPED,
				     "stopped by signal %d while waiting for the other endpoint",
				     (int)drv_stop_signal);
			goto failed;
		}
		if (drv_now_ns() >= deadline_ns) {
			drv_fail_set(fail, last.reason == DRV_TOKEN ? DRV_TOKEN : DRV_DEADLINE,
				     "the other endpoint did not come to %s in time (%s)", host_port,
				     last.text);
			goto failed;
		}
		if (pause_until(listener, POLLIN, deadline_ns) < 0 && errno != EINTR) {
			drv_fail_set(fail, DRV_SYSTEM, "waiting for the other endpoint failed: %s",
				     strerror(errno));
			goto failed;
		}
	}
	close(listener);
	*fd_out = fd;
	return 0;
failed:
	close(listener);
	return -1;
}

/* One try to connect. 1: connected, 0: not now, -1: never. */
static int try_connect(const struct addrinfo *address, uint64_t deadline_ns, int *fd_out,
		       struct drv_fail *fail)
{
	const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(int);
	int error = 0;

	if (fd < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "no socket for the out-of-band channel: %s",
				    strerror(errno));
	if (connect(fd, address->ai_addr, address->ai_addrlen) && errno != EINPROGRESS) {
		error = errno;
	} else {
		const uint64_t until_ns = sooner(deadline_ns, drv_now_ns() + HANDSHAKE_NS);
		int ready = 0;

		while (ready == 0 && drv_now_ns() < until_ns && !drv_stop_signal)
			ready = pause_until(fd, POLLOUT, until_ns);
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

static int connect_peer(const struct addrinfo *address, const char *host_port,
			const struct drv_oob_token *token, uint64_t deadline_ns, int *fd_out,
			struct drv_fail *fail)
{
	struct drv_fail last = {.text = "not tried"};

	for (;;) {
		const struct timespec pause = {.tv_nsec = (long)RETRY_NS};
		int fd = -1;
		const int status = try_connect(address, deadline_ns, &fd, &last);

		if (status > 0) {
			if (!tune(fd, &last) && !drv_oob_auth_client(fd, token, deadline_ns, &last)) {
				*fd_out = fd;
				return 0;
			}
			close(fd);
		}
		/* a connection that was closed on us may have met a listener that was just going; all else is
		 * final */
		if (status < 0 || (status > 0 && last.reason != DRV_PEER_LOST)) {
			*fail = last;
			return -1;
		}
		if (drv_stop_signal)
			return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d while connecting",
					    (int)drv_stop_signal);
		if (drv_now_ns() >= deadline_ns)
			return drv_fail_set(fail, DRV_DEADLINE,
					    "the other endpoint at %s could not be reached: %s", host_port,
					    last.text);
		nanosleep(&pause, NULL);
	}
}

int drv_oob_open(int endpoint, const char *host_port, const struct drv_oob_token *token, uint64_t deadline_ns,
		 struct drv_oob **oob_out, struct drv_fail *fail)
{
	struct addrinfo *list;
	int status, fd = -1;

	if (resolve(host_port, &list, fail))
		return -1;
	if (endpoint == 1)
		status = accept_peer(list, host_port, token, deadline_ns, &fd, fail);
	else
		status = connect_peer(list, host_port, token, deadline_ns, &fd, fail);
	freeaddrinfo(list);
	if (status)
		return -1;
	if (wrap(fd, oob_out, fail)) {
		close(fd);
		return -1;
	}
	return 0;
}

void drv_oob_close(struct drv_oob *oob)
{
	if (!oob)
		return;
	close(oob->fd);
	json_decref(oob->pending);
	free(oob->in);
	free(oob);
}

int drv_oob_send(struct drv_oob *oob, const json_t *message, uint64_t deadline_ns, struct drv_fail *fail)
{
	char *text = json_dumps(message, JSON_COMPACT);
	const size_t bytes = text ? strlen(text) : 0;
	char *frame = text ? malloc(4 + bytes) : NULL;
	int status;

	if (!frame || bytes > DRV_OOB_FRAME_MAX) {
		free(text);
		free(frame);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	}
	for (int i = 0; i < 4; i++)
		frame[i] = (char)(bytes >> (8 * i) & 0xff);
	memcpy(frame + 4, text, bytes);
	status = drv_oob_write_all(oob->fd, frame, 4 + bytes, deadline_ns, fail);
	free(frame);
	free(text);
	return status;
}

/* Takes one whole frame from the buffer: 1, or 0 when it is not there yet, or -1. */
static int take_frame(struct drv_oob *oob, json_t **message_out, struct drv_fail *fail)
{
	uint32_t bytes = 0;
	json_error_t error;
	json_t *message;

	if (oob->in_bytes < 4)
		return 0;
	for (int i = 0; i < 4; i++)
		bytes |= (uint32_t)(unsigned char)oob->in[i] << (8 * i);
	if (bytes < 2 || bytes > DRV_OOB_FRAME_MAX)
		return drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint sent a frame of %u bytes", bytes);
	if (oob->in_room < 4 + (size_t)bytes) {
		char *larger = realloc(oob->in, 4 + (size_t)bytes);

		if (!larger)
			return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
		oob->in = larger;
		oob->in_room = 4 + (size_t)bytes;
	}
	if (oob->in_bytes < 4 + (size_t)bytes)
		return 0;
	message = json_loadb(oob->in + 4, bytes, JSON_REJECT_DUPLICATES, &error);
	oob->in_bytes -= 4 + (size_t)bytes;
	memmove(oob->in, oob->in + 4 + bytes, oob->in_bytes);
	if (!json_is_string(json_object_get(message, "m"))) {
		json_decref(message);
		return drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint sent a frame that is no message");
	}
	*message_out = message;
	return 1;
}

/* An abort becomes the reason that it carries. */
static int check_abort(json_t *message, struct drv_fail *fail)
{
	const char *text;

	if (strcmp(json_string_value(json_object_get(message, "m")), "abort") != 0)
		return 0;
	text = json_string_value(json_object_get(message, "text"));
	drv_fail_set(fail, drv_reason_from_name(json_string_value(json_object_get(message, "reason"))),
		     "the other endpoint stopped: %s", text ? text : "no reason given");
	json_decref(message);
	return -1;
}

int drv_oob_try(struct drv_oob *oob, json_t **message_out, struct drv_fail *fail)
{
	json_t *message;
	ssize_t count;
	int status;

	if (oob->pending) {
		*message_out = oob->pending;
		oob->pending = NULL;
		return 1;
	}
	for (;;) {
		status = take_frame(oob, &message, fail);
		if (status < 0)
			return -1;
		if (status > 0) {
			if (check_abort(message, fail))
				return -1;
			*message_out = message;
			return 1;
		}
		count = recv(oob->fd, oob->in + oob->in_bytes, oob->in_room - oob->in_bytes, MSG_DONTWAIT);
		if (count > 0)
			oob->in_bytes += (size_t)count;
		else if (count == 0)
			return drv_fail_set(fail, DRV_PEER_LOST, "the other endpoint closed the connection");
		else if (errno == EAGAIN || errno == EINTR)
			return 0;
		else
			return drv_fail_set(fail, DRV_PEER_LOST, "the other endpoint is gone: %s",
					    strerror(errno));
	}
}

int drv_oob_peek(struct drv_oob *oob, struct drv_fail *fail)
{
	if (oob->pending)
		return 0;
	return drv_oob_try(oob, &oob->pending, fail) < 0 ? -1 : 0;
}

int drv_oob_receive(struct drv_oob *oob, const struct drv_idle *idle, uint64_t deadline_ns,
		    json_t **message_out, struct drv_fail *fail)
{
	for (;;) {
		const int status = drv_oob_try(oob, message_out, fail);

		if (status)
			return status < 0 ? -1 : 0;
		if (drv_stop_signal)
			return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
		if (drv_now_ns() >= deadline_ns)
			return drv_fail_set(fail, DRV_DEADLINE, "the other endpoint did not answer in time");
		if (idle) {
			if (idle->step(idle->arg, fail) < 0)
				return -1;
		} else if (pause_until(oob->fd, POLLIN, deadline_ns) < 0 && errno != EINTR) {
			return drv_fail_set(fail, DRV_SYSTEM, "waiting for the other endpoint failed: %s",
					    strerror(errno));
		}
	}
}

int drv_oob_expect(struct drv_oob *oob, const char *name, const struct drv_idle *idle, uint64_t deadline_ns,
		   json_t **message_out, struct drv_fail *fail)
{
	json_t *message;
	const char *got;

	if (drv_oob_receive(oob, idle, deadline_ns, &message, fail))
		return -1;
	got = json_string_value(json_object_get(message, "m"));
	if (strcmp(got, name) != 0) {
		drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint sent \"%s\" where \"%s\" was due", got,
			     name);
		json_decref(message);
		return -1;
	}
	*message_out = message;
	return 0;
}

int drv_oob_exchange(struct drv_oob *oob, const char *name, const json_t *mine, const struct drv_idle *idle,
		     uint64_t deadline_ns, json_t **theirs_out, struct drv_fail *fail)
{
	if (drv_oob_send(oob, mine, deadline_ns, fail))
		return -1;
	return drv_oob_expect(oob, name, idle, deadline_ns, theirs_out, fail);
}

int drv_oob_barrier(struct drv_oob *oob, const char *name, const struct drv_idle *idle, uint64_t deadline_ns,
		    struct drv_fail *fail)
{
	json_t *mine = json_pack("{s:s}", "m", name);
	json_t *theirs;
	int status;

	if (!mine)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	status = drv_oob_exchange(oob, name, mine, idle, deadline_ns, &theirs, fail);
	json_decref(mine);
	if (!status)
		json_decref(theirs);
	return status;
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

int drv_oob_hello(struct drv_oob *oob, const json_t *mine, uint64_t deadline_ns, json_t **theirs_out,
		  struct drv_fail *fail)
{
	static const char *const equal[] = {"abi", "schema", "version", "revision", "launch"};
	char ours[100], others[100];
	json_t *theirs;

	if (drv_oob_exchange(oob, "hello", mine, NULL, deadline_ns, &theirs, fail))
		return -1;
	for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++) {
		show_member(mine, equal[i], ours, sizeof(ours));
		show_member(theirs, equal[i], others, sizeof(others));
		if (!strcmp(ours, others))
			continue;
		json_decref(theirs);
		return drv_fail_set(fail, strcmp(equal[i], "launch") ? DRV_VERSION_MISMATCH : DRV_PROTOCOL,
				    "the endpoints differ in %s: %s here, %s there", equal[i], ours, others);
	}
	*theirs_out = theirs;
	return 0;
}

void drv_oob_abort(struct drv_oob *oob, enum drv_reason reason, const char *text)
{
	struct drv_fail ignored;
	json_t *message;

	if (!oob)
		return;
	message = json_pack("{s:s, s:s, s:o}", "m", "abort", "reason", drv_reason_name(reason), "text",
			    drv_json_text(text));
	if (message && drv_oob_send(oob, message, drv_now_ns() + UINT64_C(100000000), &ignored))
		fprintf(stderr, "cadge: the other endpoint could not be told: %s\n", ignored.text);
	json_decref(message);
}
