/* SPDX-License-Identifier: BSD-3-Clause */
/* See pair.h. */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALONE = 1, LINKED = 2 }; /* stages: the server is in its namespace; it has its end of the link */

static struct pair *shared;
static pid_t server_pid;

int pair_report(struct pair *pair, int result, const char *format, ...)
{
	va_list list;

	if (!pair->why[0]) {
		va_start(list, format);
		vsnprintf(pair->why, sizeof(pair->why), format, list);
		va_end(list);
	}
	return result;
}

const char *pair_why(void)
{
	return shared && shared->why[0] ? shared->why : "no word of why";
}

bool pair_ip(const char *format, ...)
{
	char line[256], *words[16], *rest = line;
	size_t count = 0;
	va_list list;
	int status;
	pid_t pid;

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	words[count++] = "ip";
	while (count < 15 && (words[count] = strsep(&rest, " ")))
		count++;
	words[count] = NULL;
	pid = fork();
	if (pid == 0) {
		execvp("ip", words);
		execv("/usr/sbin/ip", words);
		execv("/sbin/ip", words);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool pair_server_lives(void)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)server_pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

static bool await(const _Atomic int *word, int value, bool from_server)
{
	while (*word < value) {
		if (from_server && !pair_server_lives())
			return false;
		usleep(500);
	}
	return true;
}

void pair_send(struct pair *pair, const struct pgr *pgr)
{
	size_t bytes = sizeof(pair->address);

	pgr_address(pgr, pair->address, &bytes);
	pair->ready = 1;
}

bool pair_await(struct pair *pair)
{
	return await(&pair->ready, 1, true);
}

static bool has_v6(void)
{
	return access("/proc/net/if_inet6", F_OK) == 0;
}

int pair_open(struct pair *pair, struct pgr_config config, bool client, struct pgr **pgr_out)
{
	char error[256] = "";
	int code;

	config.bytes = sizeof(config);
	config.device = client ? PAIR_CLIENT_DEVICE : PAIR_SERVER_DEVICE;
	config.address = client ? PAIR_CLIENT_ADDRESS : PAIR_SERVER_ADDRESS;
	config.error = error;
	config.error_bytes = sizeof(error);
	code = pgr_open(&config, pgr_out);
	return code == PGR_OK ? PAIR_PASSED
			      : pair_report(pair, code == PGR_E_PERMISSION ? PAIR_SKIPPED : PAIR_FAILED, "%s",
					    error);
}

/* What each process does first: it dies with its parent, and in time. */
static void begin(unsigned int seconds)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	alarm(seconds);
}

static int run_server(bool hosts, unsigned int seconds, pair_side *server, void *arg)
{
	begin(seconds);
	if (hosts) {
		if (unshare(CLONE_NEWNET) < 0)
			return pair_report(shared, PAIR_SKIPPED, "no network namespace: %s", strerror(errno));
		shared->stage = ALONE;
		await(&shared->stage, LINKED, false);
		if (!pair_ip("addr add " PAIR_SERVER_ADDRESS "/24 dev " PAIR_SERVER_DEVICE) ||
		    !pair_ip("link set " PAIR_SERVER_DEVICE " up"))
			return pair_report(shared, PAIR_SKIPPED,
					   "the server's end of a veth pair is not to be had");
		if (has_v6())
			pair_ip("addr add " PAIR_SERVER_ADDRESS_V6 "/64 dev " PAIR_SERVER_DEVICE " nodad");
	}
	return server(shared, arg);
}

/* A veth pair; or two, joined by a bridge whose ports take less than the ends send. */
static bool make_link(void)
{
	if (!shared->narrow_bytes)
		return pair_ip("link add " PAIR_CLIENT_DEVICE " type veth peer name " PAIR_SERVER_DEVICE);
	return pair_ip("link add pgrb type bridge") && pair_ip("link set pgrb up") &&
	       pair_ip("link add " PAIR_CLIENT_DEVICE " type veth peer name pgrc") &&
	       pair_ip("link add " PAIR_SERVER_DEVICE " type veth peer name pgrs") &&
	       pair_ip("link set pgrc mtu %u master pgrb up", shared->narrow_bytes) &&
	       pair_ip("link set pgrs mtu %u master pgrb up", shared->narrow_bytes);
}

static int link_hosts(void)
{
	if (!await(&shared->stage, ALONE, true))
		return PAIR_SKIPPED;
	if (!make_link() || !pair_ip("link set " PAIR_SERVER_DEVICE " netns %d", (int)server_pid) ||
	    !pair_ip("addr add " PAIR_CLIENT_ADDRESS "/24 dev " PAIR_CLIENT_DEVICE) ||
	    !pair_ip("link set " PAIR_CLIENT_DEVICE " up"))
		return pair_report(shared, PAIR_SKIPPED, "no veth pair, no bridge, or no command ip");
	if (has_v6())
		pair_ip("addr add " PAIR_CLIENT_ADDRESS_V6 "/64 dev " PAIR_CLIENT_DEVICE " nodad");
	shared->stage = LINKED;
	return PAIR_PASSED;
}

bool pair_link(bool up)
{
	return pair_ip("link set " PAIR_CLIENT_DEVICE " %s", up ? "up" : "down");
}

static int of_status(int status, const char *who)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status) == PAIR_PASSED || WEXITSTATUS(status) == PAIR_SKIPPED
			       ? WEXITSTATUS(status)
			       : pair_report(shared, PAIR_FAILED, "the %s ended with %d", who,
					     WEXITSTATUS(status));
	if (WTERMSIG(status) == SIGALRM)
		return pair_report(shared, PAIR_FAILED, "the %s was not done in time", who);
	return pair_report(shared, PAIR_FAILED, "the %s died of signal %d", who, WTERMSIG(status));
}

/* The client's process, parent of the server's. */
static int run_client(bool hosts, unsigned int seconds, pair_side *server, pair_side *client, void *arg)
{
	int result = PAIR_PASSED, status;

	begin(seconds);
	if (hosts && unshare(CLONE_NEWNET) < 0)
		return pair_report(shared, PAIR_SKIPPED, "no network namespace: %s", strerror(errno));
	if (!server)
		return client(shared, arg);
	server_pid = fork();
	if (server_pid < 0)
		return pair_report(shared, PAIR_FAILED, "fork: %s", strerror(errno));
	if (server_pid == 0)
		exit(run_server(hosts, seconds, server, arg));
	if (hosts)
		result = link_hosts();
	if (result == PAIR_PASSED)
		result = client(shared, arg);
	else
		kill(server_pid, SIGKILL);
	shared->stop = 1;
	waitpid(server_pid, &status, 0);
	return result == PAIR_SKIPPED || (result == PAIR_FAILED && shared->why[0])
		       ? result
		       : of_status(status, "server") | result;
}

static int run(bool hosts, unsigned int narrow_bytes, unsigned int seconds, pair_side *server,
	       pair_side *client, void *arg)
{
	int status;
	pid_t pid;

	if (!shared) {
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);
		if (shared == MAP_FAILED)
			abort();
	}
	memset(shared, 0, sizeof(*shared));
	shared->narrow_bytes = narrow_bytes;
	fflush(NULL); /* or both would print it */
	pid = fork();
	if (pid == 0)
		exit(run_client(hosts, seconds, server, client, arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return pair_report(shared, PAIR_FAILED, "fork: %s", strerror(errno));
	return of_status(status, "client");
}

int pair_run(bool hosts, unsigned int seconds, pair_side *server, pair_side *client, void *arg)
{
	return run(hosts, 0, seconds, server, client, arg);
}

int pair_run_narrow(unsigned int bytes, unsigned int seconds, pair_side *server, pair_side *client, void *arg)
{
	return run(true, bytes, seconds, server, client, arg);
}
