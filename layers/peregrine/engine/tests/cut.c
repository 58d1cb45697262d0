/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link between two hosts is cut and healed while calls are under way: who gives up sooner is told so in
 * time, who has more patience gets its result, each call is executed at most once, and afterwards all is as
 * before. TAP on standard output.
 *
 *	PGR_CUT_MS (1000) how long the link is cut
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/echo.h"
#include "support/clock.h"

#define MS     UINT64_C(1000000)
#define CALLS  8u
#define ROUNDS 5u

static uint64_t cut_ns;

/* Calls of one endpoint, and how they ended. */
struct caller {
	struct pgr *pgr;
	struct pgr_peer *peer;
	uint64_t give_up_ns;
	unsigned int begun, done, given_up, other;
	uint64_t last_end_ns;
	uint8_t args[64];
};

static int open_end(struct pair *pair, const char *wire, bool client, uint64_t give_up_ns, struct pgr **pgr)
{
	return pair_open(pair, (struct pgr_config){.wire = wire, .block = 1, .give_up_ns = give_up_ns},
			 client, pgr);
}

static int run_server(struct pair *pair, void *arg)
{
	struct pgr *pgr;
	const int result = open_end(pair, arg, false, 0, &pgr);

	return result == PAIR_PASSED ? echo_serve(pair, pgr, true) : result;
}

static void on_done(void *arg, int code, const void *result, size_t bytes)
{
	struct caller *caller = arg;

	(void)result;
	caller->last_end_ns = now_ns();
	if (code == PGR_OK && bytes == sizeof(caller->args))
		caller->done++;
	else if (code == PGR_E_GIVE_UP)
		caller->given_up++;
	else
		caller->other++;
}

static void begin(struct caller *caller)
{
	const struct pgr_iov in = {caller->args, sizeof(caller->args)};

	for (unsigned int i = 0; i < CALLS; i++)
		caller->begun += pgr_call(caller->peer, ECHO_PROCEDURE, NULL, &in, 1, NULL, 0, 0, on_done,
					  caller) == PGR_QUEUED;
}

static bool ended(const struct caller *caller)
{
	return caller->done + caller->given_up + caller->other == caller->begun;
}

/* Until the clock says so, or, with 0, until all calls have ended. */
static void serve(struct caller *callers, unsigned int count, uint64_t until_ns)
{
	for (;;) {
		bool all = true;

		for (unsigned int i = 0; i < count; i++) {
			pgr_poll(callers[i].pgr);
			all &= ended(&callers[i]);
		}
		if (until_ns ? now_ns() >= until_ns : all)
			return;
		usleep(200);
	}
}

/*
 * Whether all calls of a round are answered. The hasty one gives up soon, which a busy machine alone may
 * bring about: one round of ROUNDS is enough, and no call may fail in another way.
 */
static bool works(struct caller *caller)
{
	bool all = false;

	for (unsigned int round = 0; round < ROUNDS && !all && !caller->other; round++) {
		caller->begun = caller->done = caller->given_up = 0;
		begin(caller);
		serve(caller, 1, 0);
		all = caller->done == CALLS;
	}
	if (all)
		caller->begun = caller->done = 0;
	return all;
}

static int judge(struct pair *pair, const struct caller *deadlines, const struct caller *patient,
		 uint64_t cut_at_ns)
{
	const unsigned int done = deadlines->done + patient->done, begun = deadlines->begun + patient->begun;
	const uint64_t late_ns = deadlines->last_end_ns - cut_at_ns;

	if (deadlines->other || patient->other || patient->given_up || deadlines->begun != CALLS ||
	    patient->begun != CALLS)
		return pair_report(pair, PAIR_FAILED,
				   "of %u calls %u were done, %u given up, %u failed otherwise", begun, done,
				   deadlines->given_up + patient->given_up,
				   deadlines->other + patient->other);
	if (deadlines->given_up != CALLS || late_ns < deadlines->give_up_ns ||
	    late_ns > deadlines->give_up_ns + 200 * MS + deadlines->give_up_ns / 10)
		return pair_report(pair, PAIR_FAILED,
				   "%u of %u calls were given up, the last after %llu ms instead of %llu",
				   deadlines->given_up, CALLS, (unsigned long long)(late_ns / MS),
				   (unsigned long long)(deadlines->give_up_ns / MS));
	return PAIR_PASSED;
}

static int run_client(struct pair *pair, void *arg)
{
	struct caller callers[2] = {{.give_up_ns = cut_ns / 2}, {.give_up_ns = 20 * cut_ns}};
	const unsigned int count = strcmp(arg, "xdp") == 0 ? 1 : 2; /* a queue has one endpoint */
	struct caller *patient = &callers[count - 1];
	uint32_t executed;
	uint64_t cut_at_ns;
	int result;

	if (count == 1)
		callers[0].give_up_ns = 20 * cut_ns;
	for (unsigned int i = 0; i < count; i++) {
		result = open_end(pair, arg, true, callers[i].give_up_ns, &callers[i].pgr);
		if (result != PAIR_PASSED)
			return result;
	}
	if (!pair_await(pair))
		return PAIR_FAILED;
	for (unsigned int i = 0; i < count; i++) {
		pgr_bind(callers[i].pgr, pair->address, sizeof(pair->address), &callers[i].peer);
		if (!works(&callers[i]))
			return pair_report(pair, PAIR_FAILED,
					   "calls failed before the cut: %u given up, %u otherwise",
					   callers[i].given_up, callers[i].other);
	}
	executed = pair->executed;

	if (!pair_link(false))
		return pair_report(pair, PAIR_SKIPPED, "the link cannot be cut");
	cut_at_ns = now_ns();
	for (unsigned int i = 0; i < count; i++)
		begin(&callers[i]);
	serve(callers, count, cut_at_ns + cut_ns);
	if (patient->done || pair->executed != executed)
		return pair_report(pair, PAIR_FAILED, "the link was not cut");
	if (!pair_link(true))
		return pair_report(pair, PAIR_FAILED, "the link cannot be healed");
	serve(callers, count, 0);
	result = count == 2 ? judge(pair, &callers[0], patient, cut_at_ns) : PAIR_PASSED;
	if (result == PAIR_PASSED && patient->done != CALLS)
		result = pair_report(pair, PAIR_FAILED, "%u of %u calls survived the cut", patient->done,
				     CALLS);
	if (result == PAIR_PASSED && pair->executed != executed + CALLS)
		result = pair_report(pair, PAIR_FAILED, "%u calls were executed, not %u",
				     pair->executed - executed, CALLS);

	/* and all is as it was */
	for (unsigned int i = 0; i < count && result == PAIR_PASSED; i++) {
		if (!works(&callers[i]))
			result = pair_report(pair, PAIR_FAILED, "calls failed after the link was healed");
	}
	for (unsigned int i = 0; i < count; i++)
		pgr_close(callers[i].pgr);
	return result;
}

int main(void)
{
	static char wires[][4] = {"udp", "ip", "xdp"};
	const char *cut_ms = getenv("PGR_CUT_MS");
	int status = 0;

	cut_ns = (cut_ms ? (uint64_t)atoi(cut_ms) : 1000) * MS;
	printf("TAP version 13\n1..3\n");
	for (unsigned int i = 0; i < 3; i++) {
		const unsigned int seconds = 30 + (unsigned int)(3 * cut_ns / (1000 * MS));
		const int result = pair_run(true, seconds, run_server, run_client, wires[i]);

		printf("%s %u - a link that is cut for %llu ms, on %s%s%s\n",
		       result == PAIR_FAILED ? "not ok" : "ok", i + 1, (unsigned long long)(cut_ns / MS),
		       wires[i], result == PAIR_SKIPPED ? " # SKIP " : "",
		       result == PAIR_SKIPPED ? pair_why() : "");
		if (result == PAIR_FAILED)
			printf("# %s\n", pair_why());
		fflush(stdout);
		status |= result == PAIR_FAILED;
	}
	return status;
}
