/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints in several threads are independent: pairs of a thread that serves and one that calls, over each
 * wire at once. Built with -fsanitize=thread by tests/test_threads.py, which looks for what they might share.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../pgr.h"

#ifndef CALLS
#define CALLS 3000u
#endif
#define PAIRS 4u

struct pair {
	const char *wire;
	unsigned char address[PGR_ADDRESS_BYTES];
	_Atomic int ready, over;
	unsigned int good;
};

static struct pgr *open_one(const char *wire)
{
	char error[200] = "";
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = wire,
					  .address = "127.0.0.1",
					  .error = error,
					  .error_bytes = sizeof(error)};
	struct pgr *pgr = NULL;

	if (pgr_open(&config, &pgr) != PGR_OK) {
		fprintf(stderr, "%s: %s\n", wire, error);
		exit(1);
	}
	return pgr;
}

static void sent(void *arg, int code)
{
	(void)code;
	free(arg);
}

static void echo(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {malloc(request->args_bytes + 1), request->args_bytes};

	(void)arg;
	memcpy(iov.base, request->args, iov.bytes);
	if (pgr_reply(request->pgr, &request->token, &iov, 1, 0, sent, iov.base) != PGR_QUEUED)
		free(iov.base);
}

static void *serve(void *arg)
{
	struct pair *pair = arg;
	struct pgr *pgr = open_one(pair->wire);
	size_t bytes = sizeof(pair->address);

	pgr_serve(pgr, 1, NULL, echo, NULL);
	pgr_address(pgr, pair->address, &bytes);
	pair->ready = 1;
	while (!pair->over)
		pgr_poll(pgr);
	pgr_close(pgr);
	return NULL;
}

static void *ask(void *arg)
{
	struct pair *pair = arg;
	struct pgr *pgr = open_one(pair->wire);
	static _Thread_local unsigned char in[100000], out[100000];
	struct pgr_peer *peer;

	while (!pair->ready)
		;
	if (pgr_bind(pgr, pair->address, sizeof(pair->address), &peer) != PGR_OK)
		exit(1);
	for (unsigned int i = 0; i < CALLS; i++) {
		const struct pgr_iov from = {in, i % 50 ? i % 1000 : sizeof(in)}, to = {out, sizeof(out)};
		size_t bytes = 0;

		memset(in, (int)(i & 0xff), from.bytes);
		if (pgr_call_and_wait(peer, 1, NULL, &from, 1, &to, 1, 0, &bytes) == PGR_OK &&
		    bytes == from.bytes && memcmp(in, out, bytes) == 0)
			pair->good++;
	}
	pgr_close(pgr);
	pair->over = 1;
	return NULL;
}

int main(void)
{
	static struct pair pairs[PAIRS];
	pthread_t threads[2 * PAIRS];
	int status = 0;

	for (unsigned int i = 0; i < PAIRS; i++) {
		pairs[i].wire = i % 2 ? "udp" : "shm";
		pthread_create(&threads[2 * i], NULL, serve, &pairs[i]);
		pthread_create(&threads[2 * i + 1], NULL, ask, &pairs[i]);
	}
	for (unsigned int i = 0; i < 2 * PAIRS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned int i = 0; i < PAIRS; i++) {
		printf("%s: %u of %u calls came back right\n", pairs[i].wire, pairs[i].good, CALLS);
		status |= pairs[i].good != CALLS;
	}
	return status;
}
