/* SPDX-License-Identifier: BSD-3-Clause */
/* Two endpoints whose times do not match: the client is more patient than its server's memory. */
#include "caller.h"

static struct pgr *open_plain(uint16_t port, uint64_t give_up_ns)
{
	const struct pgr_config config = {
		.bytes = sizeof(config), .port_first = port, .port_last = port, .give_up_ns = give_up_ns};
	struct pgr *pgr = NULL;

	if (pgr_open_on(&pgr_wire_net, &config, &pgr) != PGR_OK)
		abort();
	pgr_serve(pgr, ECHO, NULL, on_echo, NULL);
	return pgr;
}

static bool is_no_result(void *arg, uint8_t *packet, size_t bytes)
{
	(void)arg, (void)bytes;
	return packet[0] != PGR_RESULT;
}

static void step_for(struct pgr *const *all, uint64_t ns)
{
	const uint64_t begun_ns = net_now_ns();

	while (!t.done && net_now_ns() - begun_ns < ns)
		net_step(all, 2);
}

static void call_echo(struct pgr_peer *peer)
{
	const struct pgr_iov iov = {pattern, 10};

	t.done = 0;
	CHECK(pgr_call(peer, ECHO, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
}

/*
 * The call is executed, its answers are lost, and then the link is down for `cut_ns`: shorter than the server keeps the
 * client in mind (40 s), or longer. It must not be executed again.
 */
static void executed_once(uint64_t cut_ns)
{
	struct pgr *const all[2] = {open_plain(1, 60 * SECOND), open_plain(2, 0)};
	const struct pgr_to to = address(2);
	struct pgr_peer *peer = NULL;
	uint64_t begun_ns;

	CHECK(pgr_bind(all[0], to.bytes, sizeof(to.bytes), &peer) == PGR_OK);
	t.executed = 0;
	call_echo(peer);
	step_for(all, SECOND);
	CHECK(t.done == 1 && t.code == PGR_OK && t.executed == 1);
	net_watch(is_no_result, NULL);
	begun_ns = net_now_ns();
	call_echo(peer);
	step_for(all, 100 * MS);
	CHECK(t.done == 0 && t.executed == 2);
	net_cut(all[1], true);
	step_for(all, cut_ns);
	net_watch(NULL, NULL);
	net_cut(all[1], false);
	step_for(all, 61 * SECOND);
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP && t.executed == 2);
	/* who remembers that there was a result says so at once; else nothing that comes can be trusted */
	if (cut_ns < 40 * SECOND)
		CHECK(net_now_ns() - begun_ns < cut_ns + 5 * SECOND);
	else
		CHECK(net_now_ns() - begun_ns >= 60 * SECOND);
	/* a call that begins now is like any other, also after a long silence */
	for (unsigned int i = 0; i < 2; i++) {
		call_echo(peer);
		step_for(all, SECOND);
		CHECK(t.done == 1 && t.code == PGR_OK && t.executed == 3 + i);
		t.done = 0;
		step_for(all, 100 * SECOND);
	}
	pgr_close(all[0]);
	pgr_close(all[1]);
	net_reset(1, PACKET_BYTES);
}

static void test_patient_client(void)
{
	executed_once(25 * SECOND);
	executed_once(46 * SECOND);
	executed_once(55 * SECOND);
}

/*
 * As above, but the call is the first in its slot; and after the cut another slot's call is given a cookie. The call that
 * waits may not go out with that one: the server has forgotten that it executed it.
 */
static void test_cookie_of_another_call(void)
{
	struct pgr *const all[2] = {open_plain(1, 60 * SECOND), open_plain(2, 0)};
	const struct pgr_to to = address(2);
	struct pgr_peer *peer = NULL;

	CHECK(pgr_bind(all[0], to.bytes, sizeof(to.bytes), &peer) == PGR_OK);
	t.executed = 0;
	net_watch(is_no_result, NULL);
	call_echo(peer);
	step_for(all, SECOND);
	CHECK(t.done == 0 && t.executed == 1);
	net_cut(all[1], true);
	step_for(all, 46 * SECOND);
	net_watch(NULL, NULL);
	net_cut(all[1], false);
	call_echo(peer);
	step_for(all, SECOND);
	CHECK(t.done == 1 && t.code == PGR_OK && t.executed == 2);
	t.done = 0;
	step_for(all, 61 * SECOND);
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP && t.executed == 2);
	pgr_close(all[0]);
	pgr_close(all[1]);
	net_reset(1, PACKET_BYTES);
}

const struct protocol_test protocol_two[] = {
	{"a client that is more patient than its server remembers", test_patient_client},
	{"a cookie that another call was given", test_cookie_of_another_call},
	{NULL, NULL},
};
