/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server spends on calls stays in its pool, whoever floods it. */
#include "hand.h"

static void test_pool_full(void)
{
	struct pgr_config config = {.pool_bytes_max = 40000};
	struct pgr_header call;

	open_endpoint(&config);
	make_known();
	call = call_of(1, LATER, 30000);
	put(&call, pattern);
	CHECK(silent());
	/* No room for another long call: busy, and nothing of it is kept. */
	call.slot = 6;
	put(&call, pattern);
	CHECK(one_reject(PGR_REJECT_BUSY) && stats()->pool_bytes <= 40000);
	/* The first one goes: now there is. */
	put_call(2, ECHO, 1, 0);
	call.flags = PGR_FLAG_ASK;
	put(&call, pattern);
	CHECK(one(PGR_ACK) && t.executed == 1);
}

static void test_flood_unknown(void)
{
	open_endpoint(NULL);
	/* Ten thousand strangers: each is answered, none is remembered. */
	for (unsigned int i = 0; i < 10000; i++) {
		struct pgr_header call = call_of(1 + net_random(100), ECHO, 100);

		call.client = (uint64_t)net_random(UINT32_MAX) << 32 | net_random(UINT32_MAX);
		call.slot = (uint16_t)net_random(PGR_SLOTS);
		call.incarnation = i % 2 ? t.pgr->incarnation : 0;
		put_from(FAR, &call, i % 3 ? 0 : COOKIE + i, pattern);
		if (!CHECK(one(PGR_CHALLENGE) != NULL))
			break;
	}
	CHECK(t.executed == 0 && stats()->clients == 0 && stats()->pool_bytes == 0 &&
	      t.pgr->works_count == 0);
	CHECK(stats()->challenges_sent == 10000);
	/* What a known one costs, without what it has under way. */
	CHECK(stats()->server_bytes_per_client <= 2048);
}

static void test_flood_known(void)
{
	const struct pgr_config config = {.pool_bytes_max = 200000, .clients_max = 16};
	uint64_t sequence = 1;
	unsigned int busy = 0;

	open_endpoint(&config);
	for (uint32_t i = 0; i < 16; i++)
		make_known_as(100 + i, FAR + i);
	/* Known clients in all their slots: calls begun and never completed, results never acknowledged. */
	for (unsigned int round = 0; round < 4; round++, sequence++)
		for (uint32_t i = 0; i < 16; i++)
			for (uint16_t slot = 0; slot < PGR_SLOTS; slot++) {
				struct pgr_header call = call_of(sequence, slot % 3 ? ECHO : LATER,
								 slot % 3 ? DATA_BYTES : 3000 + 1000u * slot);

				call.client = 100 + i;
				call.slot = slot;
				put_from(FAR + i, &call, 0, pattern);
				busy += one_reject(PGR_REJECT_BUSY) || one_reject(PGR_REJECT_FAILED);
				if (!CHECK(t.pgr->stats.pool_bytes <= 200000))
					return;
			}
	/* Not all of it fitted, and what did not was rejected; the peak is what it was. */
	CHECK(busy > 0 && stats()->pool_bytes_peak <= 200000 && stats()->pool_bytes_peak > 150000);
	/* Each client comes, when others have let go. */
	pass(45 * SECOND);
	CHECK(stats()->clients == 0 && stats()->pool_bytes == t.pgr->works_count * sizeof(struct pgr_work));
}

/* A result that nobody acknowledged is not kept for ever; who asks for it then is told that it is lost. */
static void test_result_dropped(void)
{
	open_endpoint(NULL);
	make_known();
	put_call(1, ECHO, 10, 0);
	CHECK(one(PGR_RESULT) != NULL);
	pass(19 * SECOND);
	put_call(1, ECHO, 10, 0);
	CHECK(one(PGR_RESULT) != NULL);
	/* twice the give-up time: its client has given up */
	pass(22 * SECOND);
	for (unsigned int i = 0; i < 2; i++) {
		put_call(1, ECHO, 10, i ? PGR_FLAG_ASK : 0);
		CHECK(one_reject(PGR_REJECT_LOST));
		put_bare(PGR_PROBE, 1, 0);
		CHECK(one_reject(PGR_REJECT_LOST));
	}
	/* it ends that with an acknowledgement, and the next call is like any other */
	put_bare(PGR_ACK, 1, 1);
	put_call(2, ECHO, 10, 0);
	CHECK(one(PGR_RESULT) && t.executed == 2);
	put_bare(PGR_ACK, 2, 1);
	put_bare(PGR_PROBE, 2, 0);
	CHECK(silent());
}

/* Makes a client known, by a call in slot 0 that it acknowledges or not. Returns whether it was let in. */
static bool enter(uint64_t client, uint32_t from, bool acknowledge)
{
	struct pgr_header head = call_of(1, ECHO, 10);

	head.client = client;
	head.slot = 0;
	put_from(from, &head, 0, pattern);
	if (!CHECK(one(PGR_CHALLENGE) != NULL))
		return false;
	put_from(from, &head, cookie_in(&t.seen[0].packet.head), pattern);
	if (one_reject(PGR_REJECT_BUSY))
		return false;
	CHECK(one(PGR_RESULT) != NULL);
	if (acknowledge) {
		head = bare_of(PGR_ACK, 1);
		head.client = client;
		head.slot = 0;
		head.packet_number = 1;
		put_from(from, &head, 0, NULL);
	}
	return true;
}

/* One host with more identifiers than there are places locks nobody out. */
static void test_share_of_table(void)
{
	unsigned int in = 0;

	open_endpoint(NULL);
	for (uint64_t i = 0; i < 1100; i++)
		in += enter(1000 + i, FAR, false);
	CHECK(in == 512 && stats()->clients == 512);
	for (uint64_t i = 0; i < 200; i++)
		CHECK(enter(5000 + i, OTHER, true));
	CHECK(stats()->clients == 712);
	/* Twenty hosts more, and another one after them. */
	for (uint32_t i = 0; i < 20; i++)
		CHECK(enter(7000 + i, THIRD + i, true));
	CHECK(enter(8000, THIRD + 30, true));
}

/* Who makes place for others before the memory time, and who does not. */
static void test_forgotten_early(void)
{
	const struct pgr_config config = {.clients_max = 8};
	struct pgr_header head;

	open_endpoint(&config);
	/* four of one host: one whose result is not acknowledged, three that are done */
	CHECK(enter(1, FAR, false));
	for (uint64_t i = 2; i <= 4; i++) {
		pass(SECOND);
		CHECK(enter(i, FAR, true));
	}
	CHECK(!enter(5, FAR, true) && stats()->clients == 4);
	/* their cookies live 10 s, and so does one that the second one is given for another slot */
	pass(6 * SECOND);
	head = call_of(1, ECHO, 10);
	head.client = 2;
	head.slot = 9;
	head.incarnation = t.pgr->incarnation;
	put_from(FAR, &head, 0, pattern);
	CHECK(one(PGR_CHALLENGE) != NULL);
	CHECK(!enter(5, FAR, true));
	pass(5 * SECOND + 200 * MS);
	CHECK(enter(5, FAR, true) && stats()->clients == 4);
	/* it was the third; the first and the second are known still */
	head = bare_of(PGR_PROBE, 1);
	for (uint64_t i = 1; i <= 4; i++) {
		head.client = i;
		head.slot = 0;
		put_from(FAR, &head, 0, NULL);
		CHECK(i == 3 ? one(PGR_CHALLENGE) != NULL : i == 1 ? one(PGR_RESULT) != NULL : silent());
	}
	/* other hosts fill the table; then a newcomer takes the place of whoever may go */
	for (uint32_t i = 0; i < 4; i++)
		enter(20 + i, OTHER + i, true);
	pass(30 * SECOND);
	CHECK(enter(30, OTHER + 9, true));
}

/* One host fills its share of the pool, and another one's call is taken. */
static void test_share_of_pool(void)
{
	const struct pgr_config config = {.pool_bytes_max = 1000000};
	struct pgr_header head;
	unsigned int taken = 0;

	open_endpoint(&config);
	make_known_as(1, FAR);
	make_known_as(2, OTHER);
	for (uint16_t slot = 0; slot < 60; slot++) {
		head = call_of(1, LATER, 30000);
		head.client = 1;
		head.slot = slot;
		put_from(FAR, &head, 0, pattern);
		taken += !one_reject(PGR_REJECT_BUSY);
	}
	CHECK(taken >= 15 && taken <= 17);
	for (uint16_t slot = 0; slot < 7; slot++) {
		head = call_of(1, LATER, 30000);
		head.client = 2;
		head.slot = slot;
		put_from(OTHER, &head, 0, pattern);
		CHECK(!one_reject(PGR_REJECT_BUSY));
	}
	/* what they hold is given back, and counted back */
	pass(100 * SECOND);
	CHECK(stats()->clients == 0 && stats()->pool_bytes == t.pgr->works_count * sizeof(struct pgr_work));
	for (uint64_t i = 0; i <= t.pgr->clients_mask; i++)
		CHECK(!t.pgr->quotas[i]);
}

const struct protocol_test protocol_server_memory[] = {
	{"server: one host gets no more than is left of the table", test_share_of_table},
	{"server: who is forgotten early", test_forgotten_early},
	{"server: one host gets no more than is left of the pool", test_share_of_pool},
	{"server: a result that nobody acknowledged", test_result_dropped},
	{"server: the pool is full", test_pool_full},
	{"server: a flood of strangers leaves no state", test_flood_unknown},
	{"server: a flood of known clients stays in the pool", test_flood_known},
	{NULL, NULL},
};
