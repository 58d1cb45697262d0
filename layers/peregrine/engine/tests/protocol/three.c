/* SPDX-License-Identifier: BSD-3-Clause */
/* Three endpoints: the server to which a call was passed on is dead. */
#include "caller.h"

static struct pgr *open_plain(uint16_t port)
{
	const struct pgr_config config = {.bytes = sizeof(config), .port_first = port, .port_last = port};
	struct pgr *pgr = NULL;

	if (pgr_open_on(&pgr_wire_net, &config, &pgr) != PGR_OK)
		abort();
	pgr_serve(pgr, ECHO, NULL, on_echo, NULL);
	pgr_serve(pgr, PASS, NULL, on_pass, NULL);
	return pgr;
}

static void allow(struct pgr *pgr, uint32_t port)
{
	const struct pgr_to from = address(port);

	CHECK(pgr_delegations_from(pgr, from.bytes, sizeof(from.bytes), 1) == PGR_OK);
}

/* The server to which a call was passed on dies: before, and after it had the call. */
static void test_delegated_to_the_dead(void)
{
	for (unsigned int after = 0; after < 2; after++) {
		struct pgr *all[3] = {open_plain(1), open_plain(2), open_plain(3)};
		struct pgr_peer *peer = bind_to(all[0], 2);
		const struct pgr_iov iov = {pattern, 10};
		uint64_t begun_ns;

		t.peer = bind_to(all[1], 3);
		allow(all[2], 2);
		t.done = t.executed = 0;
		net_cut(all[2], !after);
		/* all three know each other, if they can */
		for (unsigned int i = 0; i < 2; i++) {
			begun_ns = net_now_ns();
			t.done = 0;
			CHECK(pgr_call(peer, PASS, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
			while (!t.done && net_now_ns() - begun_ns < 40 * SECOND)
				net_step(all, 3);
			if (!after)
				break;
			CHECK(t.done == 1 && (i || (t.code == PGR_OK && t.result_bytes == 10)));
			net_cut(all[2], true);
		}
		/* The one before says alive until its own give-up time; then the caller's begins. */
		CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP && net_now_ns() - begun_ns >= 10 * SECOND &&
		      net_now_ns() - begun_ns <= 21 * SECOND);
		for (unsigned int i = 0; i < 3; i++)
			pgr_close(all[i]);
		net_reset(1, PACKET_BYTES);
	}
}

/* Who was not named passes nothing on: the caller's call ends, and nothing goes to where it says. */
static void test_delegated_by_nobody(void)
{
	struct pgr *all[3] = {open_plain(1), open_plain(2), open_plain(3)};
	struct pgr_peer *peer = bind_to(all[0], 2);
	const struct pgr_iov iov = {pattern, 10};

	t.peer = bind_to(all[1], 3);
	CHECK(pgr_call(peer, PASS, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
	for (uint64_t begun_ns = net_now_ns(); !t.done && net_now_ns() - begun_ns < 40 * SECOND;)
		net_step(all, 3);
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP && t.executed == 1);
	/* allowed, and no longer */
	for (unsigned int allowed = 0; allowed < 3; allowed++) {
		const struct pgr_to from = address(2);

		CHECK(pgr_delegations_from(all[2], from.bytes, sizeof(from.bytes), allowed < 2) == PGR_OK);
		t.done = t.executed = 0;
		CHECK(pgr_call(peer, PASS, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
		for (uint64_t begun_ns = net_now_ns(); !t.done && net_now_ns() - begun_ns < 40 * SECOND;)
			net_step(all, 3);
		CHECK(t.done == 1 && t.code == (allowed < 2 ? PGR_OK : PGR_E_GIVE_UP) &&
		      t.executed == (allowed < 2 ? 2u : 1u));
	}
	CHECK(pgr_delegations_from(all[2], "", 0, 1) == PGR_E_ARGUMENT &&
	      pgr_delegations_from(all[2], pattern, PGR_ADDRESS_BYTES + 1, 1) == PGR_E_ARGUMENT);
	for (unsigned int i = 0; i < 3; i++)
		pgr_close(all[i]);
	net_reset(1, PACKET_BYTES);
}

/* The last server's result is lost on its way: the caller's repetitions, through the first one, bring it again. */
static bool loses_first_result(void *arg, uint8_t *packet, size_t bytes)
{
	unsigned int *lost = arg;

	(void)bytes;
	if (packet[0] != PGR_RESULT || !(packet[1] & PGR_FLAG_DELEGATED) || *lost == 3)
		return true;
	++*lost;
	return false;
}

static void test_delegated_result_lost(void)
{
	struct pgr *all[3] = {open_plain(1), open_plain(2), open_plain(3)};
	struct pgr_peer *peer = bind_to(all[0], 2);
	const struct pgr_iov iov = {pattern, 10};
	unsigned int lost = 0;
	uint64_t begun_ns;

	t.peer = bind_to(all[1], 3);
	allow(all[2], 2);
	net_watch(loses_first_result, &lost);
	begun_ns = net_now_ns();
	CHECK(pgr_call(peer, PASS, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
	while (!t.done && net_now_ns() - begun_ns < 40 * SECOND)
		net_step(all, 3);
	CHECK(t.done == 1 && t.code == PGR_OK && t.executed == 2 && lost == 3);
	CHECK(net_now_ns() - begun_ns < SECOND);
	net_watch(NULL, NULL);
	for (unsigned int i = 0; i < 3; i++)
		pgr_close(all[i]);
	net_reset(1, PACKET_BYTES);
}

const struct protocol_test protocol_three[] = {
	{"a call is passed on by whom nobody named", test_delegated_by_nobody},
	{"the result of a call that was passed on is lost", test_delegated_result_lost},
	{"a call is passed on to a dead server", test_delegated_to_the_dead},
	{NULL, NULL},
};
