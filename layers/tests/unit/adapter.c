/* SPDX-License-Identifier: BSD-3-Clause */
/* kit/adapter: refusals of open, settings, granted capabilities, the descriptor of event. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kit/adapter.h"
#include "tests/unit/support/tap.h"

static const struct cadge_option options[] = {
	{"height", "1", "How high."}, {"name", "", "What it is called."}, {"open", "no", "Whether."}, {0}};

struct wanted {
	uint64_t height;
	char name[8];
	bool open;
};

static const struct cadge_setting_rule rules[] = {
	{.name = "height",
	 .kind = CADGE_SETTING_NUMBER,
	 .offset = offsetof(struct wanted, height),
	 .least = 2,
	 .most = 20,
	 .unit = 1000},
	{.name = "name", .offset = offsetof(struct wanted, name), .room = sizeof(((struct wanted *)0)->name)},
	{.name = "open", .kind = CADGE_SETTING_FLAG, .offset = offsetof(struct wanted, open)},
	{.name = NULL},
};

static struct cadge_open_args arguments(void)
{
	static char error[256];

	error[0] = '\0';
	return (struct cadge_open_args){.bytes = sizeof(struct cadge_open_args),
					.place = CADGE_PLACE_HOST,
					.device = "lo",
					.address = "127.0.0.1",
					.peers_max = 1,
					.depth_max = 1,
					.error = error,
					.error_bytes = sizeof(error)};
}

static void refuses(const struct cadge_open_args *args, int want, const char *name)
{
	const int code = cadge_open_check(args, CADGE_CAP_HOST, options, 4);

	ok(code == want && (want == CADGE_DONE || *args->error), "%s%s%s", name, *args->error ? ": " : "",
	   args->error);
}

static void opening(void)
{
	const struct cadge_setting known = {"height", "3"}, unknown = {"depth", "3"};
	struct cadge_open_args args = arguments();

	refuses(&args, CADGE_DONE, "what the layer can do is accepted");
	args.place = CADGE_PLACE_NET;
	refuses(&args, CADGE_E_UNSUPPORTED, "a place");
	args.place = (enum cadge_place)7;
	refuses(&args, CADGE_E_UNSUPPORTED, "no place at all");
	args = arguments();
	args.wait_mode = CADGE_WAIT_BLOCK;
	refuses(&args, CADGE_E_UNSUPPORTED, "a wait mode");
	args = arguments();
	args.memory_kind = (enum cadge_memory_kind)1;
	refuses(&args, CADGE_E_UNSUPPORTED, "a memory kind");
	args = arguments();
	args.peers_max = 5;
	refuses(&args, CADGE_E_ARGUMENT, "too many peers");
	args = arguments();
	args.settings_count = 1;
	args.settings = &known;
	refuses(&args, CADGE_DONE, "a setting that is an option");
	args.settings = &unknown;
	refuses(&args, CADGE_E_ARGUMENT, "a setting that is none");
	args.error = NULL;
	ok(cadge_refuse(&args, CADGE_E_PORT, "nobody reads this") == CADGE_E_PORT, "no room for a reason");
}

static int reads(const char *name, const char *value, struct wanted *wanted)
{
	const struct cadge_setting setting = {name, value};
	struct cadge_open_args args = arguments();

	args.settings = &setting;
	args.settings_count = 1;
	return cadge_settings_read(&args, rules, wanted);
}

static void settings(void)
{
	struct wanted wanted = {.height = 5, .name = "old"};

	ok(reads("height", "20", &wanted) == CADGE_DONE && wanted.height == 20000 &&
		   strcmp(wanted.name, "old") == 0,
	   "a number, times its unit; what is not set stays");
	ok(reads("height", "1", &wanted) < 0 && reads("height", "21", &wanted) < 0 &&
		   reads("height", "-2", &wanted) < 0 && reads("height", "", &wanted) < 0 &&
		   reads("height", "3x", &wanted) < 0 && wanted.height == 20000,
	   "numbers out of range, and what is none");
	ok(reads("name", "seven77", &wanted) == CADGE_DONE && strcmp(wanted.name, "seven77") == 0 &&
		   reads("name", "eight888", &wanted) == CADGE_E_ARGUMENT,
	   "a text as long as its room");
	ok(reads("open", "yes", &wanted) == CADGE_DONE && wanted.open &&
		   reads("open", "no", &wanted) == CADGE_DONE && !wanted.open &&
		   reads("open", "1", &wanted) == CADGE_E_ARGUMENT,
	   "yes and no");
	ok(reads("other", "1", &wanted) == CADGE_DONE, "what has no rule is left to the adapter");
}

static void granted(void)
{
	const uint64_t caps =
		CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_RELIABLE;

	ok(cadge_caps_granted(caps, CADGE_PLACE_NET, CADGE_WAIT_POLL) == (CADGE_CAP_NET | CADGE_CAP_RELIABLE),
	   "one place, and no sleeping in poll mode");
	ok(cadge_caps_granted(caps, CADGE_PLACE_HOST, CADGE_WAIT_BLOCK) == (caps & ~CADGE_CAP_NET),
	   "sleeping in block mode");
}

static bool readable(const struct cadge_watch *watch)
{
	struct pollfd pollfd = {.fd = watch->fd, .events = POLLIN};

	return poll(&pollfd, 1, 0) == 1;
}

static void watching(void)
{
	struct cadge_watch watch;
	int one[2], two[2];

	if (cadge_watch_open(&watch, 2) < 0 || pipe(one) < 0 || pipe(two) < 0)
		tap_bail("no descriptors");
	struct pollfd pollfds[2] = {{.fd = one[0], .events = POLLIN}, {.fd = two[0], .events = POLLIN}};

	ok(cadge_watch_set(&watch, pollfds, 2, 1) == CADGE_DONE && !readable(&watch), "nothing to read");
	ok(write(two[1], "x", 1) == 1 && readable(&watch), "one of them has something");
	ok(cadge_watch_set(&watch, pollfds, 1, 1) == CADGE_DONE && !readable(&watch),
	   "it is watched no more");
	/* The same number, another pipe: only the epoch tells. */
	if (dup2(two[0], one[0]) < 0)
		tap_bail("dup2");
	ok(cadge_watch_set(&watch, pollfds, 1, 2) == CADGE_DONE && readable(&watch),
	   "a new epoch: the number is another descriptor's");
	ok(cadge_watch_set(&watch, pollfds, 3, 3) < 0, "no more than there is room for");
	cadge_watch_close(&watch);
	ok(watch.fd == -1, "closed");
	close(one[0]), close(one[1]), close(two[0]), close(two[1]);
}

struct counted {
	struct cadge_sink sink;
	int ups, downs;
};

static void on_up(struct cadge_sink *self, uint32_t peer)
{
	((struct counted *)(void *)self)->ups += peer == 3;
}

static void on_down(struct cadge_sink *self, uint32_t peer, int code)
{
	((struct counted *)(void *)self)->downs += peer == 3 && code == CADGE_E_DOWN;
}

static void states(void)
{
	struct counted seen = {.sink = {.bytes = sizeof(seen.sink), .up = on_up, .down = on_down}};
	struct cadge_state state = {0}, never = {.broken = true};

	ok(cadge_usable(&state) == CADGE_BUSY && cadge_report_down(&state, &seen.sink, 3) == 0,
	   "a channel that has not met is busy, and not down");
	ok(cadge_report_up(&state, &seen.sink, 3) == 1 && cadge_report_up(&state, &seen.sink, 3) == 0 &&
		   seen.ups == 1 && cadge_usable(&state) == CADGE_DONE,
	   "up is told once");
	state.broken = true;
	ok(cadge_usable(&state) == CADGE_E_DOWN && cadge_report_down(&state, &seen.sink, 3) == 1 &&
		   cadge_report_down(&state, &seen.sink, 3) == 0 && seen.downs == 1,
	   "down is told once");
	ok(cadge_report_up(&never, &seen.sink, 3) == 0, "what is broken never comes up");
}

static void pools(void)
{
	struct item {
		struct item *next;
	} items[2], *head = NULL, *taken;

	CADGE_POOL_GIVE(head, &items[0]);
	CADGE_POOL_GIVE(head, &items[1]);
	taken = CADGE_POOL_TAKE(head);
	ok(taken == &items[1] && CADGE_POOL_TAKE(head) == &items[0] && !CADGE_POOL_TAKE(head),
	   "the last one given is taken first, then none is left");
}

static int port_seven(void *arg, uint16_t port)
{
	++*(int *)arg;
	return port == 7 ? CADGE_DONE : CADGE_E_PORT;
}

static void ports(void)
{
	struct cadge_open_args args = arguments();
	struct sockaddr_in taken = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(taken);
	int tries = 0, one, other = -1;

	ok(cadge_try_ports(5, 9, port_seven, &tries) == CADGE_DONE && tries == 3, "the first free port");
	ok(cadge_try_ports(5, 6, port_seven, &tries) == CADGE_E_PORT && tries == 5, "none is free");
	tries = 0;
	ok(cadge_try_ports(UINT16_MAX, UINT16_MAX, port_seven, &tries) == CADGE_E_PORT && tries == 1,
	   "the last port there is");
	tries = 0;
	ok(cadge_try_ports(0, 0, port_seven, &tries) == CADGE_E_PORT && tries == 1, "any port is one try");
	ok(cadge_try_ports(9, 5, port_seven, &tries) == CADGE_E_PORT && tries == 1, "a range of none");

	ok(cadge_bind_port(0, 0, args.address, SOCK_STREAM, &one) == CADGE_DONE, "any free port");
	ok(getsockname(one, (struct sockaddr *)&taken, &bytes) == 0 && taken.sin_port, "it has a number");
	args.port_first = args.port_last = ntohs(taken.sin_port);
	ok(cadge_bind_port(args.port_first, args.port_last, args.address, SOCK_STREAM, &other) ==
			   CADGE_E_PORT &&
		   other == -1,
	   "a port that is taken");
	ok(cadge_bind_in_range(&args, SOCK_STREAM, &other) == CADGE_E_PORT && *args.error,
	   "with a sentence: %s", args.error);
	close(one);
	args.address = "192.0.2.1";
	ok(cadge_bind_in_range(&args, SOCK_DGRAM, &other) == CADGE_E_TRANSPORT && *args.error,
	   "an address of somebody else: %s", args.error);
	args.address = "localhost";
	ok(cadge_bind_in_range(&args, SOCK_DGRAM, &other) == CADGE_E_TRANSPORT && *args.error,
	   "a name and no address: %s", args.error);
	args.device = "no-such-device";
	ok(cadge_device_check(&args) == CADGE_E_TRANSPORT, "%s", args.error);
}

int main(void)
{
	states();
	pools();
	ports();
	opening();
	settings();
	granted();
	watching();
	return tap_done();
}
