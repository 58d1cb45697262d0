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

const struct protocol_test protocol_server_memory[] = {
	{"server: the pool is full", test_pool_full},
	{"server: a flood of strangers leaves no state", test_flood_unknown},
	{"server: a flood of known clients stays in the pool", test_flood_known},
	{NULL, NULL},
};
