/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that die hold no ring of a server on shared memory: not of one that sleeps, not where nobody has waited for them, and
 * not where they died while they took it. Clients that live keep theirs, whatever they do. TAP on standard output.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../core/engine.h"
#include "support/alone.h"

enum { SECONDS = 60, RINGS = 64 };
enum { ECHO = 1 };
/* idle polls; a server that gives its turn away after each looks at its rings too seldom where others take such turns */
enum { YIELDS = 256 };
/* how a server waits, and how clients end */
enum { SLEEPS, POLLS, WATCHES };
enum { REAPED, ZOMBIES };
/* An inbox, as far as it is written to here: wires/shm.c. Heads of rings follow its three first lines. */
enum { HEAD_BYTES = 128, HEADS_AT = 192, CLAIMED = 1, READY = 2 };
#define IN_TIME_NS                                                                                           \
	UINT64_C(4000000000) /* of some ms, on a machine that has other work; without help it takes 20 s */

static struct shared {
	_Atomic uint32_t ready, executed, send_stalled;
	uint8_t address[PGR_ADDRESS_BYTES];
} *shared;

struct head {
	_Atomic uint64_t word;
	uint64_t salt;
	struct pgr_to from;
};

static struct pgr *open_end(bool block)
{
	const struct pgr_config config = {.bytes = sizeof(config), .wire = "shm", .block = block};
	struct pgr *pgr;

	if (pgr_open(&config, &pgr) != PGR_OK)
		_exit(FAILED);
	return pgr;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- server ---- */

static void on_echo(void *arg, const struct pgr_request *request)
{
	(void)arg;
	shared->executed++;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

static void serve(int how)
{
	struct pgr *pgr = open_end(how != POLLS);
	size_t bytes = PGR_ADDRESS_BYTES;
	struct pollfd fds[PGR_FDS];
	int found[PGR_FDS];
	uint64_t due_ns, idle = 0;

	pgr_serve(pgr, ECHO, NULL, on_echo, NULL);
	pgr_address(pgr, shared->address, &bytes);
	shared->ready = 1;
	for (;;) {
		if (pgr_poll(pgr) > 0)
			continue;
		if (how == SLEEPS) {
			pgr_wait(pgr, UINT64_MAX);
		} else if (how == WATCHES && pgr_watch(pgr, found, &due_ns) == PGR_OK) {
			for (unsigned int i = 0; i < PGR_FDS; i++)
				fds[i] = (struct pollfd){.fd = found[i], .events = POLLIN};
			poll(fds, PGR_FDS, due_ns == UINT64_MAX ? -1 : (int)(due_ns / 1000000 + 1));
		} else if (how == POLLS && ++idle % YIELDS == 0) {
			sched_yield();
		}
	}
}

static pid_t start_server(int how)
{
	pid_t pid;

	shared->ready = shared->executed = shared->send_stalled = 0;
	pid = alone_fork(SECONDS);
	if (pid == 0)
		serve(how);
	while (!shared->ready)
		usleep(500);
	return pid;
}

/* ---- clients ---- */

static int bind_once(struct pgr *pgr, struct pgr_peer **peer_out)
{
	return pgr_bind(pgr, shared->address, PGR_ADDRESS_BYTES, peer_out);
}

static int bind_in_time(struct pgr *pgr, struct pgr_peer **peer_out)
{
	const uint64_t begin_ns = now_ns();
	int code;

	while ((code = bind_once(pgr, peer_out)) == PGR_E_SERVER_BUSY && now_ns() - begin_ns < IN_TIME_NS)
		poll(NULL, 0, 1);
	return code;
}

static int call(struct pgr_peer *peer)
{
	return pgr_call_and_wait(peer, ECHO, NULL, NULL, 0, NULL, 0, 0, NULL);
}

/* One call; then it lives until it is killed, and calls once more where that is asked for. */
static void be_client(void)
{
	struct pgr_peer *peer;

	if (bind_in_time(open_end(true), &peer) != PGR_OK || call(peer) != PGR_OK)
		_exit(FAILED);
	while (!shared->send_stalled)
		poll(NULL, 0, 5);
	_exit(call(peer) == PGR_OK ? PASSED : FAILED);
}

/* So many clients that have made a call. */
static bool start_clients(pid_t *pids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t before = shared->executed;

		pids[i] = alone_fork(SECONDS);
		if (pids[i] == 0)
			be_client();
		while (shared->executed == before) {
			if (waitpid(pids[i], NULL, WNOHANG) == pids[i])
				return false;
			usleep(500); /* the client and its server may have no core of their own */
		}
	}
	return true;
}

/* A newcomer that is bound and answered. */
static int newcomer(void)
{
	struct pgr *pgr = open_end(true);
	struct pgr_peer *peer;
	int code = bind_in_time(pgr, &peer);

	if (code == PGR_OK)
		code = call(peer);
	pgr_close(pgr);
	return code;
}

static struct head *heads(void)
{
	struct {
		uint32_t pid, fd;
	} at;
	char path[64];
	uint8_t *inbox;
	int fd;

	memcpy(&at, shared->address, sizeof(at));
	snprintf(path, sizeof(path), "/proc/%u/fd/%u", at.pid, at.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	inbox = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (inbox == MAP_FAILED)
		_exit(FAILED);
	return (struct head *)(void *)(inbox + HEADS_AT);
}

static struct head *head_at(struct head *first, unsigned int number)
{
	return (struct head *)(void *)((uint8_t *)first + (size_t)number * HEAD_BYTES);
}

/* ---- the tests, each in a process of its own ---- */

static int killed(int how, int ended)
{
	const pid_t server = start_server(how);
	pid_t pids[RINGS];
	struct pgr *pgr;
	struct pgr_peer *peer;
	int code;

	if (!start_clients(pids, RINGS))
		return say("no 64 clients");
	pgr = open_end(true);
	code = bind_once(pgr, &peer);
	pgr_close(pgr);
	if (code != PGR_E_SERVER_BUSY)
		return say("a 65th client that lives was not refused");
	for (unsigned int i = 0; i < RINGS; i++) {
		siginfo_t info;

		kill(pids[i], SIGKILL);
		/* a signal only asks: a process that has not had its turn since then is alive */
		waitid(P_PID, (id_t)pids[i], &info, WEXITED | (ended == REAPED ? 0 : WNOWAIT));
	}
	/* the first one is not sent away; the others are no more than one that has ended, since each closes its ring */
	pgr = open_end(true);
	code = bind_once(pgr, &peer);
	pgr_close(pgr);
	if (code != PGR_OK)
		return say("the first newcomer is not let in at once: %s", pgr_code_name(code));
	for (unsigned int i = 0; i < RINGS; i++)
		if (newcomer() != PGR_OK)
			return say("a newcomer does not get in");
	end(server);
	return PASSED;
}

static int sleeping(void)
{
	return killed(SLEEPS, REAPED);
}

static int sleeping_zombies(void)
{
	return killed(SLEEPS, ZOMBIES);
}

static int watching(void)
{
	return killed(WATCHES, REAPED);
}

static int polling_zombies(void)
{
	return killed(POLLS, ZOMBIES);
}

/* Those who live, though they are stopped, stay; all that newcomers try changes nothing for them. */
static int stopped(void)
{
	const pid_t server = start_server(SLEEPS);
	pid_t pids[RINGS];
	struct pgr_peer *peer;
	struct pgr *pgr;
	int status;

	if (!start_clients(pids, RINGS))
		return say("no 64 clients");
	end(pids[7]);
	for (unsigned int i = 0; i < RINGS; i++)
		if (i != 7)
			kill(pids[i], SIGSTOP);
	if (newcomer() != PGR_OK)
		return say("the place of one that died was not given");
	pids[7] = alone_fork(SECONDS);
	if (pids[7] == 0)
		be_client();
	while (shared->executed < RINGS + 2)
		usleep(500);
	pgr = open_end(true);
	for (unsigned int i = 0; i < 50; i++) {
		if (bind_once(pgr, &peer) != PGR_E_SERVER_BUSY)
			return say("a client that is stopped was taken for dead");
		poll(NULL, 0, 1);
	}
	shared->send_stalled = 1;
	for (unsigned int i = 0; i < RINGS; i++) {
		kill(pids[i], SIGCONT);
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			return say("a client that was stopped lost its ring");
	}
	end(server);
	return PASSED;
}

static void *rest_of_the_process(void *arg)
{
	(void)arg;
	be_client();
	return NULL;
}

/* A process whose first thread has ended: nothing that it has open can be seen from outside, but it lives. */
static int first_thread_ended(void)
{
	const pid_t server = start_server(SLEEPS);
	struct pgr_peer *peer;
	struct pgr *pgr;
	pid_t pids[RINGS];
	int status;

	pids[0] = alone_fork(SECONDS);
	if (pids[0] == 0) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, rest_of_the_process, NULL) == 0)
			while (!shared->executed)
				usleep(500);
		syscall(SYS_exit, 0);
	}
	while (!shared->executed)
		usleep(500);
	if (!start_clients(pids + 1, RINGS - 1))
		return say("no 63 more clients");
	pgr = open_end(true);
	for (unsigned int i = 0; i < 50; i++) {
		if (bind_once(pgr, &peer) != PGR_E_SERVER_BUSY)
			return say("a process without its first thread was taken for dead");
		poll(NULL, 0, 1);
	}
	shared->send_stalled = 1;
	if (waitpid(pids[0], &status, 0) != pids[0] || status != 0)
		return say("a process without its first thread lost its ring");
	end(server);
	return PASSED;
}

/* The number of a client that died has gone to another process. */
static int number_of_another(void)
{
	const pid_t server = start_server(SLEEPS), stranger = alone_fork(SECONDS);
	struct head *first;
	pid_t pids[RINGS];

	if (stranger == 0)
		for (;;)
			pause();
	if (!start_clients(pids, RINGS))
		return say("no 64 clients");
	first = heads();
	for (unsigned int i = 0; i < RINGS; i++) {
		struct head *head = head_at(first, i);
		const uint32_t number = (uint32_t)stranger;

		if ((head->word & 0xff) != READY || (pid_t)(head->word >> 32) != pids[i])
			return say("a ring's head is not where it was");
		end(pids[i]);
		head->word = (head->word & UINT32_MAX) | (uint64_t)number << 32;
		memcpy(head->from.bytes, &number, sizeof(number));
	}
	if (newcomer() != PGR_OK)
		return say("a stranger with a dead client's number keeps newcomers out");
	end(stranger);
	end(server);
	return PASSED;
}

/* They died while they took a ring. */
static int half_way(void)
{
	const pid_t server = start_server(SLEEPS);
	struct pgr_peer *peers[RINGS], *peer;
	struct head *first = heads();
	struct pgr *pgr;
	pid_t dead;

	dead = alone_fork(SECONDS);
	if (dead == 0)
		_exit(0);
	waitpid(dead, NULL, 0);
	for (unsigned int i = 0; i < RINGS; i++)
		head_at(first, i)->word = (uint64_t)(i % 2 ? dead : server) << 32 | CLAIMED;
	pgr = open_end(true);
	for (unsigned int i = 0; i < RINGS / 2; i++) {
		struct pgr *each = open_end(true);

		if (bind_once(each, &peers[i]) != PGR_OK || call(peers[i]) != PGR_OK)
			return say("what was half taken is lost");
	}
	if (bind_once(pgr, &peer) != PGR_E_SERVER_BUSY)
		return say("a ring was taken from one that is about to take it");
	end(server);
	return PASSED;
}

/* In another space of numbers a client's own number means another process to its server. */
static int another_space(void)
{
	const pid_t server = start_server(SLEEPS);
	int status;
	pid_t pid;

	pid = alone_fork(SECONDS);
	if (pid == 0) {
		struct pgr_peer *peer;

		if (unshare(CLONE_NEWPID) < 0)
			_exit(SKIPPED);
		pid = alone_fork(SECONDS);
		if (pid == 0)
			_exit(bind_once(open_end(true), &peer) == PGR_E_WIRE ? PASSED : FAILED);
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : FAILED);
	}
	waitpid(pid, &status, 0);
	end(server);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		return SKIPPED;
	return status == 0 ? PASSED : say("a client of another space of numbers is bound");
}

int main(void)
{
	static const struct alone_test tests[] = {
		{"64 clients were killed, the server sleeps", sleeping},
		{"nobody has waited for them", sleeping_zombies},
		{"the server watches", watching},
		{"the server polls, nobody has waited for them", polling_zombies},
		{"clients that are stopped keep their rings", stopped},
		{"a client whose first thread has ended keeps its ring", first_thread_ended},
		{"another process has a dead client's number", number_of_another},
		{"clients died while they took a ring", half_way},
		{"another space of numbers", another_space},
	};
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return alone_run(
		&(struct alone){.seconds = SECONDS, .skip = "no namespace is to be had", .leaves = true},
		tests, sizeof(tests) / sizeof(tests[0]));
}
