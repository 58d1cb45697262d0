/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages over a network that loses some of their packets: a result comes as fast as arguments do, and neither
 * waits for time-outs that have doubled. In the network's own time, which a seed determines. TAP on standard output.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/net.h"

enum { TAKE = 1, GIVE = 2, PACKET_BYTES = 1472, SEEDS = 5 };

#define MIB UINT32_C(1048576)
#define MS  UINT64_C(1000000)

/* What is lost, in parts of a million; of how long a message; how long that may take. */
static const struct trial {
	uint32_t lost, bytes;
	uint64_t most_ns;
} trials[] = {
	{0, 4 * MIB, 20 * MS},
	{10000, 4 * MIB, 50 * MS},
	{100000, 4 * MIB, 100 * MS},
	{300000, MIB, 500 * MS},
};

static uint8_t *message;
static uint64_t ended_ns;
static int code_of_the_call;

static void on_take(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {message, 8};

	(void)arg;
	if (request->args_bytes == 8 || memcmp(request->args, message, request->args_bytes) != 0 ||
	    pgr_reply(request->pgr, &request->token, &iov, 1, 0, NULL, NULL) < 0)
		abort();
}

static void on_give(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {message, *(const uint32_t *)arg};

	if (pgr_reply(request->pgr, &request->token, &iov, 1, 0, NULL, NULL) < 0)
		abort();
}

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	const size_t bytes = *(const size_t *)arg;

	ended_ns = net_now_ns();
	code_of_the_call = code;
	if (code == PGR_OK && (result_bytes != bytes || memcmp(result, message, bytes) != 0))
		abort();
}

static struct pgr *open_one(uint32_t *give_bytes)
{
	const struct pgr_config config = {.bytes = sizeof(config)};
	struct pgr *pgr = NULL;

	if (pgr_open_on(&pgr_wire_net, &config, &pgr) != PGR_OK ||
	    pgr_serve(pgr, TAKE, NULL, on_take, NULL) != PGR_OK ||
	    pgr_serve(pgr, GIVE, NULL, on_give, give_bytes) != PGR_OK)
		abort();
	return pgr;
}

/* One call after a first one; how long it took, UINT64_MAX: it failed. */
static uint64_t call(struct pgr *const *both, struct pgr_peer *peer, uint32_t procedure, size_t in_bytes,
		     size_t out_bytes)
{
	const struct pgr_iov in = {message, in_bytes};
	const uint64_t begun_ns = net_now_ns();

	ended_ns = 0;
	if (pgr_call(peer, procedure, NULL, &in, 1, NULL, 0, 0, on_done, &out_bytes) != PGR_QUEUED)
		abort();
	while (!ended_ns)
		net_step(both, 2);
	return code_of_the_call == PGR_OK ? ended_ns - begun_ns : UINT64_MAX;
}

/* The longest time that a message took over some seeds. */
static uint64_t longest_ns(const struct trial *trial, uint32_t procedure)
{
	const struct net_faults none = {0}, faults = {.drop = trial->lost};
	uint64_t longest = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint32_t give_bytes = 8;
		uint8_t at[PGR_ADDRESS_BYTES];
		size_t at_bytes = sizeof(at);
		struct pgr *both[2];
		struct pgr_peer *peer;
		uint64_t took_ns;

		net_reset(seed, PACKET_BYTES);
		net_set_faults(&none);
		both[0] = open_one(&give_bytes);
		both[1] = open_one(&give_bytes);
		if (pgr_address(both[1], at, &at_bytes) != PGR_OK ||
		    pgr_bind(both[0], at, at_bytes, &peer) != PGR_OK)
			abort();
		for (unsigned int i = 0; i < 20; i++)
			if (call(both, peer, GIVE, 100, 8) == UINT64_MAX)
				abort();
		net_set_faults(&faults);
		give_bytes = trial->bytes;
		took_ns = procedure == TAKE ? call(both, peer, TAKE, trial->bytes, 8)
					    : call(both, peer, GIVE, 100, trial->bytes);
		longest = took_ns > longest ? took_ns : longest;
		pgr_close(both[0]);
		pgr_close(both[1]);
	}
	return longest;
}

int main(void)
{
	const unsigned int count = sizeof(trials) / sizeof(trials[0]);
	bool good = true;

	message = malloc(4 * MIB);
	for (size_t i = 0; i < 4 * MIB; i++)
		message[i] = (uint8_t)(i * 7 + i / 251);
	printf("TAP version 13\n1..%u\n", 2 * count);
	for (unsigned int i = 0; i < 2 * count; i++) {
		const struct trial *trial = &trials[i / 2];
		const uint64_t took_ns = longest_ns(trial, i % 2 ? GIVE : TAKE);
		const bool held = took_ns <= trial->most_ns;

		printf("%s %u - %" PRIu32 " KiB of %s, %" PRIu32 " %% lost: %.1f ms of at most %.0f\n",
		       held ? "ok" : "not ok", i + 1, trial->bytes >> 10, i % 2 ? "result" : "arguments",
		       trial->lost / 10000, (double)took_ns / 1e6, (double)trial->most_ns / 1e6);
		good &= held;
	}
	free(message);
	return good ? 0 : 1;
}
