/* SPDX-License-Identifier: BSD-3-Clause */
/* cadge-conformance: arguments, the list of tests, and the report in TAP or JSON. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "hosts.h"
#include "launchers.h"
#include "referee.h"
#include "reports.h"

/* In this order; tests that need more ranks, or end them, come last. */
const struct test tests[] = {
	{.name = "table_is_sound", .run = test_table_is_sound, .ranks = 2, .deadline_s = 10},
	{.name = "one_export", .run = test_one_export, .ranks = 2, .deadline_s = 10},
	{.name = "library_stated", .run = test_library_stated, .ranks = 2, .deadline_s = 10},
	{.name = "opens_and_limits", .run = test_opens_and_limits, .ranks = 2, .deadline_s = 20},
	{.name = "layer_file_true", .run = test_layer_file_true, .ranks = 2, .deadline_s = 20},
	{.name = "open_bad_setting", .run = test_open_bad_setting, .ranks = 2, .deadline_s = 20},
	{.name = "open_bad_device", .run = test_open_bad_device, .ranks = 2, .deadline_s = 20},
	{.name = "open_bad_memory", .run = test_open_bad_memory, .ranks = 2, .deadline_s = 20},
	{.name = "structs_may_grow", .run = test_structs_may_grow, .ranks = 2, .deadline_s = 20},
	{.name = "traits_as_granted", .run = test_traits_as_granted, .ranks = 2, .deadline_s = 20},
	{.name = "message_empty", .run = test_message_empty, .ranks = 2, .deadline_s = 20},
	{.name = "message_one_byte", .run = test_message_one_byte, .ranks = 2, .deadline_s = 20},
	{.name = "message_odd_sizes", .run = test_message_odd_sizes, .ranks = 2, .deadline_s = 30},
	{.name = "message_gathered", .run = test_message_gathered, .ranks = 2, .deadline_s = 20},
	{.name = "message_max", .run = test_message_max, .ranks = 2, .deadline_s = 30},
	{.name = "message_over_max_refused",
	 .run = test_message_over_max_refused,
	 .ranks = 2,
	 .deadline_s = 20},
	{.name = "payload_intact", .run = test_payload_intact, .ranks = 2, .deadline_s = 40},
	{.name = "depth_one", .run = test_depth_one, .ranks = 2, .deadline_s = 20},
	{.name = "depth_max", .run = test_depth_max, .ranks = 2, .deadline_s = 40},
	{.name = "busy_then_progress", .run = test_busy_then_progress, .ranks = 2, .deadline_s = 40},
	{.name = "order_as_claimed", .run = test_order_as_claimed, .ranks = 2, .deadline_s = 40},
	{.name = "exactly_once_as_claimed",
	 .run = test_exactly_once_as_claimed,
	 .ranks = 2,
	 .deadline_s = 40},
	{.name = "both_directions_at_once",
	 .run = test_both_directions_at_once,
	 .ranks = 2,
	 .deadline_s = 40},
	{.name = "poll_counts_events", .run = test_poll_counts_events, .ranks = 2, .deadline_s = 20},
	{.name = "poll_never_sleeps", .run = test_poll_never_sleeps, .ranks = 2, .deadline_s = 30},
	{.name = "post_in_sink_as_claimed",
	 .run = test_post_in_sink_as_claimed,
	 .ranks = 2,
	 .deadline_s = 20},
	{.name = "lend_as_claimed", .run = test_lend_as_claimed, .ranks = 2, .deadline_s = 20},
	{.name = "long_stay_warm", .run = test_long_stay_warm, .ranks = 2, .deadline_s = 30, .no_self = true},
	{.name = "wait_sleeps_and_wakes",
	 .run = test_wait_sleeps_and_wakes,
	 .ranks = 2,
	 .deadline_s = 40,
	 .no_self = true},
	{.name = "wait_after_connect", .run = test_wait_after_connect, .ranks = 2, .deadline_s = 40},
	{.name = "wait_after_busy",
	 .run = test_wait_after_busy,
	 .ranks = 2,
	 .deadline_s = 20,
	 .no_self = true},
	{.name = "event_tells", .run = test_event_tells, .ranks = 2, .deadline_s = 30, .no_self = true},
	{.name = "threads_as_stated", .run = test_threads_as_stated, .ranks = 2, .deadline_s = 20},
	{.name = "reserve_and_commit", .run = test_reserve_and_commit, .ranks = 2, .deadline_s = 30},
	{.name = "put_notifies", .run = test_put_notifies, .ranks = 2, .deadline_s = 30},
	{.name = "put_get_fetch_add", .run = test_put_get_fetch_add, .ranks = 2, .deadline_s = 40},
	{.name = "quiet_is_visible", .run = test_quiet_is_visible, .ranks = 2, .deadline_s = 30},
	{.name = "semantics_proved",
	 .run = test_semantics_proved,
	 .ranks = 2,
	 .deadline_s = 30,
	 .no_self = true},
	{.name = "native_rpc", .run = test_native_rpc, .ranks = 2, .deadline_s = 30},
	{.name = "capability_lies", .run = test_capability_lies, .ranks = 2, .deadline_s = 30},
	{.name = "describe_path_true", .run = test_describe_path_true, .ranks = 2, .deadline_s = 20},
	{.name = "close_with_work_outstanding",
	 .run = test_close_with_work_outstanding,
	 .ranks = 2,
	 .deadline_s = 30},
	{.name = "close_with_messages_unread",
	 .run = test_close_with_messages_unread,
	 .ranks = 2,
	 .deadline_s = 30},
	{.name = "disconnect_reconnect", .run = test_disconnect_reconnect, .ranks = 2, .deadline_s = 30},
	{.name = "no_growth", .run = test_no_growth, .ranks = 2, .deadline_s = 120},
	{.name = "two_peers", .run = test_two_peers, .ranks = 3, .deadline_s = 40, .no_self = true},
	{.name = "rights_hold", .run = test_rights_hold, .ranks = 3, .deadline_s = 30},
	{.name = "rpc_delegate", .run = test_rpc_delegate, .ranks = 3, .deadline_s = 30, .no_self = true},
	{.name = "wait_peer_dies",
	 .run = test_wait_peer_dies,
	 .ranks = 2,
	 .deadline_s = 12,
	 .no_self = true,
	 .ends_set = true},
	{.name = "peer_dies",
	 .run = test_peer_dies,
	 .ranks = 2,
	 .deadline_s = 6,
	 .no_self = true,
	 .ends_set = true},
};
const size_t tests_count = sizeof(tests) / sizeof(tests[0]);

/* After the last test: every rank ends with 0. Sanitizers speak at exit. */
static const char ends_clean[] = "ends_clean";

static const char usage[] =
	"usage: cadge-conformance [options]\n"
	"Runs one set of tests against a communication layer and prints TAP.\n"
	"  --modules DIR        where layers and shims are (build/layers)\n"
	"  --layer NAME         test DIR/NAME.so; or\n"
	"  --module FILE        test this file\n"
	"  --shim NAME          through DIR/shim-NAME.so\n"
	"  --place self|within|between   (within; between uses the network between two processes here)\n"
	"  --wait poll|block    (poll)\n"
	"  --device IF --address IP      (lo, 127.0.0.1; between, as root: two emulated hosts instead)\n"
	"                       or lists of one a rank: --device va,vb --address 10.0.0.1,10.0.0.2\n"
	"  --set NAME=VALUE     an open-time setting; may be repeated\n"
	"  --stated NAME=VALUE  what the layer file says (ci/layer_facts.awk); may be repeated\n"
	"  --cycles N           of no_growth (1000)\n"
	"  --scale N            multiplies deadlines and what a wait may cost (1; 3 under a sanitizer)\n"
	"  --deadline S         no test may take longer than S seconds (each has its own)\n"
	"  --mpirun PATH        (mpirun) for layers whose library starts once a process: Open MPI's or "
	"MPICH's\n"
	"  --only TEST          this test, behind opens_and_limits; may be repeated; --list names them\n"
	"  --skip TEST          leave this test out; may be repeated\n"
	"  --json               instead of TAP; --verbose: times in TAP\n"
	"Exit status: 0 all passed, 1 a test failed, 2 wrong arguments, 77 this layer cannot run like that "
	"here.\n";

static bool is_test(const char *name)
{
	for (size_t i = 0; i < tests_count; i++)
		if (strcmp(tests[i].name, name) == 0)
			return true;
	return false;
}

static int parse_name(const char *name, struct names *names)
{
	if (is_test(name) && names->count < NAMES_MAX) {
		names->name[names->count++] = name;
		return 0;
	}
	fprintf(stderr, "cadge-conformance: no test is called '%s' (or more than %u are named)\n", name,
		NAMES_MAX);
	return -1;
}

static bool is_among(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->name[i], name) == 0)
			return true;
	return false;
}

/* A few tests alone need to know, as all of them do, whether the layer opens here at all. */
static bool is_asked(const struct options *opt, size_t i)
{
	return !opt->only.count || is_among(&opt->only, tests[i].name) ||
	       tests[i].run == test_opens_and_limits;
}

static int parse_word(const char *word, const char *const *words, int *out)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(word, words[i]) == 0) {
			*out = i;
			return 0;
		}
	fprintf(stderr, "cadge-conformance: '%s' is not one of %s, %s%s%s\n", word, words[0], words[1],
		words[2] ? ", " : "", words[2] ? words[2] : "");
	return -1;
}

static int parse_count(const char *word, unsigned int *out)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(word, &end, 10);
	if (errno || *end || end == word || !value || value > 1000000) {
		fprintf(stderr, "cadge-conformance: '%s' is not a number from 1 to 1000000\n", word);
		return -1;
	}
	*out = (unsigned int)value;
	return 0;
}

static int parse_setting(struct options *opt, char *word)
{
	char *equals = strchr(word, '=');

	if (!equals || equals == word || opt->settings_count == SETTINGS_MAX) {
		fprintf(stderr, "cadge-conformance: '%s' is not NAME=VALUE (or more than %u settings)\n",
			word, SETTINGS_MAX);
		return -1;
	}
	*equals = 0;
	opt->settings[opt->settings_count].name = word;
	opt->settings[opt->settings_count++].value = equals + 1;
	return 0;
}

static int parse_stated(struct options *opt, const char *word)
{
	if (strchr(word, '=') && opt->stated_count < STATED_MAX) {
		opt->stated[opt->stated_count++] = word;
		return 0;
	}
	fprintf(stderr, "cadge-conformance: '%s' is not NAME=VALUE (or more than %u are stated)\n", word,
		STATED_MAX);
	return -1;
}

static int parse(int argc, char **argv, struct options *opt)
{
	static const char *const places[] = {"self", "within", "between", NULL}, *const waits[] = {"poll",
												   "block",
												   NULL};
	static const struct option longs[] = {
		{"modules", 1, NULL, 'm'}, {"layer", 1, NULL, 'l'},   {"module", 1, NULL, 'f'},
		{"shim", 1, NULL, 's'},    {"place", 1, NULL, 'p'},   {"wait", 1, NULL, 'w'},
		{"device", 1, NULL, 'd'},  {"address", 1, NULL, 'a'}, {"set", 1, NULL, 'S'},
		{"cycles", 1, NULL, 'c'},  {"scale", 1, NULL, 'x'},   {"deadline", 1, NULL, 'D'},
		{"mpirun", 1, NULL, 'M'},  {"only", 1, NULL, 'o'},    {"list", 0, NULL, 'L'},
		{"skip", 1, NULL, 'k'},    {"json", 0, NULL, 'j'},    {"verbose", 0, NULL, 'v'},
		{"stated", 1, NULL, 't'},  {"help", 0, NULL, 'h'},    {NULL, 0, NULL, 0},
	};
	int value, c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'm': opt->modules = optarg; break;
		case 'l': opt->layer = optarg; break;
		case 'f': opt->module = optarg; break;
		case 's': opt->shim = optarg; break;
		case 'd': opt->device = optarg; break;
		case 'a': opt->address = optarg; break;
		case 'M': opt->mpirun = optarg; break;
		case 'o':
		case 'k':
			if (parse_name(optarg, c == 'o' ? &opt->only : &opt->skip) < 0)
				return -1;
			break;
		case 'L': opt->list = true; break;
		case 'j': opt->json = true; break;
		case 'v': opt->verbose = true; break;
		case 'p':
			if (parse_word(optarg, places, &value) < 0)
				return -1;
			opt->place = (enum cadge_place)value;
			break;
		case 'w':
			if (parse_word(optarg, waits, &value) < 0)
				return -1;
			opt->wait_mode = (enum cadge_wait_mode)value;
			break;
		case 'S':
			if (parse_setting(opt, optarg) < 0)
				return -1;
			break;
		case 't':
			if (parse_stated(opt, optarg) < 0)
				return -1;
			break;
		case 'c':
			if (parse_count(optarg, &opt->cycles) < 0)
				return -1;
			break;
		case 'D':
			if (parse_count(optarg, &opt->deadline_s) < 0)
				return -1;
			break;
		case 'x':
			if (parse_count(optarg, &opt->scale) < 0)
				return -1;
			break;
		case 'h': fputs(usage, stdout); exit(0);
		default: return -1;
		}
	}
	if (optind < argc || (!opt->list && !opt->layer == !opt->module)) {
		fputs("cadge-conformance: give --layer NAME or --module FILE (--help says more)\n", stderr);
		return -1;
	}
	return 0;
}

/*
 * Own mount, IPC and, on the loopback device, network namespaces where we may: then /dev/shm, SysV segments
 * and the counters of `lo` show nothing but what the layer does. Without the right to, the counts are those
 * of the machine.
 */
static bool isolate(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWIPC) < 0)
		return false;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
		return false;
	setenv("CADGE_CONFORMANCE_ISOLATED", "1", 1);
	hide_kernel_symbols();
	return true;
}

static bool isolate_network(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		return false;
	if (interface_up("lo") < 0)
		perror("cadge-conformance: cannot bring up lo in a network namespace of its own");
	setenv("CADGE_CONFORMANCE_OWN_NETWORK", "1", 1);
	return true;
}

static void print_json_string(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void report(const struct options *opt, const char *name, const struct outcome *out,
		   unsigned int number)
{
	static const char *const words[] = {"none", "ok", "fail", "skip"};

	for (char *c = (char *)(uintptr_t)out->reason; *c; c++)
		if (*c == '\n' || *c == '#')
			*c = ' ';
	if (opt->json) {
		printf("%s{\"test\":\"%s\",\"verdict\":\"%s\",\"took_ns\":%llu,\"reason\":",
		       number > 1 ? ",\n" : "[", name, words[out->verdict], (unsigned long long)out->took_ns);
		print_json_string(out->verdict == VERDICT_OK ? "" : out->reason);
		putchar('}');
	} else {
		printf("%s %u - %s", out->verdict == VERDICT_FAIL ? "not ok" : "ok", number, name);
		if (out->verdict == VERDICT_SKIP)
			printf(" # SKIP %s", out->reason);
		if (opt->verbose)
			printf("%s %llu ms", out->verdict == VERDICT_SKIP ? "," : " #",
			       (unsigned long long)(out->took_ns / NS_PER_MS));
		putchar('\n');
		if (out->verdict == VERDICT_FAIL)
			printf("# %s: %s\n", name, out->reason);
	}
	fflush(stdout);
}

/*
 * What the tables say before anything is opened. Loaded in a child: the referee never holds the library.
 * 0: go on, *one_init_out; 1: skip, reason; -1: cannot be loaded, reason.
 */
static int look(const struct options *opt, bool *one_init_out, char *reason, size_t reason_bytes)
{
	static const char *const places[] = {"self", "within", "between"};
	char file[PATH_MAX], shim_file[PATH_MAX];
	const struct cadge_layer *layer;

	if (module_find(opt, file, sizeof(file), shim_file) < 0)
		return -2;
	layer = module_load(file, reason, reason_bytes);
	if (!layer)
		return -1;
	*one_init_out = layer->caps & CADGE_CAP_ONE_INIT;
	if (!(layer->caps & (CADGE_CAP_SELF << opt->place))) {
		snprintf(reason, reason_bytes, "%s does not claim the place '%s'", layer->name,
			 places[opt->place]);
		return 1;
	}
	if (opt->wait_mode == CADGE_WAIT_BLOCK && !(layer->caps & CADGE_CAP_WAIT)) {
		snprintf(reason, reason_bytes, "%s does not claim WAIT", layer->name);
		return 1;
	}
	return 0;
}

/* The answer of look(), brought from a child over a pipe. */
static int look_outside(const struct options *opt, bool *one_init_out, char *reason, size_t reason_bytes)
{
	struct {
		int rc;
		bool one_init;
		char reason[REASON_BYTES];
	} answer = {.rc = -1, .reason = "the module cannot be loaded: the process that tried died"};
	int ends[2];
	pid_t pid;

	if (pipe(ends) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		answer.rc = look(opt, &answer.one_init, answer.reason, sizeof(answer.reason));
		_exit(write(ends[1], &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
	}
	close(ends[1]);
	while (read(ends[0], &answer, sizeof(answer)) < 0 && errno == EINTR)
		;
	close(ends[0]);
	*one_init_out = answer.one_init;
	snprintf(reason, reason_bytes, "%s", answer.reason);
	return answer.rc;
}

static int run_all(const struct options *opt, char **argv, bool mpirun, bool hosts)
{
	unsigned int number = 0, planned = 0, passed = 0, failed = 0;
	bool unsupported = false, broken = false;
	struct outcome out;
	struct set set;

	for (size_t i = 0; i < tests_count; i++)
		planned += is_asked(opt, i);
	if (set_init(&set, opt, argv, mpirun, hosts) < 0)
		return 2;
	if (!opt->json)
		printf("TAP version 13\n1..%u\n", planned + 1);
	for (unsigned int i = 0; i < tests_count; i++) {
		if (!is_asked(opt, i))
			continue;
		memset(&out, 0, sizeof(out));
		out.verdict = VERDICT_SKIP;
		if (is_among(&opt->skip, tests[i].name))
			snprintf(out.reason, sizeof(out.reason), "skipped as asked");
		else if (unsupported)
			snprintf(out.reason, sizeof(out.reason), "the layer does not open like that here");
		else if (broken)
			snprintf(out.reason, sizeof(out.reason), "not tested: opens_and_limits failed");
		else if (tests[i].no_self && opt->place == CADGE_PLACE_SELF)
			snprintf(out.reason, sizeof(out.reason), "one process has no such peer");
		else
			set_run(&set, i, &out);
		if (tests[i].run == test_opens_and_limits && out.verdict == VERDICT_SKIP)
			unsupported = true;
		if (tests[i].run == test_opens_and_limits && out.verdict == VERDICT_FAIL)
			broken = true;
		failed += out.verdict == VERDICT_FAIL;
		passed += out.verdict == VERDICT_OK;
		report(opt, tests[i].name, &out, ++number);
	}
	memset(&out, 0, sizeof(out));
	out.verdict = set_quit(&set, out.reason, sizeof(out.reason)) < 0 ? VERDICT_FAIL : VERDICT_OK;
	failed += out.verdict == VERDICT_FAIL;
	report(opt, ends_clean, &out, ++number);
	if (opt->json)
		puts("]");
	set_free(&set);
	if (failed)
		return 1;
	return unsupported || (!passed && !opt->only.count) ? 77 : 0;
}

/* The part of a list "va,vb" that a rank has; ranks beyond its end begin again with the first. */
static const char *of_rank(const char *list, unsigned int number)
{
	unsigned int parts = 1;
	char *rest = strdup(list), *part = NULL;

	for (const char *at = list; (at = strchr(at, ',')); at++)
		parts++;
	if (parts == 1 || !rest) {
		free(rest);
		return list;
	}
	for (unsigned int i = 0; i <= number % parts; i++)
		part = strsep(&rest, ",");
	return part; /* lives as long as the process */
}

enum { ONE_HOST_WORDS = 4 };

/* What ranks of one host are told, behind the other words: not every MPI takes the loopback device for a network. */
static void settle_on_one_host(char **words, int count)
{
	static const char *const more[ONE_HOST_WORDS] = {"--device", HOSTS_DEVICE, "--address", NULL};

	if (host_of_all() < 0)
		return; /* then on the loopback device */
	setenv("CADGE_CONFORMANCE_ONE_HOST", "1", 1);
	for (int i = 0; i < ONE_HOST_WORDS; i++)
		words[count + i] = (char *)(uintptr_t)(more[i] ? more[i] : host_address(0));
}

int main(int argc, char **argv)
{
	struct options opt = {.modules = "build/layers",
			      .device = "lo",
			      .address = "127.0.0.1",
			      .mpirun = "mpirun",
			      .place = CADGE_PLACE_HOST,
			      .cycles = 1000,
			      .scale = UNDER_SANITIZER ? 3 : 1};
	const char *socket_name = getenv("CADGE_CONFORMANCE_SOCKET"),
		   *number = getenv("CADGE_CONFORMANCE_RANK");
	char reason[REASON_BYTES] = "", self[PATH_MAX];
	static char **again; /* lives as long as the process */
	bool one_init = false, hosts = false;
	ssize_t length;
	int rc;

	again = calloc((size_t)argc + 1 + ONE_HOST_WORDS, sizeof(*again));
	if (!again)
		return 70;
	for (int i = 0; i < argc; i++)
		if (!(again[i] = strdup(argv[i]))) /* parsing writes into its arguments */
			return 70;
	if (parse(argc, argv, &opt) < 0)
		return 2;
	if (opt.list) {
		for (size_t i = 0; i < tests_count; i++)
			puts(tests[i].name);
		puts(ends_clean);
		return 0;
	}
	if (socket_name) {
		if (!number)
			number = launcher_rank();
		if (!number)
			return 4;
		opt.device = of_rank(opt.device, (unsigned int)atoi(number));
		opt.address = of_rank(opt.address, (unsigned int)atoi(number));
		reports_begin();
		signal(SIGPIPE, SIG_DFL); /* a layer must not need it ignored */
		return rank_main(&opt, socket_name, (unsigned int)atoi(number));
	}
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length > 0) {
		self[length] = 0;
		free(again[0]);
		again[0] = self;
	}
	rc = look_outside(&opt, &one_init, reason, sizeof(reason));
	if (rc == -2)
		return 2;
	if (rc == 1) {
		printf(opt.json ? "[]\n" : "TAP version 13\n1..0 # SKIP %s\n", reason);
		return 77;
	}
	if (rc < 0) {
		struct outcome out = {.verdict = VERDICT_FAIL};

		snprintf(out.reason, sizeof(out.reason), "%s", reason);
		if (!opt.json)
			printf("TAP version 13\n1..1\n");
		report(&opt, "table_is_sound", &out, 1);
		if (opt.json)
			puts("]");
		return 1;
	}
	if (isolate() && strcmp(opt.device, "lo") == 0 && isolate_network() && opt.place == CADGE_PLACE_NET) {
		if (one_init)
			settle_on_one_host(again, argc);
		else
			hosts = hosts_prepare() == 0;
	}
	return run_all(&opt, again, one_init, hosts);
}
