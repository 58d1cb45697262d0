/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that forgot its client may have forgotten a call that it executed. The client obeys its challenge only
 * as long as the server would still remember: PROTOCOL.md, "First contact".
 */
#include "caller.h"

/* The call is repeated in vain for so long; then its server challenges it, under the incarnation that it claims. */
static bool obeys_after(uint64_t silence_ns, uint32_t memory_ms)
{
	struct pgr_header head;
	bool obeyed;

	call(10, 0);
	pass(silence_ns);
	CHECK(t.done == 0);
	head = challenge_of(INCARNATION, COOKIE + 1 + net_random(1000000));
	head.packet_bytes = memory_ms;
	put(&head, NULL);
	obeyed = !silent();
	if (obeyed)
		CHECK(one(PGR_CALL) && t.seen[0].packet.cookie == cookie_in(&head));
	pass(MS / 2);
	t.seen_count = 0;
	pass(250 * MS + MS); /* what it says now is the call again, after which the server answers */
	if (CHECK(t.seen_count > 0)) {
		head = result_of(10);
		put(&head, pattern);
	}
	CHECK(t.done == 1 && t.code == PGR_OK);
	return obeyed;
}

static void test_client_forgotten(void)
{
	const struct pgr_config config = {.give_up_ns = 10 * 60 * SECOND};

	open_endpoint(&config);
	learn_server();
	/* 10 s less than the memory time: a cookie that is given now lives as long */
	CHECK(obeys_after(0, MEMORY_MS));
	CHECK(obeys_after(29 * SECOND, MEMORY_MS));
	CHECK(!obeys_after(31 * SECOND, MEMORY_MS));
	CHECK(!obeys_after(46 * SECOND, MEMORY_MS));
	CHECK(obeys_after(46 * SECOND, 60000));
	CHECK(obeys_after(46 * SECOND, UINT32_MAX));
	/* nothing is remembered for so short a time, or it does not say */
	CHECK(!obeys_after(0, 10000) && !obeys_after(0, 0));
	CHECK(obeys_after(0, 10001));
	/* an endpoint that said nothing for long: what it calls now, nobody had before */
	net_pass_time(3600 * SECOND);
	CHECK(obeys_after(0, MEMORY_MS));
}

/* The moment counts at which the call went out under a claim; what claims nothing is executed by nobody. */
static void test_client_unclaimed(void)
{
	const struct pgr_config config = {.give_up_ns = 10 * 60 * SECOND};
	struct pgr_header head;

	open_endpoint(&config);
	call(10, 0);
	pass(60 * SECOND);
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	CHECK(one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE);
	pass(29 * SECOND);
	head = challenge_of(INCARNATION, COOKIE + 1);
	put(&head, NULL);
	CHECK(one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE + 1);
	/* that it went out once more since does not change when it first did */
	pass(2 * SECOND);
	head = challenge_of(INCARNATION, COOKIE + 2);
	put(&head, NULL);
	CHECK(silent() && t.done == 0);
}

/* On a wire that loses nothing too, by the short way and the long one. */
static void test_client_forgotten_reliable(void)
{
	t.reliable = true;
	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < 2; i++) {
		struct pgr_header head;

		net_pass_time(3600 * SECOND);
		call(i ? 10 : 2 * DATA_BYTES, 0);
		head = challenge_of(INCARNATION, COOKIE + 1 + i);
		put(&head, NULL);
		CHECK(t.seen_count == (i ? 1 : 2) && t.seen[0].packet.cookie == COOKIE + 1 + i);
		head = result_of(10);
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK);
	}
}

/* Nothing of the call is there: so it speaks, but has not had it, and may say who it is; and it is no answer. */
static void test_client_empty_nack(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < 2; i++) {
		call(10, 0);
		head = answer_of(PGR_NACK);
		put(&head, NULL);
		CHECK(one(PGR_CALL));
		/* one that is not empty says that it has had it */
		head.data_bytes = i ? 8 : 0;
		put(&head, "\0\0\0\0\0\0\0");
		t.seen_count = 0;
		head = challenge_of(INCARNATION, COOKIE + 1 + i);
		put(&head, NULL);
		CHECK(i ? silent() : one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE + 1);
		t.done = 0;
		head = answer_of(PGR_NACK);
		head.incarnation = INCARNATION;
		for (unsigned int j = 0; j < 11 && !t.done; j++) {
			pass(SECOND);
			t.seen_count = 0;
			if (!t.done)
				put(&head, NULL);
		}
		CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP);
	}
}

/* A machine that slept: its server may have forgotten all that it still waits for. */
static void test_client_slept(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < 2; i++) {
		call(10, 0);
		head = challenge_of(INCARNATION, COOKIE + 1);
		t.done = 0;
		t.seen_count = 0;
		net_pass_time(i ? 11 * SECOND : 9 * SECOND);
		put(&head, NULL);
		pgr_poll(t.pgr);
		for (unsigned int j = 0; j < t.seen_count; j++)
			CHECK((t.seen[j].packet.cookie == COOKIE + 1) == !i);
		CHECK(i ? t.done == 1 && t.code == PGR_E_GIVE_UP : !t.done && t.seen_count);
		head = result_of(10);
		put(&head, pattern);
	}
}

const struct protocol_test protocol_client_memory[] = {
	{"client: an empty nack", test_client_empty_nack},
	{"client: a machine that slept", test_client_slept},
	{"client: a server that forgot it", test_client_forgotten},
	{"client: a call that claimed nothing", test_client_unclaimed},
	{"client: a server that forgot it, on a wire that loses nothing", test_client_forgotten_reliable},
	{NULL, NULL},
};
