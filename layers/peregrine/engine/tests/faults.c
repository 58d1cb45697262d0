/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls over a network that drops, repeats, reorders, delays and corrupts packets, each up to 20 %: every
 * call has exactly one outcome, each was executed exactly once, every result is right. TAP on standard
 * output.
 *
 *	PGR_CALLS (100000; 20000 under a sanitizer) calls in all, PGR_SEED (random, printed)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/net.h"

#if defined(__SANITIZE_ADDRESS__)
#define CALLS 20000
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CALLS 20000
#endif
#endif
#ifndef CALLS
#define CALLS 100000
#endif

enum {
	ECHO = 1,      /* answered at once */
	DEFERRED = 2,  /* answered some polls later, the newest first */
	DELEGATED = 3, /* passed on to the second server */
	FAILED = 4,
	PACKET_BYTES = 512,
	LONG_BYTES = 20000,
	FAIL_CODE = -70,
	LATER_MAX = 256,
	NOT_NEEDED = 128, /* its client has cancelled it: it is executed once, or never */
	MS = 1000000,
};

static struct world {
	struct pgr *client, *first, *second, *all[3];
	struct pgr_peer *to_first, *to_second;
	uint8_t *executions; /* by call: how often; and NOT_NEEDED */
	uint32_t calls, begun, ended, deadlines;
	uint32_t wrong, failed_otherwise;
	struct later {
		struct pgr *pgr;
		struct pgr_token token;
		uint8_t *data;
		size_t bytes;
	} later[LATER_MAX];
	unsigned int later_count;
} world;

static void freed(void *arg, int code)
{
	(void)code;
	free(arg);
}

/* Replies with data of malloc's, which are freed when they may be. */
static void answer(struct pgr *pgr, const struct pgr_token *token, uint8_t *data, size_t bytes)
{
	const struct pgr_iov iov[2] = {{data, bytes / 3}, {data + bytes / 3, bytes - bytes / 3}};
	const int code = pgr_reply(pgr, token, iov, 2, 0, freed, data);

	if (code != PGR_QUEUED)
		free(data);
	if (code < 0 || code == PGR_BUSY)
		world.wrong++;
}

static uint8_t *turned(const uint8_t *from, size_t bytes)
{
	uint8_t *data = malloc(bytes + 1);

	for (size_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)~from[i];
	return data;
}

static void count_execution(const struct pgr_request *request)
{
	uint32_t id;

	memcpy(&id, request->args, sizeof(id));
	if (request->args_bytes < sizeof(id) || id >= world.calls ||
	    (++world.executions[id] & ~NOT_NEEDED) > 1)
		world.wrong++;
}

static void on_echo(void *arg, const struct pgr_request *request)
{
	(void)arg;
	count_execution(request);
	answer(request->pgr, &request->token, turned(request->args, request->args_bytes),
	       request->args_bytes);
}

static void on_deferred(void *arg, const struct pgr_request *request)
{
	(void)arg;
	if (world.later_count == LATER_MAX) {
		on_echo(arg, request);
		return;
	}
	count_execution(request);
	world.later[world.later_count++] =
		(struct later){request->pgr, request->token, turned(request->args, request->args_bytes),
			       request->args_bytes};
}

static void on_delegated(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {(void *)(uintptr_t)request->args, request->args_bytes};
	const int code =
		pgr_delegate(world.to_second, &request->token, net_random(2) ? ECHO : DEFERRED, &iov, 1);

	(void)arg;
	if (code == PGR_BUSY)
		on_echo(arg, request);
	else if (code != PGR_OK)
		world.wrong++;
}

static void on_failed(void *arg, const struct pgr_request *request)
{
	(void)arg;
	count_execution(request);
	if (pgr_fail(request->pgr, &request->token, FAIL_CODE) != PGR_OK)
		world.wrong++;
}

struct call {
	uint32_t id, procedure;
	bool lent, deadlines;
	size_t bytes;
	uint8_t *in, *out;
};

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	struct call *call = arg;
	const uint8_t *data = call->lent ? result : call->out;

	world.ended++;
	if (call->deadlines && (code == PGR_E_CANCELLED || code == PGR_E_DEADLINE)) {
		world.deadlines++;
		world.executions[call->id] |= NOT_NEEDED;
	} else if (call->procedure == FAILED) {
		world.wrong += code != FAIL_CODE;
	} else if (code != PGR_OK) {
		world.failed_otherwise++;
	} else if (result_bytes != call->bytes) {
		world.wrong++;
	} else {
		for (size_t i = 0; i < call->bytes; i++)
			if ((data[i] ^ call->in[i]) != 0xff) {
				world.wrong++;
				break;
			}
	}
	free(call->in);
	free(call->out);
	free(call);
}

/* Begins a call; false: no slot is free. */
static bool begin(void)
{
	struct call *call = calloc(1, sizeof(*call));
	struct pgr_iov in[3], out[2];
	uint32_t kind = net_random(100);
	int code;

	call->id = world.begun;
	call->procedure = kind < 60 ? ECHO : kind < 75 ? DEFERRED : kind < 95 ? DELEGATED : FAILED;
	call->bytes = 4 + (net_random(4) ? net_random(200) : net_random(LONG_BYTES));
	call->lent = net_random(3) == 0;
	call->in = malloc(call->bytes);
	call->out = malloc(call->bytes);
	memcpy(call->in, &call->id, sizeof(call->id));
	for (size_t i = sizeof(call->id); i < call->bytes; i++)
		call->in[i] = (uint8_t)(i * 7 + call->id * 31);
	in[0] = (struct pgr_iov){call->in, call->bytes / 2};
	in[1] = (struct pgr_iov){call->in + call->bytes / 2, 0};
	in[2] = (struct pgr_iov){call->in + call->bytes / 2, call->bytes - call->bytes / 2};
	out[0] = (struct pgr_iov){call->out, call->bytes / 5};
	out[1] = (struct pgr_iov){call->out + call->bytes / 5, call->bytes - call->bytes / 5};
	code = pgr_call(world.to_first, call->procedure, NULL, in, 3, out, call->lent ? 0 : 2,
			net_random(2) ? PGR_MORE : 0, on_done, call);
	if (code == PGR_QUEUED) {
		call->deadlines = net_random(20) == 0;
		if (call->deadlines &&
		    (net_random(2) ? pgr_cancel(world.to_first, call)
				   : pgr_deadline(world.to_first, call, net_random(MS))) != 1)
			world.wrong++;
		world.begun++;
		return true;
	}
	world.wrong += code != PGR_BUSY;
	free(call->in);
	free(call->out);
	free(call);
	return false;
}

static struct pgr_peer *bind_to(struct pgr *pgr, const struct pgr *to)
{
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peer = NULL;

	if (pgr_address(to, address, &bytes) != PGR_OK || pgr_bind(pgr, address, bytes, &peer) != PGR_OK)
		abort();
	return peer;
}

static void allow_delegation(struct pgr *by, const struct pgr *from)
{
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);

	if (pgr_address(from, address, &bytes) != PGR_OK ||
	    pgr_delegations_from(by, address, bytes, 1) != PGR_OK)
		abort();
}

static struct pgr *open_one(uint32_t off, const uint8_t *key)
{
	const struct pgr_config config = {
		.bytes = sizeof(config), .off = off, .key = key, .give_up_ns = UINT64_C(60000000000)};
	struct pgr *pgr = NULL;

	if (pgr_open_on(&pgr_wire_net, &config, &pgr) != PGR_OK)
		abort();
	pgr_serve(pgr, ECHO, NULL, on_echo, NULL);
	pgr_serve(pgr, DEFERRED, NULL, on_deferred, NULL);
	pgr_serve(pgr, DELEGATED, NULL, on_delegated, NULL);
	pgr_serve(pgr, FAILED, NULL, on_failed, NULL);
	return pgr;
}

static bool run(const char *name, uint64_t seed, uint32_t calls, const struct net_faults *faults,
		uint32_t off, const uint8_t *key)
{
	uint64_t begun_ns, healed_ns, quiet = 0;
	uint32_t once = 0;
	struct pgr_stats at_client = {.bytes = sizeof(at_client)}, at_first = at_client,
			 at_second = at_client;
	bool good;

	net_reset(seed, PACKET_BYTES);
	memset(&world, 0, sizeof(world));
	world.calls = calls;
	world.executions = calloc(calls, 1);
	world.all[0] = world.client = open_one(off, key);
	world.all[1] = world.first = open_one(off, key);
	world.all[2] = world.second = open_one(off, key);
	world.to_first = bind_to(world.client, world.first);
	world.to_second = bind_to(world.first, world.second);
	allow_delegation(world.second, world.first);
	net_set_faults(faults);
	begun_ns = net_now_ns();
	while (world.ended < calls && quiet < 2000000) {
		const uint32_t ended = world.ended;

		while (world.begun < calls && begin())
			;
		pgr_flush(world.client);
		net_step(world.all, 3);
		if (world.later_count && net_random(3) == 0) {
			struct later later = world.later[--world.later_count];

			answer(later.pgr, &later.token, later.data, later.bytes);
		}
		quiet = world.ended == ended ? quiet + 1 : 0;
	}
	for (unsigned int i = 0; i < 3; i++)
		pgr_stats(world.all[i], i == 0 ? &at_client : i == 1 ? &at_first : &at_second);
	for (uint32_t i = 0; i < calls; i++)
		once += (world.executions[i] & ~NOT_NEEDED) == 1 || world.executions[i] == NOT_NEEDED;
	good = world.ended == calls && once == calls && !world.wrong && !world.failed_otherwise;
	printf("# %s: %" PRIu32 " calls, %" PRIu32 " ended, %" PRIu32 " executed exactly once (of %" PRIu32
	       " cancelled: at most once), %" PRIu32 " wrong, %" PRIu32 " failed; %" PRIu64
	       " packets, %.3f s of its own time; repeated %" PRIu64 "+%" PRIu64 "+%" PRIu64
	       ", challenges %" PRIu64 "\n",
	       name, calls, world.ended, once, world.deadlines, world.wrong, world.failed_otherwise,
	       net_packets(), (double)(net_now_ns() - begun_ns) / 1e9, at_client.retransmissions,
	       at_first.retransmissions, at_second.retransmissions,
	       at_first.challenges_sent + at_second.challenges_sent);
	/* Time heals: nothing is kept for ever. */
	net_set_faults(&(struct net_faults){0});
	healed_ns = net_now_ns() + 2 * world.client->config.memory_ns;
	while (net_now_ns() < healed_ns) {
		net_pass_time(50000000);
		net_step(world.all, 3);
	}
	for (unsigned int i = 0; i < 3; i++)
		if (world.all[i]->stats.pool_bytes != world.all[i]->works_count * sizeof(struct pgr_work) ||
		    world.all[i]->clients_count) {
			printf("# endpoint %u still holds %" PRIu64 " bytes for %" PRIu32 " calls, %" PRIu32
			       " clients\n",
			       i, world.all[i]->stats.pool_bytes, world.all[i]->works_count,
			       world.all[i]->clients_count);
			good = false;
		}
	while (world.later_count)
		free(world.later[--world.later_count].data);
	for (unsigned int i = 0; i < 3; i++)
		pgr_close(world.all[i]);
	free(world.executions);
	net_reset(1, PACKET_BYTES);
	return good;
}

int main(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";
	static const uint32_t percent = 10000;
	const struct {
		const char *name;
		struct net_faults faults;
		uint32_t share, off; /* of the calls, in parts of a hundred */
		bool keyed;
	} cases[] = {
		{"no faults", {0}, 10, 0, false},
		{"1 % lost", {percent, 0, 0, 0, 0}, 10, 0, false},
		{"20 % lost", {20 * percent, 0, 0, 0, 0}, 5, 0, false},
		{"20 % repeated", {0, 20 * percent, 0, 0, 0}, 5, 0, false},
		{"20 % reordered", {0, 0, 20 * percent, 0, 0}, 5, 0, false},
		{"20 % delayed", {0, 0, 0, 20 * percent, 0}, 5, 0, false},
		{"20 % corrupt, keyed", {0, 0, 0, 0, 20 * percent}, 10, 0, true},
		{"5 % of each, keyed",
		 {5 * percent, 5 * percent, 5 * percent, 5 * percent, 5 * percent},
		 15,
		 0,
		 true},
		{"20 % of each, keyed",
		 {20 * percent, 20 * percent, 20 * percent, 20 * percent, 20 * percent},
		 10,
		 0,
		 true},
		{"10 % of each but corruption",
		 {10 * percent, 10 * percent, 10 * percent, 10 * percent, 0},
		 15,
		 0,
		 false},
		{"the same, all optimisations off",
		 {10 * percent, 10 * percent, 10 * percent, 10 * percent, 0},
		 10,
		 PGR_OFF_ALL,
		 false},
	};
	const unsigned int count = sizeof(cases) / sizeof(cases[0]);
	const char *calls = getenv("PGR_CALLS"), *seed = getenv("PGR_SEED");
	const uint64_t all = calls ? strtoull(calls, NULL, 10) : CALLS;
	uint64_t value = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
	int status = 0;

	printf("TAP version 13\n1..%u\n# PGR_SEED=%" PRIu64 "\n", count, value);
	for (unsigned int i = 0; i < count; i++) {
		const bool good = run(cases[i].name, value + i, (uint32_t)(all * cases[i].share / 100),
				      &cases[i].faults, cases[i].off, cases[i].keyed ? key : NULL);

		printf("%s %u - %s\n", good ? "ok" : "not ok", i + 1, cases[i].name);
		fflush(stdout);
		status |= !good;
	}
	return status;
}
