/* SPDX-License-Identifier: BSD-3-Clause */
/* See referee.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hosts.h"
#include "launchers.h"
#include "referee.h"
#include "reports.h"
#include "stacks.h"

int set_init(struct set *set, const struct options *opt, char **argv, bool mpirun, bool hosts)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t length;

	memset(set, 0, sizeof(*set));
	set->opt = opt;
	set->argv = argv;
	set->mpirun = mpirun;
	set->hosts = hosts;
	for (unsigned int i = 0; i < RANKS_MAX; i++)
		set->socks[i] = -1;
	snprintf(set->socket_name, sizeof(set->socket_name), "cadge-conformance-%d-%llx", (int)getpid(),
		 (unsigned long long)mix64(now_ns()));
	length = strlen(set->socket_name);
	memcpy(at.sun_path + 1, set->socket_name, length);
	set->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (set->listener < 0 ||
	    bind(set->listener, (const void *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0 ||
	    listen(set->listener, RANKS_MAX) < 0) {
		perror("cadge-conformance: cannot listen");
		return -1;
	}
	return reports_prepare();
}

void set_free(struct set *set)
{
	set_kill(set);
	close(set->listener);
	reports_end();
}

static void rank_exec(struct set *set, unsigned int number, int ready_fd, int go_fd)
{
	char text[16], *args[64];
	unsigned int n = 0;
	int sock;

	snprintf(text, sizeof(text), "%u", number);
	setenv("CADGE_CONFORMANCE_RANK", text, 1);
	for (char **arg = set->argv; *arg && n < 59; arg++)
		args[n++] = *arg;
	if (set->hosts) {
		/* The referee's socket cannot be reached from another network namespace: connect first. */
		sock = referee_connect(set->socket_name);
		if (sock < 0 || fcntl(sock, F_SETFD, 0) < 0 || host_enter(number, ready_fd, go_fd) < 0)
			_exit(126);
		snprintf(text, sizeof(text), "%d", sock);
		setenv("CADGE_CONFORMANCE_FD", text, 1);
		args[n++] = (char *)(uintptr_t)"--device";
		args[n++] = (char *)(uintptr_t)HOSTS_DEVICE;
		args[n++] = (char *)(uintptr_t)"--address";
		args[n++] = (char *)(uintptr_t)host_address(number);
	}
	args[n] = NULL;
	execv("/proc/self/exe", args);
	_exit(127);
}

__attribute__((noreturn)) static void mpirun_exec(struct set *set, unsigned int ranks)
{
	launcher_become(set->opt->mpirun, ranks, true, set->argv);
	fprintf(stderr, "cadge-conformance: cannot start %s: %s\n", set->opt->mpirun,
		errno ? strerror(errno) : "it is no launcher that this suite knows");
	_exit(127);
}

/* Forks rank `number`, or mpirun for all of them. With hosts, returns when the cable to it lies. */
static int spawn(struct set *set, unsigned int number, unsigned int ranks, pid_t *pid_out)
{
	int null, ready[2], go[2], rc = 0;
	char byte;
	pid_t pid;

	fflush(stdout);
	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		null = open("/dev/null", O_RDONLY);
		if (null >= 0)
			dup2(null, STDIN_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is for TAP */
		setenv("CADGE_CONFORMANCE_SOCKET", set->socket_name, 1);
		if (set->mpirun)
			mpirun_exec(set, ranks);
		close(ready[0]);
		rank_exec(set, number, ready[1], go[0]);
	}
	*pid_out = pid;
	close(ready[1]);
	close(go[0]);
	if (set->hosts &&
	    (read(ready[0], &byte, 1) != 1 || host_connect(pid) < 0 || write(go[1], "", 1) != 1)) {
		fputs("cadge-conformance: cannot make an emulated host\n", stderr);
		rc = -1;
	}
	close(ready[0]);
	close(go[1]);
	return rc;
}

/* Waits until one rank says hello. */
static int greet(struct set *set, uint64_t until_ns)
{
	struct pollfd pfd = {.fd = set->listener, .events = POLLIN};
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct packet p;
	uint64_t now = now_ns();
	int sock;

	if (now >= until_ns || poll(&pfd, 1, (int)((until_ns - now) / NS_PER_MS) + 1) <= 0)
		return -1;
	sock = accept4(set->listener, NULL, NULL, SOCK_CLOEXEC);
	if (sock < 0)
		return -1;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != getuid() ||
	    recv(sock, &p, sizeof(p), 0) < (ssize_t)PACKET_HEAD_BYTES || p.kind != PACKET_HELLO ||
	    p.rank >= set->ranks || set->socks[p.rank] >= 0) {
		close(sock);
		return -1;
	}
	set->socks[p.rank] = sock;
	set->pids[p.rank] = (pid_t)p.value;
	return 0;
}

static int set_start(struct set *set, unsigned int ranks)
{
	uint64_t until = now_ns() + 30 * NS_PER_S * set->opt->scale;
	struct packet p = {.kind = PACKET_PEERS, .value = ranks};

	set->ranks = ranks;
	set->launcher = 0;
	memset(set->pids, 0, sizeof(set->pids));
	for (unsigned int i = 0; i < (set->mpirun ? 1 : ranks); i++)
		if (spawn(set, i, ranks, set->mpirun ? &set->launcher : &set->pids[i]) < 0)
			return -1;
	for (unsigned int i = 0; i < ranks; i++)
		if (greet(set, until) < 0)
			return -1;
	p.bytes = (uint32_t)(ranks * sizeof(pid_t));
	memcpy(p.data, set->pids, p.bytes);
	for (unsigned int i = 0; i < ranks; i++) {
		snprintf(set->notes[i], sizeof(set->notes[i]), "started");
		if (send(set->socks[i], &p, PACKET_HEAD_BYTES + p.bytes, MSG_NOSIGNAL) < 0)
			return -1;
	}
	return 0;
}

static void socks_close(struct set *set)
{
	for (unsigned int i = 0; i < RANKS_MAX; i++) {
		if (set->socks[i] >= 0)
			close(set->socks[i]);
		set->socks[i] = -1;
	}
}

/* Waits for a child for a while. True when it is gone; *status_out is then its wait status. */
static bool reap(pid_t pid, uint64_t wait_ns, int *status_out)
{
	struct timespec nap = {.tv_nsec = 2000000};
	uint64_t began = now_ns();
	pid_t got;

	while ((got = waitpid(pid, status_out, WNOHANG)) == 0 && now_ns() - began < wait_ns)
		nanosleep(&nap, NULL);
	return got == pid;
}

void set_kill(struct set *set)
{
	char summary[REASON_BYTES];
	int status;

	/* Under mpirun the ranks are its children; they are ours all the same, by the pid that they told. */
	for (unsigned int i = 0; i < set->ranks; i++)
		if (set->pids[i] > 0)
			kill(set->pids[i], SIGKILL);
	socks_close(set);
	if (set->launcher > 0 && !reap(set->launcher, 2 * NS_PER_S, &status)) {
		kill(set->launcher, SIGTERM);
		if (!reap(set->launcher, 2 * NS_PER_S, &status)) {
			kill(set->launcher, SIGKILL);
			reap(set->launcher, 5 * NS_PER_S, &status);
		}
	}
	for (unsigned int i = 0; !set->mpirun && i < set->ranks; i++)
		if (set->pids[i] > 0)
			reap(set->pids[i], 5 * NS_PER_S, &status);
	reports_take(summary, sizeof(summary));
	set->ranks = 0;
	set->launcher = 0;
}

static void describe_status(char *out, size_t bytes, const char *who, int status)
{
	if (WIFSIGNALED(status))
		snprintf(out, bytes, "%s was killed by signal %d (%s)", who, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(out, bytes, "%s ended with code %d%s", who, WEXITSTATUS(status),
			 UNDER_SANITIZER && WEXITSTATUS(status) ? " (a sanitizer reports on stderr)" : "");
}

/* The part of a layer's name that its files have: of am-foo, of am-foo@label and of a module am-foo.so, foo. */
static const char *describe_substrate(const struct options *opt, int *letters)
{
	const char *name = opt->layer ? opt->layer : opt->module, *slash = strrchr(name, '/');
	const char *dash = strchr(slash ? slash + 1 : name, '-');

	*letters = dash ? (int)strcspn(dash + 1, "@.") : 4;
	return dash ? dash + 1 : "NAME";
}

/* Adds what sanitizers reported of ranks to the reason, and what to do about a library's leak. False: nothing. */
static bool describe_reports(const struct options *opt, char *reason, size_t reason_bytes)
{
	size_t ended = strlen(reason);
	char summary[REASON_BYTES];
	const char *said, *substrate;
	int letters;

	if (!reports_take(summary, sizeof(summary)))
		return false;
	said = ended ? strchr(summary, ':') : summary; /* how a rank ended says that a sanitizer reports */
	substrate = describe_substrate(opt, &letters);
	snprintf(reason + ended, reason_bytes - ended, "%s", said ? said : "");
	ended = strlen(reason);
	if (strstr(summary, " leaked in ")) { /* a sentence with a full stop, which goes on here */
		ended -= ended && reason[ended - 1] == '.';
		snprintf(reason + ended, reason_bytes - ended,
			 "; if the library leaks and not the adapter, add leak:FUNCTION to %.*s.supp beside "
			 "the layer file",
			 letters, substrate);
	}
	return true;
}

int set_quit(struct set *set, char *reason, size_t reason_bytes)
{
	struct packet p = {.kind = PACKET_QUIT};
	char who[32];
	int status, result = 0;

	if (set->unclean[0]) {
		snprintf(reason, reason_bytes, "%s", set->unclean);
		set_kill(set);
		return -1;
	}
	if (!set->ranks)
		return 0;
	for (unsigned int i = 0; i < set->ranks; i++)
		if (set->socks[i] >= 0 && send(set->socks[i], &p, PACKET_HEAD_BYTES, MSG_NOSIGNAL) < 0)
			result = -1;
	if (result < 0)
		snprintf(reason, reason_bytes, "a rank ended before it was asked to");
	for (unsigned int i = 0; i < (set->mpirun ? 1 : set->ranks) && !result; i++) {
		snprintf(who, sizeof(who), set->mpirun ? "mpirun" : "rank %u", i);
		if (!reap(set->mpirun ? set->launcher : set->pids[i], 10 * NS_PER_S * set->opt->scale,
			  &status)) {
			snprintf(reason, reason_bytes, "%s did not end within 10 s of being asked to", who);
			stacks_print(set, "ends_clean");
			result = -1;
			break;
		}
		if (set->mpirun)
			set->launcher = 0;
		else
			set->pids[i] = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			describe_status(reason, reason_bytes, who, status);
			result = -1;
		}
	}
	if (set->mpirun && !result)
		memset(set->pids, 0, sizeof(set->pids));
	/* Ranks may have ended with 0, as far as their launcher says. */
	if (describe_reports(set->opt, reason, reason_bytes))
		result = -1;
	set_kill(set);
	return result;
}

/* Why the socket of a rank closed. */
static void describe_death(struct set *set, unsigned int i, struct outcome *out)
{
	char who[64];
	int status;

	snprintf(who, sizeof(who), "rank %u (last seen: %s)", i, set->notes[i]);
	if (!set->mpirun && reap(set->pids[i], 2 * NS_PER_S, &status)) {
		set->pids[i] = 0;
		describe_status(out->reason, sizeof(out->reason), who, status);
	} else {
		snprintf(out->reason, sizeof(out->reason), "%s died", who);
	}
	out->verdict = VERDICT_FAIL;
}

/* A rank that just died explains what rank i says of it, which may come first: the channels close before the process has ended. */
static void blame_the_dead(struct set *set, unsigned int i, struct outcome *out)
{
	char who[64];
	int status;

	for (unsigned int k = 0; !set->mpirun && k < set->ranks; k++)
		if (k != i && set->pids[k] > 0 && reap(set->pids[k], NS_PER_S / 10, &status)) {
			set->pids[k] = 0;
			snprintf(who, sizeof(who), "rank %u (last seen: %s)", k, set->notes[k]);
			describe_status(out->reason, sizeof(out->reason), who, status);
		}
}

/* Takes one packet of rank i. Returns true when the test is decided (out is filled). */
static bool packet_handle(struct set *set, unsigned int i, const struct test *test, enum verdict *verdicts,
			  struct outcome *out)
{
	struct packet p;
	ssize_t n = recv(set->socks[i], &p, sizeof(p), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < (ssize_t)PACKET_HEAD_BYTES) {
		close(set->socks[i]);
		set->socks[i] = -1;
		if (test->ends_set && i != 0)
			return false;
		describe_death(set, i, out);
		return true;
	}
	switch (p.kind) {
	case PACKET_NOTE:
		snprintf(set->notes[i], sizeof(set->notes[i]), "%.*s", (int)p.bytes, (const char *)p.data);
		break;
	case PACKET_DATA:
		if (p.rank < set->ranks && set->socks[p.rank] >= 0) {
			unsigned int to = p.rank;

			p.rank = i;
			if (send(set->socks[to], &p, (size_t)n, MSG_NOSIGNAL) < 0)
				snprintf(set->notes[to], sizeof(set->notes[to]), "cannot be reached");
		}
		break;
	case PACKET_VERDICT:
		verdicts[i] = p.value;
		if (p.value == VERDICT_FAIL) {
			out->verdict = VERDICT_FAIL;
			snprintf(out->reason, sizeof(out->reason), "%.*s", (int)p.bytes,
				 (const char *)p.data);
			if (!test->ends_set)
				blame_the_dead(set, i, out);
			return true;
		}
		if (p.value == VERDICT_SKIP && !out->reason[0])
			snprintf(out->reason, sizeof(out->reason), "%.*s", (int)p.bytes,
				 (const char *)p.data);
		break;
	default: break;
	}
	for (unsigned int k = 0; k < (test->ends_set ? 1 : set->ranks); k++) {
		if (verdicts[k] == VERDICT_NONE)
			return false;
		out->verdict = verdicts[k] == VERDICT_SKIP || out->verdict == VERDICT_SKIP ? VERDICT_SKIP
											   : VERDICT_OK;
	}
	return true;
}

static void set_referee(struct set *set, const struct test *test, uint64_t until_ns, struct outcome *out)
{
	enum verdict verdicts[RANKS_MAX] = {VERDICT_NONE};
	struct pollfd pfds[RANKS_MAX];
	uint64_t now;

	for (;;) {
		now = now_ns();
		if (now >= until_ns) {
			out->verdict = VERDICT_FAIL;
			snprintf(out->reason, sizeof(out->reason),
				 "no verdict in time; rank 0 last seen: %s%s%s", set->notes[0],
				 set->ranks > 1 ? ", rank 1: " : "", set->ranks > 1 ? set->notes[1] : "");
			stacks_print(set, test->name);
			return;
		}
		for (unsigned int i = 0; i < set->ranks; i++)
			pfds[i] = (struct pollfd){.fd = set->socks[i], .events = POLLIN};
		if (poll(pfds, set->ranks, (int)((until_ns - now) / NS_PER_MS) + 1) <= 0)
			continue;
		for (unsigned int i = 0; i < set->ranks; i++)
			if ((pfds[i].revents & (POLLIN | POLLHUP | POLLERR)) &&
			    packet_handle(set, i, test, verdicts, out))
				return;
	}
}

void set_run(struct set *set, unsigned int index, struct outcome *out)
{
	const struct test *test = &tests[index];
	unsigned int ranks = set->opt->place == CADGE_PLACE_SELF ? 1 : test->ranks;
	struct packet p = {.kind = PACKET_RUN, .value = index};
	unsigned int deadline_s = test->deadline_s;
	uint64_t began;

	if (set->opt->deadline_s && set->opt->deadline_s < deadline_s)
		deadline_s = set->opt->deadline_s;
	memset(out, 0, sizeof(*out));
	/* How the last set ends is no matter of this test: set_quit keeps it for the end. */
	if (set->ranks && set->ranks != ranks && set_quit(set, out->reason, sizeof(out->reason)) < 0) {
		snprintf(set->unclean, sizeof(set->unclean), "%s", out->reason);
		out->reason[0] = 0;
	}
	if (!set->ranks && set_start(set, ranks) < 0) {
		out->verdict = VERDICT_FAIL;
		snprintf(out->reason, sizeof(out->reason), "processes that could not be started: %u", ranks);
		set_kill(set);
		return;
	}
	began = now_ns();
	for (unsigned int i = 0; i < ranks; i++) {
		snprintf(set->notes[i], sizeof(set->notes[i]), "beginning");
		/* A rank that is gone is found by its closed socket. */
		if (send(set->socks[i], &p, PACKET_HEAD_BYTES, MSG_NOSIGNAL) < 0)
			snprintf(set->notes[i], sizeof(set->notes[i]), "ended before it began");
	}
	set_referee(set, test, began + deadline_s * NS_PER_S * set->opt->scale, out);
	out->took_ns = now_ns() - began;
	if (out->verdict == VERDICT_FAIL || test->ends_set)
		set_kill(set);
}
