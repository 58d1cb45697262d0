/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server of several threads behind one address. Each thread has an endpoint of its own, so nothing is shared and nothing
 * is locked; the first one is the directory, which tells clients where the others are.
 *
 *	pgr-threads serve HOST PORT THREADS   serves until SIGTERM or SIGINT; PORT 0: any. Prints the directory's address
 *	pgr-threads call HOST:PORT CALLS      calls each of them in turn, and prints how many calls each has served
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pgr.h"

enum {
	/* to the first endpoint: addresses of all, PGR_ADDRESS_BYTES each */
	DIRECTORY = 1,
	/* to any: how many calls this one has served, in text */
	WORK = 2,
	THREADS_MAX = 32,
	/* so long a thread sleeps at most before it looks whether it shall end */
	NAP_NS = 100000000
};

static struct endpoint {
	pthread_t thread;
	struct pgr *pgr;
	unsigned int served;
	unsigned char address[PGR_ADDRESS_BYTES];
} endpoints[THREADS_MAX];
static unsigned int count;
static atomic_bool stop;

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
	fprintf(stderr, "pgr-threads: %s (%s)\n", error, pgr_code_name(code));
	exit(1);
}

/* ---- serving ---- */

static void on_directory(void *arg, const struct pgr_request *request)
{
	/* all have been opened before the first call comes; and they stay, so a long result may be lent */
	static unsigned char addresses[THREADS_MAX * PGR_ADDRESS_BYTES];
	const struct pgr_iov result = {addresses, (size_t)count * PGR_ADDRESS_BYTES};

	(void)arg;
	for (unsigned int i = 0; i < count; i++)
		memcpy(addresses + (size_t)i * PGR_ADDRESS_BYTES, endpoints[i].address, PGR_ADDRESS_BYTES);
	pgr_reply(request->pgr, &request->token, &result, 1, 0, NULL, NULL);
}

static void on_work(void *arg, const struct pgr_request *request)
{
	struct endpoint *endpoint = arg; /* of this thread alone */
	char text[16];
	const struct pgr_iov result = {text, (size_t)snprintf(text, sizeof(text), "%u", ++endpoint->served)};

	pgr_reply(request->pgr, &request->token, &result, 1, 0, NULL, NULL);
}

static void *run(void *arg)
{
	struct endpoint *endpoint = arg;

	while (!stop)
		if (pgr_poll(endpoint->pgr) == 0)
			pgr_wait(endpoint->pgr, NAP_NS);
	return NULL;
}

static int serve(const char *host, int port, unsigned int threads)
{
	char text[PGR_ADDRESS_TEXT_BYTES];
	sigset_t signals;
	int caught;

	if (!threads || threads > THREADS_MAX)
		return 2;
	/* threads have the mask of who starts them: only this one takes the signals */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	for (count = 0; count < threads; count++) {
		struct endpoint *endpoint = &endpoints[count];
		size_t bytes = sizeof(endpoint->address);

		endpoint->pgr = open_or_exit(host, count ? 0 : port);
		pgr_address(endpoint->pgr, endpoint->address, &bytes);
		pgr_serve(endpoint->pgr, WORK, NULL, on_work, endpoint);
	}
	pgr_serve(endpoints[0].pgr, DIRECTORY, NULL, on_directory, NULL);
	for (unsigned int i = 0; i < count; i++)
		if (pthread_create(&endpoints[i].thread, NULL, run, &endpoints[i]) != 0) {
			fprintf(stderr, "pgr-threads: no thread\n");
			return 1;
		}
	pgr_address_text(endpoints[0].pgr, endpoints[0].address, PGR_ADDRESS_BYTES, text, sizeof(text));
	printf("%s\n", text);
	fflush(stdout);
	sigwait(&signals, &caught);
	stop = true;
	for (unsigned int i = 0; i < count; i++) {
		pthread_join(endpoints[i].thread, NULL);
		pgr_close(endpoints[i].pgr);
	}
	return 0;
}

/* ---- calling ---- */

static int fail(const char *what, int code)
{
	fprintf(stderr, "pgr-threads: %s: %s\n", what, pgr_code_name(code));
	return 1;
}

static int call(const char *directory, int calls)
{
	struct pgr *pgr = open_or_exit(directory[0] == '[' ? "::" : "0.0.0.0", 0);
	unsigned char found[THREADS_MAX][PGR_ADDRESS_BYTES], address[PGR_ADDRESS_BYTES];
	const struct pgr_iov addresses = {found, sizeof(found)};
	struct pgr_peer *peers[THREADS_MAX];
	char answers[THREADS_MAX][16] = {{0}};
	size_t bytes = sizeof(address), servers;
	int code = pgr_resolve(pgr, directory, address, &bytes);

	if (code == PGR_OK)
		code = pgr_bind(pgr, address, bytes, &peers[0]);
	if (code == PGR_OK)
		code = pgr_call_and_wait(peers[0], DIRECTORY, NULL, NULL, 0, &addresses, 1, 0, &bytes);
	if (code != PGR_OK)
		return fail(directory, code);
	servers = bytes / PGR_ADDRESS_BYTES;
	for (size_t i = 0; i < servers && code == PGR_OK; i++)
		code = pgr_bind(pgr, found[i], PGR_ADDRESS_BYTES, &peers[i]);
	for (int i = 0; i < calls && code == PGR_OK; i++) {
		const size_t server = (size_t)i % servers;
		const struct pgr_iov answer = {answers[server], sizeof(answers[server]) - 1};

		code = pgr_call_and_wait(peers[server], WORK, NULL, NULL, 0, &answer, 1, 0, &bytes);
	}
	for (size_t i = 0; i < servers && code == PGR_OK; i++)
		printf("%s%s", answers[i], i + 1 < servers ? " " : "\n");
	pgr_close(pgr);
	return code == PGR_OK ? 0 : fail("a call", code);
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2], atoi(argv[3]), (unsigned int)atoi(argv[4]));
	if (argc == 4 && strcmp(argv[1], "call") == 0)
		return call(argv[2], atoi(argv[3]));
	fprintf(stderr, "usage: pgr-threads serve HOST PORT THREADS | call HOST:PORT CALLS\n");
	return 2;
}
