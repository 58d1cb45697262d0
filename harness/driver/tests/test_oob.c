/* SPDX-License-Identifier: BSD-3-Clause */
/* The out-of-band channel: who gets in, what is agreed, and how soon its end is noticed. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/clock.h"
#include "oob/oob.h"
#include "tap.h"

#define SECOND UINT64_C(1000000000)

static const struct drv_oob_token token = {"0123456789abcdef", 16}, other_token = {"fedcba9876543210", 16};
static char here[32];

/* A port that was free a moment ago. */
static void choose_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		exit(77);
	close(fd);
	snprintf(here, sizeof(here), "127.0.0.1:%d", ntohs(address.sin_port));
}

static int plain_connect(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const uint64_t until_ns = drv_now_ns() + 3 * SECOND;

	address.sin_port = htons((uint16_t)atoi(strchr(here, ':') + 1));
	for (;;) {
		const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)))
			return fd;
		close(fd);
		if (drv_now_ns() > until_ns)
			exit(1);
		usleep(1000);
	}
}

/* Runs `body` as endpoint 0 in a child; its exit status is read by end_child. */
static pid_t start_child(int (*body)(void))
{
	const pid_t child = fork();

	if (child < 0)
		exit(77);
	if (child == 0)
		_exit(body());
	return child;
}

static int end_child(pid_t child)
{
	int state;

	if (waitpid(child, &state, 0) != child)
		return -1;
	return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* What an endpoint says of itself; kept until the program ends. */
static json_t *hello_of(const char *revision, const char *launch)
{
	static json_t *facts;

	json_decref(facts);
	facts = json_pack("{s:s, s:i, s:s, s:s, s:s}", "version", "1", "abi", 1, "schema", "s", "revision",
			  revision, "launch", launch);
	return facts;
}

static struct drv_oob *open_zero(int endpoints, uint64_t limit_ns, struct drv_fail *fail)
{
	struct drv_oob *oob = NULL;

	return drv_oob_open(0, endpoints, here, &token, hello_of("r", "l"), drv_now_ns() + limit_ns, &oob,
			    fail)
		       ? NULL
		       : oob;
}

static struct drv_oob *open_other(int endpoint, int endpoints, uint64_t limit_ns, struct drv_fail *fail)
{
	struct drv_oob *oob = NULL;

	return drv_oob_open(endpoint, endpoints, here, &token, hello_of("r", "l"), drv_now_ns() + limit_ns,
			    &oob, fail)
		       ? NULL
		       : oob;
}

/* --- the other ends: exit status 0 when all went as it should --- */

static int good_client(void)
{
	struct drv_fail fail;
	struct drv_oob *oob = open_other(1, 2, 5 * SECOND, &fail);
	json_t *message;
	int status;

	if (!oob || drv_oob_barrier(oob, "one", NULL, drv_now_ns() + SECOND, &fail) ||
	    drv_oob_expect(oob, 0, "large", NULL, drv_now_ns() + 5 * SECOND, &message, &fail))
		return 1;
	status = json_string_length(json_object_get(message, "text")) == 3000000 ? 0 : 2;
	if (drv_oob_send(oob, 0, message, drv_now_ns() + SECOND, &fail))
		return 3;
	json_decref(message);
	drv_oob_abort(oob, DRV_TRANSPORT, "enough");
	drv_oob_close(oob);
	return status;
}

static int wrong_token_client(void)
{
	struct drv_oob *oob;
	struct drv_fail fail = {0};

	return drv_oob_open(1, 2, here, &other_token, hello_of("r", "l"), drv_now_ns() + 3 * SECOND, &oob,
			    &fail) &&
			       fail.reason == DRV_TOKEN
		       ? 0
		       : 1;
}

static int other_revision_client(void)
{
	struct drv_oob *oob;
	struct drv_fail fail = {0};

	return drv_oob_open(1, 2, here, &token, hello_of("r2", "l"), drv_now_ns() + 3 * SECOND, &oob,
			    &fail) &&
			       fail.reason == DRV_VERSION_MISMATCH
		       ? 0
		       : 1;
}

static int other_launch_client(void)
{
	struct drv_oob *oob;
	struct drv_fail fail = {0};

	return drv_oob_open(1, 2, here, &token, hello_of("r", "l2"), drv_now_ns() + 3 * SECOND, &oob,
			    &fail) &&
			       fail.reason == DRV_PROTOCOL
		       ? 0
		       : 1;
}

/* Strangers first, and they must not keep the right one out. */
static int garbage_then_good_client(void)
{
	static const char garbage[] =
		"GET / HTTP/1.0\r\n\r\n and a little more than a greeting of ours takes";
	struct drv_oob *oob;
	struct drv_fail fail;
	int fd = plain_connect();

	if (write(fd, garbage, sizeof(garbage)) < 0)
		return 2;
	close(fd);
	fd = plain_connect(); /* says nothing at all, and stays */
	oob = open_other(1, 2, 5 * SECOND, &fail);
	if (!oob)
		return 3;
	close(fd);
	drv_oob_close(oob);
	return 0;
}

/* Each of a hundred strangers would be waited for, one after the other; every other one has begun to speak. */
static int silent_strangers_then_good_client(void)
{
	int fds[100];
	struct drv_oob *oob;
	struct drv_fail fail;

	for (int i = 0; i < 100; i++) {
		fds[i] = plain_connect();
		if (i % 2 && write(fds[i], "CADGEOB1 and no more", 20) < 0)
			return 2;
	}
	oob = open_other(1, 2, 5 * SECOND, &fail);
	if (!oob)
		return 3;
	for (int i = 0; i < 100; i++)
		close(fds[i]);
	drv_oob_close(oob);
	return 0;
}

/* After the proof, each child misbehaves in its own way on the raw connection. */
static int frame_client(const char *bytes, size_t count)
{
	struct drv_fail fail;
	struct drv_oob *oob = open_other(1, 2, 5 * SECOND, &fail);
	DIR *folder;
	int fd = -1;

	if (!oob)
		return 1;
	/* the connection is the one socket of this process */
	folder = opendir("/proc/self/fd");
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		struct stat facts;
		const int candidate = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && !fstat(candidate, &facts) && S_ISSOCK(facts.st_mode))
			fd = candidate;
	}
	if (folder)
		closedir(folder);
	if (fd < 0 || send(fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count)
		return 2;
	usleep(300000);
	drv_oob_close(oob);
	return 0;
}

static int huge_frame_client(void)
{
	return frame_client("\xff\xff\xff\xff....", 8);
}

static int no_json_client(void)
{
	return frame_client("\x04\0\0\0{{{{", 8);
}

static int no_message_client(void)
{
	return frame_client("\x07\0\0\0[1,2,3]", 11);
}

static int silent_client(void)
{
	return frame_client("\x20\0\0\0{", 5);
}

static int dying_client(void)
{
	struct drv_fail fail;

	if (!open_other(1, 2, 5 * SECOND, &fail))
		return 1;
	usleep(100000);
	return raise(SIGKILL);
}

static int waiting_client(void)
{
	const int fd = plain_connect();
	char byte;

	return read(fd, &byte, 1) < 0 && errno != ECONNRESET;
}

/* --- this end --- */

static void test_talk(void)
{
	struct drv_fail fail = {0};
	const pid_t child = start_child(good_client);
	struct drv_oob *oob = open_zero(2, 5 * SECOND, &fail);
	json_t *message = NULL, *large;
	char *text = malloc(3000001);

	if (!tap_ok(oob != NULL, "both prove that they hold the token") || !text)
		return;
	memset(text, 'x', 3000000);
	text[3000000] = '\0';
	usleep(20000);
	tap_ok(drv_oob_peek(oob, &fail) == 0 && drv_oob_peek(oob, &fail) == 0,
	       "looking for the peer's end takes no message");
	tap_ok(drv_oob_barrier(oob, "one", NULL, drv_now_ns() + SECOND, &fail) == 0, "a barrier");
	large = json_pack("{s:s, s:s}", "m", "large", "text", text);
	tap_ok(drv_oob_send(oob, 1, large, drv_now_ns() + 5 * SECOND, &fail) == 0, "3 MB leave");
	message = NULL;
	tap_ok(drv_oob_expect(oob, 1, "large", NULL, drv_now_ns() + 5 * SECOND, &message, &fail) == 0 &&
		       !json_object_set_new(large, "from", json_integer(1)) && json_equal(message, large),
	       "and come back");
	json_decref(message);
	tap_ok(drv_oob_receive(oob, NULL, drv_now_ns() + SECOND, &message, &fail) == -1 &&
		       fail.reason == DRV_TRANSPORT && strstr(fail.text, "enough"),
	       "an abort carries its reason: %s", fail.text);
	tap_ok(drv_oob_carried(oob, 1) > 6000000 && drv_oob_carried(oob, 1) < 6002000 &&
		       drv_oob_carried(oob, 0) == drv_oob_carried(oob, 1) && !drv_oob_carried(oob, 2) &&
		       !drv_oob_carried(NULL, 0),
	       "what was said and heard is counted: %llu bytes", (unsigned long long)drv_oob_carried(oob, 1));
	tap_ok(end_child(child) == 0, "the other end agrees");
	drv_oob_close(oob);
	json_decref(large);
	free(text);
}

static void test_refusals(void)
{
	struct drv_fail fail = {0};
	pid_t child = start_child(wrong_token_client);
	struct drv_oob *oob = open_zero(2, SECOND / 2, &fail);

	tap_ok(!oob && fail.reason == DRV_TOKEN, "a wrong token is not let in: %s", fail.text);
	tap_ok(end_child(child) == 0, "and is told so");
	child = start_child(other_revision_client);
	oob = open_zero(2, 5 * SECOND, &fail);
	tap_ok(!oob && fail.reason == DRV_VERSION_MISMATCH &&
		       strstr(fail.text, "r at endpoint 0, r2 at endpoint 1"),
	       "another revision: %s", fail.text);
	tap_ok(end_child(child) == 0, "is refused on both ends");
	drv_oob_close(oob);
	child = start_child(other_launch_client);
	oob = open_zero(2, 5 * SECOND, &fail);
	tap_ok(!oob && fail.reason == DRV_PROTOCOL, "another launch file: %s", fail.text);
	tap_ok(end_child(child) == 0, "is refused on both ends");
	drv_oob_close(oob);
	child = start_child(garbage_then_good_client);
	oob = open_zero(2, 5 * SECOND, &fail);
	tap_ok(oob != NULL, "strangers do not keep the right one out");
	tap_ok(end_child(child) == 0, "nor is it disturbed");
	drv_oob_close(oob);
	child = start_child(silent_strangers_then_good_client);
	oob = open_zero(2, 5 * SECOND, &fail);
	tap_ok(oob != NULL, "nor do a hundred that say nothing: %s", oob ? "" : fail.text);
	tap_ok(end_child(child) == 0, "and it comes in beside them");
	drv_oob_close(oob);
}

static void test_ends(void)
{
	static const struct {
		int (*body)(void);
		enum drv_reason reason;
		const char *what;
	} rows[] = {
		{huge_frame_client, DRV_PROTOCOL, "a frame of 4 GiB"},
		{no_json_client, DRV_PROTOCOL, "a frame that is not JSON"},
		{no_message_client, DRV_PROTOCOL, "an invalid message"},
		{silent_client, DRV_PEER_LOST, "half a frame, then nothing"},
		{dying_client, DRV_PEER_LOST, "a peer that is killed"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct drv_fail fail = {0};
		const pid_t child = start_child(rows[i].body);
		struct drv_oob *oob = open_zero(2, 5 * SECOND, &fail);
		const uint64_t started_ns = drv_now_ns();
		json_t *message;

		tap_ok(oob && drv_oob_receive(oob, NULL, drv_now_ns() + 5 * SECOND, &message, &fail) == -1 &&
			       fail.reason == rows[i].reason && drv_now_ns() - started_ns < 2 * SECOND,
		       "%s: %s after %llu ms", rows[i].what, fail.text,
		       (unsigned long long)((drv_now_ns() - started_ns) / 1000000));
		drv_oob_close(oob);
		end_child(child);
	}
}

static int count_step(void *arg, struct drv_fail *fail)
{
	(void)fail;
	++*(int *)arg;
	(void)usleep(1000);
	return 0;
}

static void test_deadlines(void)
{
	struct drv_fail fail = {0};
	uint64_t started_ns = drv_now_ns();
	struct drv_oob *oob = open_zero(2, SECOND / 5, &fail);
	json_t *message;
	int steps = 0;
	const struct drv_idle idle = {count_step, &steps};
	pid_t child;

	tap_ok(!oob && fail.reason == DRV_DEADLINE && drv_now_ns() - started_ns < SECOND, "nobody comes: %s",
	       fail.text);
	started_ns = drv_now_ns();
	tap_ok(drv_oob_open(1, 2, here, &token, hello_of("r", "l"), drv_now_ns() + SECOND / 5, &oob, &fail) ==
			       -1 &&
		       fail.reason == DRV_DEADLINE && drv_now_ns() - started_ns < SECOND,
	       "nobody listens: %s", fail.text);
	child = start_child(dying_client);
	oob = open_zero(2, 5 * SECOND, &fail);
	started_ns = drv_now_ns();
	tap_ok(oob && drv_oob_receive(oob, &idle, drv_now_ns() + SECOND / 20, &message, &fail) == -1 &&
		       fail.reason == DRV_DEADLINE && steps > 5,
	       "a peer that says nothing: %s, %d steps meanwhile", fail.text, steps);
	drv_oob_close(oob);
	end_child(child);
}

static void test_taken_port(void)
{
	struct drv_fail fail = {0};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct drv_oob *oob = NULL;
	const int yes = 1;

	address.sin_port = htons((uint16_t)atoi(strchr(here, ':') + 1));
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1)) {
		printf("# the port is gone: %s\n", strerror(errno));
		close(fd);
		return;
	}
	tap_ok(!open_zero(2, SECOND, &fail) && fail.reason == DRV_PORT, "a port that is taken: %s",
	       fail.text);
	tap_ok(drv_oob_open(1, 2, "nonsense", &token, hello_of("r", "l"), drv_now_ns(), &oob, &fail) &&
		       fail.reason == DRV_ARGUMENT,
	       "no port: %s", fail.text);
	tap_ok(drv_oob_open(1, 2, "host.invalid:1", &token, hello_of("r", "l"), drv_now_ns(), &oob, &fail) &&
		       fail.reason == DRV_ARGUMENT,
	       "no such host: %s", fail.text);
	close(fd);
}

/* A process with no descriptor left says so, and does not look again and again until the deadline. */
static void test_descriptors(void)
{
	struct drv_fail fail = {0};
	const pid_t child = start_child(waiting_client);
	const uint64_t started_ns = drv_now_ns();
	const int next = dup(0);
	struct rlimit limit, few;

	close(next);
	if (next < 0 || getrlimit(RLIMIT_NOFILE, &limit))
		exit(77);
	/* one for the socket that listens */
	few = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = limit.rlim_max};
	setrlimit(RLIMIT_NOFILE, &few);
	tap_ok(!open_zero(2, 5 * SECOND, &fail) && fail.reason == DRV_SYSTEM &&
		       strstr(fail.text, strerror(EMFILE)) && drv_now_ns() - started_ns < 4 * SECOND,
	       "no descriptor for another endpoint: %s", fail.text);
	setrlimit(RLIMIT_NOFILE, &limit);
	tap_ok(end_child(child) == 0, "whoever connected is let go");
}

static void check_token(const char *content, mode_t mode, int good, const char *what)
{
	char path[] = "/tmp/cadge-token-XXXXXX";
	const int fd = mkstemp(path);
	struct drv_oob_token read_back;
	struct drv_fail fail = {.text = ""};
	int status;

	if (fd < 0 || write(fd, content, strlen(content)) < 0 || fchmod(fd, mode))
		exit(77);
	close(fd);
	status = drv_oob_token_read(path, &read_back, &fail);
	tap_ok(good ? status == 0 && read_back.count == 16 : status == -1 && fail.reason == DRV_ARGUMENT,
	       "%s: %s", what, fail.text);
	tap_ok(!strstr(fail.text, content), "%s: the token is not told", what);
	unlink(path);
}

static void test_tokens(void)
{
	struct drv_oob_token read_back;
	struct drv_fail fail;

	check_token("0123456789abcdef\n", 0600, 1, "a token file");
	check_token("0123456789abcdef\n", 0644, 0, "readable by others");
	check_token("0123456789abcdef\n", 0400, 0, "any other mode");
	check_token("short\n", 0600, 0, "too short");
	tap_ok(drv_oob_token_read("/nonexistent", &read_back, &fail) == -1, "none: %s", fail.text);
	tap_ok(drv_oob_token_read("/tmp", &read_back, &fail) == -1, "a folder: %s", fail.text);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	choose_port();
	test_talk();
	test_refusals();
	test_ends();
	test_deadlines();
	test_taken_port();
	test_descriptors();
	test_tokens();
	return tap_done();
}
