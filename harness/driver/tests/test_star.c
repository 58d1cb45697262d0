/* SPDX-License-Identifier: BSD-3-Clause */
/* The out-of-band star: many endpoints gather, take orders, die, stop, come late and come with a wrong token. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/clock.h"
#include "oob/oob.h"
#include "tap.h"

#define SECOND UINT64_C(1000000000)
#define MOST   64

static const struct drv_oob_token token = {"0123456789abcdef", 16}, other_token = {"fedcba9876543210", 16};
static char here[32];
static int endpoints;

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

static struct drv_oob *join(int endpoint, const struct drv_oob_token *with, uint64_t limit_ns,
			    struct drv_fail *fail)
{
	json_t *hello = json_pack("{s:s, s:i, s:s, s:s, s:s}", "version", "1", "abi", 1, "schema", "s",
				  "revision", "r", "launch", "l");
	struct drv_oob *oob = NULL;
	const int status =
		drv_oob_open(endpoint, endpoints, here, with, hello, drv_now_ns() + limit_ns, &oob, fail);

	json_decref(hello);
	return status ? NULL : oob;
}

/* Starts endpoints 1 and up, each in a process that runs `body` and exits with what it returns. */
static void start(pid_t *children, int count, int (*body)(int endpoint))
{
	fflush(stdout);
	endpoints = count;
	for (int e = 1; e < count; e++) {
		children[e] = fork();
		if (children[e] < 0)
			exit(77);
		if (children[e] == 0)
			_exit(body(e));
	}
}

/* How many of them ended with status 0. */
static int end(const pid_t *children, int count)
{
	int good = 0, state;

	for (int e = 1; e < count; e++)
		if (waitpid(children[e], &state, 0) == children[e])
			good += WIFEXITED(state) && WEXITSTATUS(state) == 0;
	return good;
}

/* Everybody's numbers, in order? */
static int in_order(const json_t *all)
{
	int good = json_array_size(all) == (size_t)endpoints;

	for (int e = 0; good && e < endpoints; e++)
		good = json_integer_value(json_object_get(json_array_get(all, (size_t)e), "number")) == e * e;
	return good;
}

static int gather_numbers(struct drv_oob *oob, int endpoint)
{
	json_t *mine = json_pack("{s:i}", "number", endpoint * endpoint), *all = NULL;
	struct drv_fail fail;
	const int good =
		!drv_oob_gather(oob, "numbers", mine, NULL, drv_now_ns() + 5 * SECOND, &all, &fail) &&
		in_order(all);

	json_decref(mine);
	json_decref(all);
	return good;
}

/* --- a whole conversation --- */

static int talking_body(int endpoint)
{
	struct drv_fail fail;
	struct drv_oob *oob = join(endpoint, &token, 10 * SECOND, &fail);
	json_t *order, *answer;
	int status = 1;

	if (!oob)
		return 1;
	if (!gather_numbers(oob, endpoint) ||
	    drv_oob_barrier(oob, "barrier", NULL, drv_now_ns() + 5 * SECOND, &fail) ||
	    drv_oob_receive(oob, NULL, drv_now_ns() + 5 * SECOND, &order, &fail))
		goto done;
	answer = json_pack("{s:s, s:i}", "m", "answer", "twice",
			   2 * (int)json_integer_value(json_object_get(order, "number")) + endpoint);
	status = drv_oob_send(oob, 0, answer, drv_now_ns() + 5 * SECOND, &fail) ? 1 : 0;
	json_decref(answer);
	json_decref(order);
	if (!status && drv_oob_expect(oob, 0, "go", NULL, drv_now_ns() + 5 * SECOND, &order, &fail))
		status = 1;
	if (!status)
		json_decref(order);
	if (!status)
		status = drv_oob_barrier(oob, "end", NULL, drv_now_ns() + 5 * SECOND, &fail) ? 1 : 0;
done:
	drv_oob_close(oob);
	return status;
}

static void test_talk(int count)
{
	pid_t children[MOST];
	struct drv_fail fail = {0};
	struct drv_oob *oob;
	json_t *order = json_pack("{s:s, s:i}", "m", "order", "number", 21), *answer;
	int answers = 0, from = 0;

	start(children, count, talking_body);
	oob = join(0, &token, 10 * SECOND, &fail);
	if (tap_ok(oob != NULL, "%d endpoints meet %s", count, fail.text)) {
		tap_ok(gather_numbers(oob, 0), "a gather has what everybody said, in order");
		tap_ok(!drv_oob_barrier(oob, "barrier", NULL, drv_now_ns() + 5 * SECOND, &fail), "a barrier");
		tap_ok(!drv_oob_order(oob, order, drv_now_ns() + SECOND, &fail), "an order to all");
		for (int e = 1; e < count; e++) {
			if (drv_oob_receive(oob, NULL, drv_now_ns() + 5 * SECOND, &answer, &fail))
				break;
			from += (int)json_integer_value(json_object_get(answer, "from"));
			answers += json_integer_value(json_object_get(answer, "twice")) ==
				   42 + json_integer_value(json_object_get(answer, "from"));
			json_decref(answer);
		}
		tap_ok(answers == count - 1 && from == count * (count - 1) / 2, "%d answers, from each one",
		       answers);
		json_object_set_new(order, "m", json_string("go"));
		tap_ok(!drv_oob_order(oob, order, drv_now_ns() + SECOND, &fail) &&
			       !drv_oob_barrier(oob, "end", NULL, drv_now_ns() + 5 * SECOND, &fail),
		       "and the end");
	}
	tap_ok(end(children, count) == count - 1, "all of %d agree", count);
	drv_oob_close(oob);
	json_decref(order);
}

/* --- one endpoint goes --- */

static enum drv_reason wanted_reason;
static const char *wanted_text;

/* Waits for the news that endpoint 2 is gone or stopped. */
static int hears(struct drv_oob *oob)
{
	const uint64_t started_ns = drv_now_ns();
	struct drv_fail fail = {.text = ""};
	json_t *message;
	int good;

	good = drv_oob_receive(oob, NULL, drv_now_ns() + 5 * SECOND, &message, &fail) == -1 &&
	       fail.reason == wanted_reason && strstr(fail.text, wanted_text) &&
	       drv_now_ns() - started_ns < 2 * SECOND;
	if (!good)
		fprintf(stderr, "# heard: %s %s\n", drv_reason_name(fail.reason), fail.text);
	return good;
}

static int dying_body(int endpoint)
{
	struct drv_fail fail;
	struct drv_oob *oob = join(endpoint, &token, 10 * SECOND, &fail);
	int good = oob != NULL;

	if (good && endpoint == 2) {
		usleep(50000);
		return raise(SIGKILL);
	}
	good = good && hears(oob);
	drv_oob_close(oob);
	return good ? 0 : 1;
}

static int aborting_body(int endpoint)
{
	struct drv_fail fail;
	struct drv_oob *oob = join(endpoint, &token, 10 * SECOND, &fail);
	int good = oob != NULL;

	if (good && endpoint == 2)
		drv_oob_abort(oob, DRV_TRANSPORT, "enough of it");
	else
		good = good && hears(oob);
	drv_oob_close(oob);
	return good ? 0 : 1;
}

static int zero_dies_body(int endpoint)
{
	struct drv_fail fail = {.text = ""};
	struct drv_oob *oob = join(endpoint, &token, 10 * SECOND, &fail);
	const int good = oob && hears(oob);

	drv_oob_close(oob);
	return good ? 0 : 1;
}

static void test_ends(int count)
{
	static const struct {
		int (*body)(int);
		enum drv_reason reason;
		const char *text, *what;
		int survivors;
	} rows[] = {
		{dying_body, DRV_PEER_LOST, "endpoint 2 is gone", "is killed", 2},
		{aborting_body, DRV_TRANSPORT, "endpoint 2 stopped: enough of it", "stops", 1},
	};
	struct drv_oob *oob;
	pid_t children[MOST];
	struct drv_fail fail;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wanted_reason = rows[i].reason;
		wanted_text = rows[i].text;
		start(children, count, rows[i].body);
		oob = join(0, &token, 10 * SECOND, &fail);
		tap_ok(oob && hears(oob), "an endpoint that %s is known to endpoint 0", rows[i].what);
		tap_ok(end(children, count) == count - rows[i].survivors, "and to all of %d, by its number",
		       count);
		drv_oob_close(oob);
	}
	wanted_reason = DRV_PEER_LOST;
	wanted_text = "endpoint 0 is gone";
	start(children, count, zero_dies_body);
	oob = join(0, &token, 10 * SECOND, &fail);
	drv_oob_close(oob);
	tap_ok(end(children, count) == count - 1, "the end of endpoint 0 is known to all of %d", count);
}

/* --- meeting --- */

static int late_body(int endpoint)
{
	struct drv_fail fail;
	struct drv_oob *oob;
	int good;

	if (endpoint == 2)
		usleep(400000);
	oob = join(endpoint, &token, 10 * SECOND, &fail);
	good = oob && gather_numbers(oob, endpoint);
	drv_oob_close(oob);
	return good ? 0 : 1;
}

static int never_body(int endpoint)
{
	struct drv_fail fail = {.text = ""};

	if (endpoint == 2)
		return 0;
	return !join(endpoint, &token, 3 * SECOND, &fail) && fail.reason == DRV_DEADLINE &&
			       strstr(fail.text, "endpoint 2 did not connect")
		       ? 0
		       : 1;
}

static int wrong_token_body(int endpoint)
{
	struct drv_fail fail = {.text = ""};

	if (endpoint == 2)
		return !join(2, &other_token, 3 * SECOND, &fail) && fail.reason == DRV_TOKEN ? 0 : 1;
	return !join(endpoint, &token, 3 * SECOND, &fail) && fail.reason == DRV_TOKEN ? 0 : 1;
}

/* Endpoint 3 says that it is 2 as well, and is turned away; the real 3 comes later. */
static int duplicate_body(int endpoint)
{
	struct drv_fail fail = {.text = ""};
	struct drv_oob *oob;
	int good = 1;

	if (endpoint == 3) {
		usleep(100000);
		good = !join(2, &token, 3 * SECOND, &fail) && fail.reason == DRV_PROTOCOL;
	}
	oob = join(endpoint, &token, 5 * SECOND, &fail);
	good = good && oob && gather_numbers(oob, endpoint);
	drv_oob_close(oob);
	return good ? 0 : 1;
}

static void test_meeting(int count)
{
	struct drv_fail fail = {.text = ""};
	pid_t children[MOST];
	struct drv_oob *oob;
	uint64_t started_ns;

	start(children, count, late_body);
	oob = join(0, &token, 10 * SECOND, &fail);
	tap_ok(oob && gather_numbers(oob, 0), "one that comes late is waited for %s", fail.text);
	tap_ok(end(children, count) == count - 1, "by all of %d", count);
	drv_oob_close(oob);
	start(children, count, never_body);
	started_ns = drv_now_ns();
	oob = join(0, &token, SECOND, &fail);
	tap_ok(!oob && fail.reason == DRV_DEADLINE && strstr(fail.text, "endpoint 2 did not connect") &&
		       drv_now_ns() - started_ns < 2 * SECOND,
	       "one that never comes is named: %s", fail.text);
	tap_ok(end(children, count) == count - 1, "to all of %d", count);
	start(children, count, wrong_token_body);
	oob = join(0, &token, SECOND, &fail);
	tap_ok(!oob && fail.reason == DRV_TOKEN, "one with another token is not let in: %s", fail.text);
	tap_ok(end(children, count) == count - 1, "and all of %d are told", count);
	start(children, count, duplicate_body);
	oob = join(0, &token, 10 * SECOND, &fail);
	tap_ok(oob && gather_numbers(oob, 0), "a number that is taken is not given twice");
	tap_ok(end(children, count) == count - 1, "and the others do not suffer");
	drv_oob_close(oob);
}

/* --- waiting --- */

static int count_step(void *arg, struct drv_fail *fail)
{
	(void)fail;
	++*(int *)arg;
	(void)usleep(1000);
	return 0;
}

static int silent_body(int endpoint)
{
	struct drv_fail fail;
	struct drv_oob *oob = join(endpoint, &token, 10 * SECOND, &fail);
	json_t *said = json_pack("{s:s}", "m", "early");
	int good = oob != NULL;

	if (good && endpoint == 1)
		good = !drv_oob_send(oob, 0, said, drv_now_ns() + SECOND, &fail);
	json_decref(said);
	usleep(300000);
	drv_oob_close(oob);
	return good ? 0 : 1;
}

static void test_waiting(int count)
{
	int steps = 0;
	const struct drv_idle idle = {count_step, &steps};
	struct drv_fail fail = {.text = ""};
	pid_t children[MOST];
	struct drv_oob *oob;
	json_t *message;

	start(children, count, silent_body);
	oob = join(0, &token, 10 * SECOND, &fail);
	tap_ok(oob &&
		       drv_oob_expect(oob, 2, "word", &idle, drv_now_ns() + SECOND / 10, &message, &fail) ==
			       -1 &&
		       fail.reason == DRV_DEADLINE && strstr(fail.text, "endpoint 2") && steps > 5,
	       "one that says nothing is named: %s, %d steps meanwhile", fail.text, steps);
	tap_ok(oob && drv_oob_peek(oob, &fail) == 0 && drv_oob_peek(oob, &fail) == 0,
	       "looking for the end of others takes no message");
	tap_ok(oob && drv_oob_try(oob, &message, &fail) == 1 &&
		       !strcmp(json_string_value(json_object_get(message, "m")), "early"),
	       "what another said meanwhile is kept");
	json_decref(message);
	end(children, count);
	drv_oob_close(oob);
}

/* --- what a star costs its middle --- */

enum { WORDS = 20 };
static int said[2]; /* a pipe: a byte of each that has said all */

static int many_words_body(int endpoint)
{
	struct drv_fail fail;
	struct drv_oob *oob = join(endpoint, &token, 10 * SECOND, &fail);
	json_t *word = json_pack("{s:s}", "m", "word"), *message = NULL;
	int good = oob != NULL;

	for (int i = 0; good && i < (endpoint == 1 ? WORDS : 1); i++)
		good = !drv_oob_send(oob, 0, word, drv_now_ns() + SECOND, &fail);
	good = good && write(said[1], "", 1) == 1 &&
	       !drv_oob_expect(oob, 0, "order", NULL, drv_now_ns() + 5 * SECOND, &message, &fail);
	json_decref(message);
	json_decref(word);
	drv_oob_close(oob);
	return good ? 0 : 1;
}

static size_t made_bytes;

static void *count_bytes(size_t bytes)
{
	made_bytes += bytes;
	return malloc(bytes);
}

/* Who says much keeps nobody's word waiting; what goes to all is put into bytes once. */
static void test_middle(int count)
{
	enum { LONG_BYTES = 100000 };
	struct drv_fail fail = {.text = ""};
	json_t *message, *order;
	pid_t children[MOST];
	char text[LONG_BYTES + 1];
	struct drv_oob *oob;
	int heard = 0, last = 0;
	bool ordered;

	memset(text, 'x', LONG_BYTES);
	text[LONG_BYTES] = '\0';
	order = json_pack("{s:s, s:s}", "m", "order", "text", text);
	if (pipe(said))
		exit(77);
	start(children, count, many_words_body);
	oob = join(0, &token, 10 * SECOND, &fail);
	for (int i = 1; oob && i < count; i++)
		if (read(said[0], text, 1) != 1)
			exit(77);
	while (oob && heard < WORDS + count - 2 &&
	       !drv_oob_receive(oob, NULL, drv_now_ns() + 5 * SECOND, &message, &fail)) {
		heard++;
		if (json_integer_value(json_object_get(message, "from")) != 1)
			last = heard;
		json_decref(message);
	}
	tap_ok(heard == WORDS + count - 2 && last <= 2 * count,
	       "of %d words the last of those who say one is taken as number %d", heard, last);
	json_set_alloc_funcs(count_bytes, free);
	ordered = oob && !drv_oob_order(oob, order, drv_now_ns() + 5 * SECOND, &fail);
	json_set_alloc_funcs(malloc, free);
	tap_ok(ordered && made_bytes < 6 * LONG_BYTES, "an order of %d bytes to %d is made from %zu bytes",
	       LONG_BYTES, count - 1, made_bytes);
	tap_ok(end(children, count) == count - 1, "all of %d hear it", count);
	drv_oob_close(oob);
	json_decref(order);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	choose_port();
	test_talk(3);
	test_talk(8);
	test_talk(MOST);
	test_middle(16);
	test_ends(3);
	test_ends(8);
	test_meeting(4);
	test_waiting(3);
	return tap_done();
}
