/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with an event loop of its own (epoll): the engine is one of the things that it waits for.
 *
 *	pgr-loop serve HOST PORT             counts words until SIGTERM or SIGINT; PORT 0: any. Prints its address
 *	pgr-loop count HOST:PORT MS TEXT     prints how many words a server counts; exit status 1: not within MS ms
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "pgr.h"

#define COUNT 1u

/* What the loop waits for, beside the engine. */
struct loop {
	int epoll;
	/* the engine's, as it last named them */
	int fds[PGR_FDS];
};

static void watch(struct loop *loop, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		perror("pgr-loop: epoll_ctl");
}

/* One round: polls the engine, then sleeps until something is to be done. Returns a descriptor of others', or -1. */
static int turn(struct loop *loop, struct pgr *pgr)
{
	struct epoll_event event;
	int fds[PGR_FDS], timeout_ms;
	uint64_t due_ns;

	while (pgr_poll(pgr) > 0)
		; /* until it found nothing to do */
	if (pgr_watch(pgr, fds, &due_ns) != PGR_OK)
		return -1; /* poll again at once */
	/* they may be others than before; one that was closed has left the epoll by itself */
	for (unsigned int i = 0; i < PGR_FDS; i++) {
		if (fds[i] == loop->fds[i])
			continue;
		if (fds[i] >= 0)
			watch(loop, fds[i]);
		loop->fds[i] = fds[i];
	}
	/* rounded up, so that it does not spin for the last millisecond */
	timeout_ms = due_ns >= UINT64_C(1000000000) * 1000 ? -1 : (int)((due_ns + 999999) / 1000000);
	if (epoll_wait(loop->epoll, &event, 1, timeout_ms) < 1)
		return -1;
	for (unsigned int i = 0; i < PGR_FDS; i++)
		if (event.data.fd == loop->fds[i])
			return -1;
	return event.data.fd;
}

static struct loop loop_new(void)
{
	struct loop loop = {.epoll = epoll_create1(EPOLL_CLOEXEC), .fds = {-1, -1}};

	if (loop.epoll < 0) {
		perror("pgr-loop: epoll");
		exit(1);
	}
	return loop;
}

static struct pgr *open_or_exit(const char *host, int port)
{
	char error[200] = "";
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = "udp",
					  .address = host,
					  .port_first = (uint16_t)port,
					  .port_last = (uint16_t)port,
					  .block = 1,
					  .error = error,
					  .error_bytes = sizeof(error)};
	struct pgr *pgr;
	const int code = pgr_open(&config, &pgr);

	if (code == PGR_OK)
		return pgr;
	fprintf(stderr, "pgr-loop: %s (%s)\n", error, pgr_code_name(code));
	exit(1);
}

/* ---- serving ---- */

static void on_count(void *arg, const struct pgr_request *request)
{
	const char *text = request->args;
	char answer[24];
	struct pgr_iov result = {answer, 0};
	unsigned int words = 0;

	(void)arg;
	for (size_t i = 0; i < request->args_bytes; i++)
		words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
	result.bytes = (size_t)snprintf(answer, sizeof(answer), "%u", words);
	pgr_reply(request->pgr, &request->token, &result, 1, 0, NULL,
		  NULL); /* short: copied before it returns */
}

static int serve(const char *host, int port)
{
	struct pgr *pgr = open_or_exit(host, port);
	struct loop loop = loop_new();
	char address[PGR_ADDRESS_BYTES], text[PGR_ADDRESS_TEXT_BYTES];
	size_t bytes = sizeof(address);
	sigset_t signals;
	int stop;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	stop = signalfd(-1, &signals, SFD_CLOEXEC);
	watch(&loop, stop);
	pgr_serve(pgr, COUNT, NULL, on_count, NULL);
	pgr_address(pgr, address, &bytes);
	pgr_address_text(pgr, address, bytes, text, sizeof(text));
	printf("%s\n", text);
	fflush(stdout);
	while (turn(&loop, pgr) != stop)
		;
	pgr_close(pgr);
	close(stop);
	close(loop.epoll);
	return 0;
}

/* ---- calling ---- */

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	*(int *)arg = code;
	if (code == PGR_OK)
		printf("%.*s\n", (int)result_bytes, (const char *)result);
	else
		fprintf(stderr, "pgr-loop: %s\n", pgr_code_name(code));
}

static int count(const char *server, int ms, char *text)
{
	struct pgr *pgr = open_or_exit(server[0] == '[' ? "::" : "0.0.0.0", 0);
	struct loop loop = loop_new();
	const struct pgr_iov in = {text, strlen(text)};
	char address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peer;
	int outcome = PGR_QUEUED, code = pgr_resolve(pgr, server, address, &bytes);

	if (code == PGR_OK)
		code = pgr_bind(pgr, address, bytes, &peer);
	if (code == PGR_OK)
		code = pgr_call(peer, COUNT, NULL, &in, 1, NULL, 0, 0, on_done, &outcome);
	if (code == PGR_QUEUED) {
		pgr_deadline(peer, &outcome, (uint64_t)ms * 1000000);
		while (outcome == PGR_QUEUED)
			turn(&loop, pgr);
	} else {
		fprintf(stderr, "pgr-loop: %s: %s\n", server, pgr_code_name(code));
	}
	pgr_close(pgr);
	close(loop.epoll);
	return outcome != PGR_OK;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2], atoi(argv[3]));
	if (argc == 5 && strcmp(argv[1], "count") == 0)
		return count(argv[2], atoi(argv[3]), argv[4]);
	fprintf(stderr, "usage: pgr-loop serve HOST PORT | count HOST:PORT MS TEXT\n");
	return 2;
}
