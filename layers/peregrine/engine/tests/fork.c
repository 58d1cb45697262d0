/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that a fork has copied: in the child they are closed, whoever made the child and wherever it was made, and what the
 * child does with them, its end included, changes nothing for its parent or its parent's peers. TAP on standard output.
 */
#include <arpa/inet.h>
#include <linux/sched.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/pair.h"

enum { SECONDS = 40, CALLS = 200, LONG_BYTES = 300000, SLOTS = 64 };
enum { ECHO = 1, FORK };
enum { BY_FORK, BY_CLONE };

struct how {
	const char *wire;
	int made; /* BY_FORK, or BY_CLONE: without what the C library does at a fork */
};

static struct seen {
	_Atomic uint32_t executed[2 * CALLS]; /* by number */
	_Atomic uint32_t in_child;            /* handlers and continuations that ran in a child */
	_Atomic uint32_t children;            /* that came to their end as they should */
} *seen;
static pid_t opener;

static pid_t make_child(const struct how *how)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	const long pid = how->made == BY_FORK ? fork() : syscall(SYS_clone3, &args, sizeof(args));

	return (pid_t)pid;
}

static struct pgr *open_end(struct pair *pair, const struct how *how)
{
	char error[200] = "";
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = how->wire,
					  .address = "127.0.0.1",
					  .block = 1,
					  .give_up_ns = UINT64_C(5000000000),
					  .error = error,
					  .error_bytes = sizeof(error)};
	struct pgr *pgr = NULL;

	if (pgr_open(&config, &pgr) != PGR_OK)
		pair_report(pair, PAIR_FAILED, "%s", error);
	opener = getpid();
	return pgr;
}

/* Whether the child ended with 0. */
static bool ended_well(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void poll_once(struct pgr *pgr)
{
	if (pgr_poll(pgr) == 0)
		pgr_wait(pgr, UINT64_C(2000000));
}

/* ---- server ---- */

static void on_echo(void *arg, const struct pgr_request *request)
{
	/* what fits into a packet: arguments of more are not lent for as long as a result of more is */
	const struct pgr_iov iov = {(void *)(uintptr_t)request->args,
				    request->args_bytes < 8 ? request->args_bytes : 8};
	uint32_t number;

	(void)arg;
	seen->in_child += getpid() != opener;
	memcpy(&number, request->args, sizeof(number));
	if (number < 2 * CALLS)
		seen->executed[number]++;
	pgr_reply(request->pgr, &request->token, &iov, 1, 0, NULL, NULL);
}

/* The child leaves as a child may: it returns from the handler, and finds the endpoint closed. */
static void on_fork(void *arg, const struct pgr_request *request)
{
	const pid_t pid = make_child(arg);
	const int code = pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);

	if (pid > 0)
		ended_well(pid);
	else
		seen->children += code == PGR_E_CLOSED;
}

static int serve(struct pair *pair, void *arg)
{
	struct pgr *pgr = open_end(pair, arg);
	int code = PGR_OK;

	if (!pgr)
		return PAIR_FAILED;
	pgr_serve(pgr, ECHO, NULL, on_echo, NULL);
	pgr_serve(pgr, FORK, NULL, on_fork, arg);
	pair_send(pair, pgr);
	while (!pair->stop && code >= 0) {
		code = pgr_poll(pgr);
		if (getpid() != opener)
			break;
		pgr_wait(pgr, UINT64_C(2000000));
	}
	if (getpid() != opener) {
		seen->children += pgr_poll(pgr) == PGR_E_CLOSED;
		pgr_close(pgr);
		_exit(0);
	}
	pgr_close(pgr);
	return PAIR_PASSED;
}

/* ---- client ---- */

static struct pgr *pgr;
static struct pgr_peer *peer;

/* A call whose result is its own: 0, or what is wrong. */
static int call(uint32_t number)
{
	uint32_t in[2] = {number, ~number}, out[2] = {0};
	size_t bytes = 0;
	const int code = pgr_call_and_wait(peer, ECHO, NULL, &(struct pgr_iov){in, sizeof(in)}, 1,
					   &(struct pgr_iov){out, sizeof(out)}, 1, 0, &bytes);

	if (code != PGR_OK)
		return code;
	return bytes != sizeof(in) || memcmp(in, out, sizeof(in)) != 0;
}

static int begin(struct pair *pair, const struct how *how)
{
	pgr = open_end(pair, how);
	if (!pgr)
		return PAIR_FAILED;
	if (!pair_await(pair) || pgr_bind(pgr, pair->address, PGR_ADDRESS_BYTES, &peer) != PGR_OK ||
	    call(UINT32_MAX) != 0)
		return pair_report(pair, PAIR_FAILED, "no server");
	return PAIR_PASSED;
}

/* So many calls of the parent's own, from this number on. */
static int send_stalled(struct pair *pair, uint32_t from)
{
	for (uint32_t i = from; i < from + CALLS; i++) {
		const int code = call(i);

		if (code || seen->executed[i] != 1)
			return pair_report(pair, PAIR_FAILED, "call %u: %s, executed %u times", i,
					   code == 1 ? "another one's result" : pgr_code_name(code),
					   seen->executed[i]);
	}
	return PAIR_PASSED;
}

static int both_go_on(struct pair *pair, void *arg)
{
	const struct how *how = arg;
	uint32_t taken = 0;
	int result;
	pid_t pid;

	if (begin(pair, how) != PAIR_PASSED)
		return PAIR_FAILED;
	pid = make_child(how);
	if (pid == 0) {
		for (uint32_t i = 0; i < CALLS; i++)
			taken += call(CALLS + i) != PGR_E_CLOSED;
		_exit(taken != 0);
	}
	result = send_stalled(pair, 0);
	if (!ended_well(pid) && result == PAIR_PASSED)
		result = pair_report(pair, PAIR_FAILED, "a call of the child was not answered with closed");
	pgr_close(pgr);
	return result;
}

static void nothing(void *arg, int code, const void *result, size_t bytes)
{
	(void)arg, (void)code, (void)result, (void)bytes;
	seen->in_child += getpid() != opener;
}

/* What the child gets from the function of this number; PGR_E_CLOSED is right. INT32_MAX: there are no more. */
static int use(const struct pair *pair, unsigned int which)
{
	uint8_t address[PGR_ADDRESS_BYTES];
	struct pgr_peer *another = NULL;
	struct pgr_token token = {{0}};
	int fds[PGR_FDS];
	uint64_t due_ns;

	memcpy(address, pair->address, sizeof(address));
	switch (which) {
	case 0: return pgr_poll(pgr);
	case 1: return pgr_wait(pgr, UINT64_C(1000000));
	case 2: return pgr_watch(pgr, fds, &due_ns);
	case 3: return pgr_call(peer, ECHO, NULL, NULL, 0, NULL, 0, 0, nothing, NULL);
	case 4: return pgr_call_and_wait(peer, ECHO, NULL, NULL, 0, NULL, 0, 0, NULL);
	case 5: return pgr_bind(pgr, address, sizeof(address), &another);
	case 6: return pgr_serve(pgr, 77, NULL, on_echo, NULL);
	case 7: return pgr_reply(pgr, &token, NULL, 0, 0, NULL, NULL);
	case 8: return pgr_fail(pgr, &token, PGR_E_PROCEDURE_OWN);
	case 9: return pgr_delegate(peer, &token, ECHO, NULL, 0);
	case 10: return pgr_delegations_from(pgr, address, sizeof(address), 1);
	case 11: return pgr_alloc(pgr, 4096) ? PGR_OK : PGR_E_CLOSED;
	case 12:
		return pgr_drain(pgr) || pgr_cancel(peer, NULL) || pgr_deadline(peer, NULL, 1) ? PGR_OK
											       : PGR_E_CLOSED;
	default: return INT32_MAX;
	}
}

/* While calls of the parent's are outstanding, held back among them, and memory of its is read in place. */
static int every_function(struct pair *pair, void *arg)
{
	const struct how *how = arg;
	uint8_t *memory;
	int result, code;
	pid_t pid;

	if (begin(pair, how) != PAIR_PASSED || !(memory = pgr_alloc(pgr, LONG_BYTES)))
		return PAIR_FAILED;
	for (unsigned int i = 0; i < SLOTS / 2; i++)
		pgr_call(peer, ECHO, NULL, &(struct pgr_iov){&(uint32_t){UINT32_MAX}, sizeof(uint32_t)}, 1,
			 NULL, 0, PGR_MORE, nothing, NULL);
	memset(memory, 0xff, LONG_BYTES);
	pgr_call(peer, ECHO, NULL, &(struct pgr_iov){memory, LONG_BYTES}, 1, NULL, 0, 0, nothing, NULL);
	pid = make_child(how);
	if (pid == 0) {
		for (unsigned int i = 0; (code = use(pair, i)) != INT32_MAX; i++)
			if (code != PGR_E_CLOSED)
				_exit((int)i + 1);
		pgr_free(pgr, memory);
		pgr_flush(pgr);
		pgr_unbind(peer);
		pgr_close(pgr);
		_exit(0);
	}
	if (waitpid(pid, &code, 0) != pid || code != 0)
		return pair_report(pair, PAIR_FAILED, "function %d of the child: not closed",
				   WEXITSTATUS(code) - 1);
	while (peer->free != UINT64_MAX)
		poll_once(pgr);
	if (seen->in_child)
		return pair_report(pair, PAIR_FAILED, "%u events in the child", seen->in_child);
	result = send_stalled(pair, 0);
	memset(memory, 0xff, LONG_BYTES);
	code = pgr_call_and_wait(peer, ECHO, NULL, &(struct pgr_iov){memory, LONG_BYTES}, 1, NULL, 0, 0,
				 NULL);
	if (code != PGR_OK)
		result = pair_report(pair, PAIR_FAILED, "memory of pgr_alloc: %s", pgr_code_name(code));
	pgr_close(pgr);
	return result;
}

/* The server's child returns into a poll that has more to do; then its endpoint takes newcomers as before. */
static int in_handler(struct pair *pair, void *arg)
{
	uint32_t numbers[SLOTS];

	if (begin(pair, arg) != PAIR_PASSED)
		return PAIR_FAILED;
	for (uint32_t i = 0; i < SLOTS; i++) {
		const uint32_t procedure = i == 3 || i == 40 ? FORK : ECHO;

		numbers[i] = CALLS + i;
		pgr_call(peer, procedure, NULL, &(struct pgr_iov){&numbers[i], sizeof(numbers[i])}, 1, NULL,
			 0, PGR_MORE, nothing, NULL);
	}
	pgr_flush(pgr);
	while (peer->free != UINT64_MAX)
		poll_once(pgr);
	for (uint32_t i = 0; i < SLOTS; i++)
		if (seen->executed[CALLS + i] != (i != 3 && i != 40))
			return pair_report(pair, PAIR_FAILED, "call %u: executed %u times", i,
					   seen->executed[CALLS + i]);
	if (seen->in_child || seen->children != 4)
		return pair_report(pair, PAIR_FAILED, "%u events in children, %u of 4 answers of closed",
				   seen->in_child, seen->children);
	pgr_close(pgr);
	return begin(pair, arg) == PAIR_PASSED ? send_stalled(pair, 0) : PAIR_FAILED;
}

static void fork_in_done(void *arg, int code, const void *result, size_t bytes)
{
	pid_t *pid = arg;

	(void)result, (void)bytes;
	if (code == PGR_OK)
		*pid = make_child(&(struct how){"", BY_FORK});
}

/* A continuation that runs inside pgr_call_and_wait returns in the child too, which waits for nothing. */
static int in_continuation(struct pair *pair, void *arg)
{
	pid_t pid = -1;
	int result;

	if (begin(pair, arg) != PAIR_PASSED)
		return PAIR_FAILED;
	pgr_call(peer, ECHO, NULL, &(struct pgr_iov){&(uint32_t){UINT32_MAX}, sizeof(uint32_t)}, 1, NULL, 0,
		 0, fork_in_done, &pid);
	result = call(UINT32_MAX - 1);
	if (pid == 0)
		_exit(result != PGR_E_CLOSED);
	if (result != 0)
		return pair_report(pair, PAIR_FAILED, "the parent's call: %s", pgr_code_name(result));
	result = send_stalled(pair, 0);
	if (!ended_well(pid))
		return pair_report(pair, PAIR_FAILED, "the child's call did not end with closed");
	pgr_close(pgr);
	return result;
}

/* An endpoint of the child's own is as good as any, and has an identity of its own. */
static int own(struct pair *pair, void *arg)
{
	struct pgr_peer *before;
	int result;
	pid_t pid;

	if (begin(pair, arg) != PAIR_PASSED)
		return PAIR_FAILED;
	before = peer;
	pid = make_child(arg);
	if (pid == 0) {
		struct pgr *copied = pgr;

		if (begin(pair, arg) != PAIR_PASSED || peer->client == before->client)
			_exit(1);
		pgr_close(copied);
		result = send_stalled(pair, CALLS);
		pgr_close(pgr);
		_exit(result);
	}
	result = send_stalled(pair, 0);
	if (!ended_well(pid) && result == PAIR_PASSED)
		result = pair_report(pair, PAIR_FAILED, "the child's own endpoint failed");
	pgr_close(pgr);
	return result;
}

/* A child that shares the parent's memory until it becomes another program closes nothing. */
static int spawned(struct pair *pair, void *arg)
{
	static char *const words[] = {(char *)(uintptr_t)"true", NULL};
	pid_t pid;
	int result;

	if (begin(pair, arg) != PAIR_PASSED)
		return PAIR_FAILED;
	if (posix_spawnp(&pid, "true", NULL, NULL, words, environ) != 0 || !ended_well(pid))
		return pair_report(pair, PAIR_FAILED, "posix_spawn");
	result = send_stalled(pair, 0);
	pgr_close(pgr);
	return result;
}

/* With the descriptors that the child has given back, an endpoint's port is free when its parent closes it. */
static int port(struct pair *pair, void *arg)
{
	const struct how *how = arg;
	char error[200] = "";
	struct pgr_config config = {.bytes = sizeof(config),
				    .wire = how->wire,
				    .address = "127.0.0.1",
				    .error = error,
				    .error_bytes = sizeof(error)};
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	uint16_t number;
	int told[2];
	char word;
	pid_t pid;

	if (pgr_open(&config, &pgr) != PGR_OK || pipe(told) < 0)
		return pair_report(pair, PAIR_FAILED, "%s", error);
	pgr_address(pgr, address, &bytes);
	memcpy(&number, address + 4, sizeof(number));
	pid = make_child(how);
	if (pid == 0) {
		pgr_close(pgr);
		if (write(told[1], "", 1) == 1)
			poll(NULL, 0, 60000); /* it lives on */
		_exit(0);
	}
	if (read(told[0], &word, 1) != 1)
		return pair_report(pair, PAIR_FAILED, "no word of the child");
	pgr_close(pgr);
	config.port_first = config.port_last = ntohs(number);
	if (pgr_open(&config, &pgr) != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "%s", error);
	pgr_close(pgr);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return PAIR_PASSED;
}

int main(void)
{
	static const struct how hows[] = {
		{"udp", BY_FORK}, {"shm", BY_FORK}, {"udp", BY_CLONE}, {"shm", BY_CLONE}};
	const struct {
		const char *what;
		pair_side *client, *server;
	} tests[] = {
		{"parent and child both go on", both_go_on, serve},
		{"every function of the child's", every_function, serve},
		{"a child that is made in a handler", in_handler, serve},
		{"a child that is made in a continuation", in_continuation, serve},
		{"an endpoint of the child's own", own, serve},
		{"another program that is started", spawned, serve},
		{"a port that the child has given back", port, NULL},
	};
	const unsigned int count = sizeof(tests) / sizeof(tests[0]), wires = sizeof(hows) / sizeof(hows[0]);
	int status = 0;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		return 1;
	printf("TAP version 13\n1..%u\n", count * wires);
	for (unsigned int i = 0; i < count * wires; i++) {
		const struct how *how = &hows[i % wires];
		int result;

		fflush(stdout);
		memset(seen, 0, sizeof(*seen));
		result = pair_run(false, SECONDS, tests[i / wires].server, tests[i / wires].client,
				  (void *)(uintptr_t)how);
		printf("%s %u - %s: %s, %s\n", result == PAIR_PASSED ? "ok" : "not ok", i + 1,
		       tests[i / wires].what, how->wire, how->made == BY_FORK ? "fork" : "clone");
		if (result != PAIR_PASSED) {
			printf("# %s\n", pair_why());
			status = 1;
		}
	}
	return status;
}
