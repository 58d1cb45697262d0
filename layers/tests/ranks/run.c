/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs tests: ranks as processes, in namespaces of their own where that is allowed. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/hosts.h"
#include "tests/conformance/launchers.h"
#include "tests/unit/support/tap.h"
#include "tests/ranks/mpirun.h"
#include "tests/ranks/ranks.h"

enum { DEADLINE_S = 60, SKIPPED = 77 };

bool ranks_by_mpirun;

static const struct rank_test *tests;

/* The `which`th word of a list with commas in the environment, and from the first again behind the last; NULL: there is none. */
static const char *word_of(const char *variable, unsigned int which)
{
	static char words[2][128];
	char *copy = words[strcmp(variable, "RANKS_DEVICES") == 0], *rest = NULL, *word;
	const char *list = getenv(variable);
	unsigned int count = 1;

	if (!list || !*list)
		return NULL;
	snprintf(copy, sizeof(words[0]), "%s", list);
	for (const char *at = copy; *at; at++)
		count += *at == ',';
	word = strtok_r(copy, ",", &rest);
	for (which %= count; word && which; which--)
		word = strtok_r(NULL, ",", &rest);
	return word;
}

static unsigned int deadline_s(void)
{
	const char *wanted = getenv("RANKS_DEADLINE_S");
	const int seconds = wanted ? atoi(wanted) : 0;

	return seconds > 0 ? (unsigned int)seconds : DEADLINE_S;
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Namespaces of our own, as root or as a user who may have some: what killed ranks leave goes with them. */
static bool isolate(void)
{
	const int kinds = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET;
	char users[32], groups[32];

	snprintf(users, sizeof(users), "0 %d 1", (int)getuid());
	snprintf(groups, sizeof(groups), "0 %d 1", (int)getgid());
	if (unshare(kinds) < 0 &&
	    (unshare(kinds | CLONE_NEWUSER) < 0 || !write_file("/proc/self/setgroups", "deny") ||
	     !write_file("/proc/self/uid_map", users) || !write_file("/proc/self/gid_map", groups)))
		return false;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	hide_kernel_symbols();
	return mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") == 0 &&
	       interface_up("lo") == 0;
}

struct running {
	pid_t pid;
	int verdict, ready, go; /* reading, reading, writing */
};

static void make_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		tap_bail("no pipe");
}

/*
 * A rank is this program anew: UCX 1.18 reads a peer's memory at an address of its own, and writes it there, to find out
 * whether it may; between forks that share their addresses that succeeds, and sanitizers stumble over what came.
 */
__attribute__((noreturn)) static void become_rank(size_t test, const struct rank *rank, int ready, int go)
{
	char words[5 + RANKS_MAX][16],
		*args[7 + RANKS_MAX] = {(char *)(uintptr_t)"ranks", (char *)(uintptr_t)"--rank"};
	const int numbers[] = {(int)test,   (int)rank->place, (int)rank->number, rank->verdict,
			       rank->to[0], rank->to[1],      rank->to[2]};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		snprintf(words[i], sizeof(words[i]), "%d", numbers[i]);
		args[2 + i] = words[i];
		if (i >= 3 && numbers[i] >= 0)
			fcntl(numbers[i], F_SETFD, 0);
	}
	args[2 + sizeof(numbers) / sizeof(*numbers)] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	alarm(deadline_s());
	dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is for TAP */
	if (rank->place == CADGE_PLACE_NET && !word_of("RANKS_DEVICES", 0) &&
	    host_enter(rank->number, ready, go) < 0)
		rank_fail(rank, "cannot become a host: %s", strerror(errno));
	execv("/proc/self/exe", args);
	rank_fail(rank, "cannot begin anew: %s", strerror(errno));
}

/* The rank that the words say. */
static int be_rank(char **words)
{
	int numbers[4 + RANKS_MAX];
	const struct rank_test *test;
	struct rank rank;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		numbers[i] = atoi(words[i]);
	test = &tests[numbers[0]];
	rank = (struct rank){
		.number = (unsigned int)numbers[2],
		.count = test->ranks,
		.place = (enum cadge_place)numbers[1],
		.wait_mode = test->block ? CADGE_WAIT_BLOCK : CADGE_WAIT_POLL,
		.device = numbers[1] == CADGE_PLACE_NET ? HOSTS_DEVICE : "lo",
		.address =
			numbers[1] == CADGE_PLACE_NET ? host_address((unsigned int)numbers[2]) : "127.0.0.1",
		.to = {numbers[4], numbers[5], numbers[6]},
		.verdict = numbers[3],
	};
	if (word_of("RANKS_DEVICES", 0)) {
		rank.device = word_of("RANKS_DEVICES", rank.number);
		rank.address = word_of("RANKS_ADDRESSES", rank.number);
	}
	test->run(&rank);
	return 0; /* and not _exit: sanitizers speak at exit */
}

/* The rank that mpirun made this process; its reasons go to stderr. */
static int be_rank_of_mpirun(char **words)
{
	const struct rank_test *test = &tests[atoi(words[0])];
	const char *number = launcher_rank();
	struct rank rank = {
		.number = number ? (unsigned int)atoi(number) : RANKS_MAX,
		.count = test->ranks,
		.place = (enum cadge_place)atoi(words[1]),
		.device = "lo",
		.address = "127.0.0.1",
		.verdict = STDERR_FILENO,
	};

	alarm(DEADLINE_S);
	if (rank.number >= RANKS_MAX || !mpirun_exchange(&rank, words[2])) {
		perror("a rank of mpirun");
		return 1;
	}
	test->run(&rank);
	return 0;
}

/* All ranks of a test, by mpirun. */
static void run_by_mpirun(size_t number, enum cadge_place place)
{
	const struct rank_test *test = &tests[number];
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("no process");
	if (!pid)
		mpirun_become(number, place, test->ranks);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			tap_bail("mpirun is lost");
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		ok(true, "%s, within # SKIP as said on stderr, or there is no mpirun", test->name);
	else
		ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s, within", test->name);
}

static struct running start_rank(size_t test, struct rank *rank, int sockets[RANKS_MAX][RANKS_MAX])
{
	int verdict[2], ready[2], go[2];
	struct running running;

	make_pipe(verdict);
	make_pipe(ready);
	make_pipe(go);
	fflush(stdout);
	running = (struct running){.pid = fork(), .verdict = verdict[0], .ready = ready[0], .go = go[1]};
	if (running.pid < 0)
		tap_bail("no process");
	if (!running.pid) {
		rank->verdict = verdict[1];
		memcpy(rank->to, sockets[rank->number], sizeof(rank->to));
		become_rank(test, rank, ready[1], go[0]);
	}
	close(verdict[1]);
	close(ready[1]);
	close(go[0]);
	return running;
}

/* Where the rank becomes a host, lays its cable. */
static void lay_cable(struct running *running, enum cadge_place place)
{
	char byte;

	if (place == CADGE_PLACE_NET && !word_of("RANKS_DEVICES", 0) && read(running->ready, &byte, 1) == 1 &&
	    host_connect(running->pid) == 0 && write(running->go, "", 1) != 1)
		tap_bail("a host does not hear");
	close(running->ready);
	close(running->go);
}

static void make_sockets(unsigned int ranks, int sockets[RANKS_MAX][RANKS_MAX])
{
	for (unsigned int i = 0; i < RANKS_MAX; i++)
		for (unsigned int j = 0; j < RANKS_MAX; j++)
			sockets[i][j] = -1;
	for (unsigned int i = 0; i < ranks; i++)
		for (unsigned int j = 0; j < i; j++) {
			int pair[2];

			if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
				tap_bail("no sockets");
			sockets[i][j] = pair[0];
			sockets[j][i] = pair[1];
		}
}

/* How a rank ended: 0 well, 1 failed, 77 skipped. Its reason is appended where it has one to tell. */
static int rank_ended(const struct rank_test *test, unsigned int number, struct running *running,
		      char *reason, size_t reason_bytes)
{
	size_t used = strlen(reason);
	int status;
	ssize_t n;

	while (waitpid(running->pid, &status, 0) < 0)
		if (errno != EINTR)
			tap_bail("a rank is lost");
	if (used + 3 < reason_bytes && WIFEXITED(status) && WEXITSTATUS(status)) {
		n = read(running->verdict, reason + used, reason_bytes - used - 3);
		if (n > 0)
			memcpy(reason + used + n, "; ", 3);
	}
	close(running->verdict);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && test->dies >> number & 1)
		return 0;
	if (WIFSIGNALED(status)) {
		used = strlen(reason);
		snprintf(reason + used, reason_bytes - used, "rank %u: %s; ", number,
			 WTERMSIG(status) == SIGALRM ? "took too long" : strsignal(WTERMSIG(status)));
		return 1;
	}
	return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SKIPPED ? WEXITSTATUS(status) : 1;
}

static void run(size_t number, enum cadge_place place)
{
	static const char *const places[] = {"self", "within", "between"};
	const struct rank_test *test = &tests[number];
	int sockets[RANKS_MAX][RANKS_MAX], worst = 0;
	struct running running[RANKS_MAX];
	char reason[1024] = "";

	make_sockets(test->ranks, sockets);
	for (unsigned int i = 0; i < test->ranks; i++) {
		struct rank rank = {.number = i, .place = place};

		running[i] = start_rank(number, &rank, sockets);
		lay_cable(&running[i], place);
	}
	for (unsigned int i = 0; i < RANKS_MAX; i++)
		for (unsigned int j = 0; j < RANKS_MAX; j++)
			if (sockets[i][j] >= 0)
				close(sockets[i][j]);
	for (unsigned int i = 0; i < test->ranks; i++) {
		int how = rank_ended(test, i, &running[i], reason, sizeof(reason));

		worst = how == 1 || worst == 1 ? 1 : how > worst ? how : worst;
	}
	if (worst == SKIPPED)
		ok(true, "%s, %s # SKIP %s", test->name, places[place], reason);
	else
		ok(worst == 0, "%s, %s%s%s", test->name, places[place], worst ? ": " : "",
		   worst ? reason : "");
}

static int run_all(int argc, char **argv, const struct rank_test *list, size_t count, bool in_turn)
{
	const char *only = getenv("RANKS_ONLY"); /* one test's name */
	const bool there = word_of("RANKS_DEVICES", 0) && word_of("RANKS_ADDRESSES", 0);
	bool isolated, hosts;

	tests = list;
	if (argc == 6 + RANKS_MAX && strcmp(argv[1], "--rank") == 0)
		return be_rank(argv + 2);
	if (argc == 5 && strcmp(argv[1], "--mpirun") == 0)
		return be_rank_of_mpirun(argv + 2);
	isolated = there || isolate();
	hosts = there || (isolated && hosts_prepare() == 0);

	for (enum cadge_place place = there ? CADGE_PLACE_NET : CADGE_PLACE_HOST; place <= CADGE_PLACE_NET;
	     place++)
		for (size_t i = 0; i < count; i++) {
			if (only && strcmp(only, tests[i].name) != 0)
				continue;
			if (ranks_by_mpirun && place == CADGE_PLACE_NET)
				continue;
			if (ranks_by_mpirun && (tests[i].dies || tests[i].block)) {
				ok(true, "%s, within # SKIP %s", tests[i].name,
				   tests[i].dies ? "mpirun ends what is left of a job" : "MPI cannot sleep");
				continue;
			}
			if (in_turn && hosts && !ranks_by_mpirun && (place == CADGE_PLACE_NET) != i % 2)
				continue;
			if (place == CADGE_PLACE_NET && !hosts)
				ok(true, "%s, between # SKIP no namespaces for two hosts here",
				   tests[i].name);
			else if (tests[i].dies && !isolated)
				ok(true, "%s, within # SKIP what a killed process leaves would stay",
				   tests[i].name);
			else if (ranks_by_mpirun)
				run_by_mpirun(i, place);
			else
				run(i, place);
		}
	return tap_done();
}

int ranks_run(int argc, char **argv, const struct rank_test *list, size_t count)
{
	return run_all(argc, argv, list, count, false);
}

int ranks_run_styles(int argc, char **argv, const struct rank_test *list, size_t count)
{
	return run_all(argc, argv, list, count, getenv("CADGE_TEST_SHARE") && !getenv("RANKS_ONLY"));
}
