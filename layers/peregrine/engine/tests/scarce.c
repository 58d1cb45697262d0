/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server whose memory runs out while it answers: whichever allocation fails, pgr_reply says so, nothing of the answer stays
 * behind, and the same answer given again arrives whole. Both ends are in one process. TAP on standard output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/peer.h"
#include "support/alone.h"

enum { GIVE = 1, LONG_BYTES = 100000, SHORT_BYTES = 500, ALLOCATIONS_MOST = 8 };

/* The allocation that fails, counted down to 0; none where it is negative. */
static int until_failure = -1;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static bool fails(void)
{
	return until_failure >= 0 && until_failure-- == 0;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __real_calloc(count, bytes);
}

static struct scene {
	uint8_t given[LONG_BYTES], got[LONG_BYTES];
	size_t bytes;
	int fails_at; /* which allocation */
	bool failed;  /* it did */
	bool wrong;   /* what pgr_reply then said, or what was left */
	int outcome;
	uint64_t sent;
} scene;

static void on_sent(void *arg, int code)
{
	(void)arg, (void)code;
	scene.sent++;
}

static void on_give(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {scene.given, scene.bytes};
	struct pgr *pgr = arg;
	struct pgr_stats before = {.bytes = sizeof(before)}, after = {.bytes = sizeof(after)};
	int code;

	pgr_stats(pgr, &before);
	until_failure = scene.fails_at;
	code = pgr_reply(pgr, &request->token, &iov, 1, 0, on_sent, NULL);
	scene.failed = until_failure < 0;
	until_failure = -1;
	if (!scene.failed) {
		scene.wrong |= code != PGR_OK && code != PGR_QUEUED;
		return;
	}
	pgr_stats(pgr, &after);
	scene.wrong |= code != PGR_E_MEMORY || after.pool_bytes != before.pool_bytes;
	code = pgr_reply(pgr, &request->token, &iov, 1, 0, on_sent, NULL);
	scene.wrong |= code != PGR_OK && code != PGR_QUEUED;
}

static void on_done(void *arg, int code, const void *result, size_t bytes)
{
	(void)arg, (void)result;
	scene.outcome = code == PGR_OK && bytes != scene.bytes ? PGR_E_ARGUMENT : code;
}

static int answer(uint32_t off, size_t bytes, int fails_at)
{
	const struct pgr_config config = {
		.bytes = sizeof(config), .wire = "udp", .address = "127.0.0.1", .off = off};
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t address_bytes = sizeof(address);
	struct pgr *server = NULL, *client = NULL;
	struct pgr_peer *peer = NULL;
	const uint64_t begin_ns = now_ns();

	if (pgr_open(&config, &server) != PGR_OK || pgr_open(&config, &client) != PGR_OK)
		return say("no endpoint");
	memset(scene.got, 0, sizeof(scene.got));
	scene.bytes = bytes, scene.fails_at = fails_at, scene.outcome = PGR_QUEUED, scene.wrong = false;
	pgr_serve(server, GIVE, NULL, on_give, server);
	pgr_address(server, address, &address_bytes);
	if (pgr_bind(client, address, address_bytes, &peer) != PGR_OK)
		return say("not bound");
	if (pgr_call(peer, GIVE, NULL, NULL, 0, &(struct pgr_iov){scene.got, sizeof(scene.got)}, 1, 0,
		     on_done, NULL) != PGR_QUEUED)
		return say("not called");
	while (scene.outcome == PGR_QUEUED && now_ns() - begin_ns < UINT64_C(10000000000)) {
		pgr_poll(server);
		pgr_poll(client);
	}
	pgr_close(client);
	pgr_close(server);
	if (scene.wrong)
		return say("allocation %d: refused otherwise, or something stayed", fails_at);
	if (scene.outcome != PGR_OK || memcmp(scene.got, scene.given, bytes))
		return say("allocation %d: the call ended with %d, or other bytes", fails_at, scene.outcome);
	return PASSED;
}

/* Each allocation of an answer in its turn, until there is none more. */
static int each(uint32_t off, size_t bytes, int least)
{
	int tried = 0, status = PASSED;

	for (size_t i = 0; i < bytes; i++)
		scene.given[i] = (uint8_t)(i * 7 + (i >> 9));
	do {
		status = answer(off, bytes, tried);
	} while (status == PASSED && scene.failed && ++tried < ALLOCATIONS_MOST);
	if (status == PASSED && tried < least)
		return say("%d allocations, and %d are known", tried, least);
	return status;
}

static int marshalled_long(void)
{
	return each(PGR_OFF_GATHER, LONG_BYTES, 2);
}

static int marshalled_short(void)
{
	return each(PGR_OFF_GATHER, SHORT_BYTES, 1);
}

static int in_words(void)
{
	return each(PGR_OFF_NO_CONVERSION, LONG_BYTES, 3);
}

static int copied(void)
{
	return each(0, SHORT_BYTES, 1);
}

static int lent(void)
{
	return each(0, LONG_BYTES, 1);
}

int main(void)
{
	const struct alone how = {.seconds = 60, .skip = "this cannot be"};
	const struct alone_test tests[] = {
		{"a long answer that is marshalled", marshalled_long},
		{"a short answer that is marshalled", marshalled_short},
		{"an answer that is converted to words", in_words},
		{"a short answer, which is copied", copied},
		{"a long answer, which is lent", lent},
	};

	return alone_run(&how, tests, sizeof(tests) / sizeof(tests[0]));
}
