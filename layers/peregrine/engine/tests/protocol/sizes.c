/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of packets: limits of both ends, and paths that let only small ones through. */
#include "caller.h"

enum {
	/* of the network's largest packet */
	LARGE = 4096,
	/* of the largest that a path with a hole lets through */
	HOLE = 1300,
	/* of packets without extensions */
	SMALL = PGR_SMALL_BYTES + PGR_HEADER_BYTES,
	LIMIT = 2000,
	LIMITED = LIMIT - PGR_EXTENSIONS_BYTES,
	/* messages: one large packet; several, the last of them small, or large */
	ONE_BYTES = 3000,
	FEW_BYTES = 16500,
	EVEN_BYTES = 16000,
};

/* What the network lets through, and what it saw; of types, a bit each. */
struct path {
	uint32_t holes;
	uint32_t largest, large[PGR_TYPES_END];
	/* no packet of results at all passes; small ones in a row that nobody asked for, at most */
	bool no_results;
	uint32_t run, run_most;
	/*
	 * Of this type three large packets pass, and no more; those of a message that began anew are lost as long as
	 * `losing`; how many were.
	 */
	uint8_t lost_type;
	bool losing;
	uint32_t lost;
	/* the last report of what came of a message in large packets */
	uint8_t report[PACKET_BYTES];
	size_t report_bytes;
};

static bool look(void *arg, uint8_t *packet, size_t bytes)
{
	struct path *path = arg;
	const bool large = bytes > HOLE;
	struct pgr_header head;
	bool anew; /* of a message that is cut small */

	memcpy(&head, packet, sizeof(head));
	pgr_le_header(&head, &head);
	anew = head.type == path->lost_type && head.packet_bytes == PGR_SMALL_BYTES;
	if (bytes > path->largest)
		path->largest = (uint32_t)bytes;
	path->large[head.type] += large;
	if (head.type == PGR_PROBE) {
		path->run = 0;
	} else if (head.type == PGR_RESULT && head.packet_bytes == PGR_SMALL_BYTES) {
		path->run++;
		path->run_most = path->run > path->run_most ? path->run : path->run_most;
	} else if ((head.type == PGR_ACK || head.type == PGR_NACK) && head.packet_number >= 2 &&
		   head.packet_bytes > PGR_SMALL_BYTES && bytes <= sizeof(path->report)) {
		memcpy(path->report, packet, bytes);
		path->report_bytes = bytes;
	}
	if ((large && head.type == path->lost_type && path->large[head.type] > 3) ||
	    (path->no_results && head.type == PGR_RESULT))
		return false;
	if (path->losing && anew) {
		path->lost++;
		return false;
	}
	return !large || !(path->holes >> head.type & 1);
}

/* The arguments, whole, and from where they may lie until they have gone. */
static void on_give(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {pattern, request->args_bytes};

	(void)arg;
	CHECK(!memcmp(request->args, pattern, request->args_bytes));
	t.executed++;
	CHECK(pgr_reply(request->pgr, &request->token, &iov, 1, 0, NULL, NULL) >= 0);
}

static struct pgr *open_with(uint16_t port, uint32_t packet_bytes_max)
{
	const struct pgr_config config = {.bytes = sizeof(config),
					  .port_first = port,
					  .port_last = port,
					  .packet_bytes_max = packet_bytes_max};
	struct pgr *pgr = NULL;

	if (pgr_open_on(&pgr_wire_net, &config, &pgr) != PGR_OK)
		abort();
	pgr_serve(pgr, ECHO, NULL, on_give, NULL);
	pgr_serve(pgr, PASS, NULL, on_pass, NULL);
	return pgr;
}

/* One call with its result; the network's time that it took. */
static uint64_t call_echo(struct pgr *const *all, unsigned int count, struct pgr_peer *peer,
			  uint32_t procedure, uint32_t bytes)
{
	const struct pgr_iov iov = {pattern, bytes};
	const uint64_t begun_ns = net_now_ns();
	const unsigned int executed = t.executed;

	t.done = 0;
	CHECK(pgr_call(peer, procedure, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
	while (!t.done && net_now_ns() - begun_ns < 40 * SECOND)
		net_step(all, count);
	CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == bytes &&
	      !memcmp(t.result, pattern, bytes) && t.executed == executed + (procedure == PASS ? 2 : 1));
	return net_now_ns() - begun_ns;
}

static void close_all(struct pgr *const *all, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		pgr_close(all[i]);
	net_reset(1, PACKET_BYTES);
}

/* Whoever has the smaller limit: nobody sends more, once the client has met its server. */
static void test_limits(void)
{
	for (unsigned int smaller = 0; smaller < 2; smaller++) {
		struct path path = {0};
		struct pgr *all[2];
		struct pgr_peer *peer;

		net_reset(1, LARGE);
		all[0] = open_with(1, smaller == 0 ? LIMIT : 0);
		all[1] = open_with(2, smaller == 1 ? LIMIT : 0);
		peer = bind_to(all[0], 2);
		net_watch(look, &path);
		/* only the first packet is one of which the client does not know better */
		call_echo(all, 2, peer, ECHO, FEW_BYTES);
		CHECK(path.largest == (smaller ? LARGE - PGR_EXTENSIONS_BYTES : LIMITED + PGR_COOKIE_BYTES));
		path.largest = 0;
		for (unsigned int i = 0; i < 10; i++)
			call_echo(all, 2, peer, ECHO, i % 2 ? FEW_BYTES : ONE_BYTES);
		CHECK(path.largest == LIMITED && !all[0]->stats.bindings_shrunk &&
		      !all[0]->stats.retransmissions);
		close_all(all, 2);
	}
}

static void test_a_limit_that_is_none(void)
{
	char error[80] = "";
	const struct pgr_config config = {.bytes = sizeof(config),
					  .packet_bytes_max = 100,
					  .error = error,
					  .error_bytes = sizeof(error)};
	struct pgr *pgr;

	CHECK(pgr_open_on(&pgr_wire_net, &config, &pgr) == PGR_E_ARGUMENT && error[0]);
}

/*
 * Large packets of these types vanish, from the first one on or from after some calls. The call that meets it succeeds,
 * is executed once, and those after it send nothing large.
 */
static void into_a_hole(uint32_t types, uint32_t bytes, unsigned int before)
{
	struct path path = {0};
	struct pgr *all[2];
	struct pgr_peer *peer;
	uint64_t took_ns;

	net_reset(1, LARGE);
	all[0] = open_with(1, 0);
	all[1] = open_with(2, 0);
	peer = bind_to(all[0], 2);
	net_watch(look, &path);
	for (unsigned int i = 0; i < before; i++)
		call_echo(all, 2, peer, ECHO, bytes);
	path.holes = types;
	took_ns = call_echo(all, 2, peer, ECHO, bytes);
	if (!CHECK(took_ns < (before ? SECOND : 300 * MS)))
		printf("# %u ms: types %u, %u bytes, %u before\n", (unsigned int)(took_ns / MS), types, bytes,
		       before);
	CHECK(all[0]->stats.bindings_shrunk == 1);
	path.largest = 0;
	for (unsigned int i = 0; i < 5; i++)
		CHECK(call_echo(all, 2, peer, ECHO, bytes) < 2 * MS);
	CHECK(path.largest == SMALL && all[0]->stats.bindings_shrunk == 1);
	/* another binding finds out for itself */
	path.holes = 0;
	call_echo(all, 2, bind_to(all[0], 2), ECHO, bytes);
	CHECK(path.largest > HOLE);
	close_all(all, 2);
}

static void test_holes(void)
{
	static const uint32_t bytes[] = {ONE_BYTES, FEW_BYTES, EVEN_BYTES};
	static const uint32_t types[] = {1u << PGR_CALL, 1u << PGR_RESULT, 1u << PGR_CALL | 1u << PGR_RESULT};

	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int j = 0; j < 3; j++)
			for (unsigned int before = 0; before < 2; before++)
				into_a_hole(types[i], bytes[j], before);
}

/* What arrived of a message in large packets is dropped; what comes late of them, and reports of them, too. */
static void test_a_hole_in_the_middle(void)
{
	for (unsigned int type = PGR_CALL; type <= PGR_RESULT; type++) {
		for (uint64_t seed = 1; seed <= 20; seed++) {
			const struct net_faults faults = {
				.delay = 200000, .duplicate = 200000, .reorder = 200000};
			struct path path = {0};
			struct pgr *all[2];
			struct pgr_peer *peer;

			net_reset(seed, LARGE);
			all[0] = open_with(1, 0);
			all[1] = open_with(2, 0);
			peer = bind_to(all[0], 2);
			call_echo(all, 2, peer, ECHO, 8);
			net_set_faults(&faults);
			net_watch(look, &path);
			{
				const struct pgr_iov iov = {pattern, FEW_BYTES};
				const uint64_t begun_ns = net_now_ns();
				const unsigned int executed = t.executed;

				t.done = 0;
				CHECK(pgr_call(peer, ECHO, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) ==
				      PGR_QUEUED);
				while (!t.done && net_now_ns() - begun_ns < 40 * SECOND) {
					/* some of them are through */
					if (path.large[type] >= 1 + seed % 4)
						path.holes = UINT32_MAX;
					net_step(all, 2);
				}
				CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == FEW_BYTES &&
				      !memcmp(t.result, pattern, FEW_BYTES) && t.executed == executed + 1);
			}
			close_all(all, 2);
		}
	}
}

/*
 * A report of large packets comes once more when the message has begun anew, and none of it has arrived: taken for one of
 * the small packets, it would keep some from ever being sent.
 */
static void test_a_late_report(void)
{
	for (unsigned int type = PGR_CALL; type <= PGR_RESULT; type++) {
		const struct pgr_iov iov = {pattern, FEW_BYTES};
		struct path path = {.lost_type = (uint8_t)type, .losing = true};
		struct pgr *all[2];
		struct pgr_peer *peer;
		uint64_t begun_ns;

		net_reset(1, LARGE);
		all[0] = open_with(1, 0);
		all[1] = open_with(2, 0);
		peer = bind_to(all[0], 2);
		call_echo(all, 2, peer, ECHO, 8);
		net_watch(look, &path);
		begun_ns = net_now_ns();
		t.done = 0;
		CHECK(pgr_call(peer, ECHO, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
		while (!t.done && net_now_ns() - begun_ns < 40 * SECOND) {
			const struct pgr_to from = address(type == PGR_CALL ? 2 : 1);

			if (path.losing && path.lost > 10) {
				CHECK(path.report_bytes);
				net_inject(all[type == PGR_CALL ? 0 : 1], &from, path.report,
					   path.report_bytes);
				path.losing = false;
			}
			net_step(all, 2);
		}
		CHECK(path.lost > 10 && t.done == 1 && t.code == PGR_OK && t.result_bytes == FEW_BYTES &&
		      !memcmp(t.result, pattern, FEW_BYTES));
		CHECK(net_now_ns() - begun_ns < 5 * SECOND);
		close_all(all, 2);
	}
}

/* Losses alone are no hole. */
static void test_losses(void)
{
	const struct net_faults faults = {.drop = 100000};
	struct pgr *all[2];
	struct pgr_peer *peer;

	net_reset(3, LARGE);
	all[0] = open_with(1, 0);
	all[1] = open_with(2, 0);
	peer = bind_to(all[0], 2);
	call_echo(all, 2, peer, ECHO, ONE_BYTES);
	net_set_faults(&faults);
	for (unsigned int i = 0; i < 1000; i++)
		call_echo(all, 2, peer, ECHO, ONE_BYTES);
	CHECK(all[0]->stats.retransmissions > 100 && !all[0]->stats.bindings_shrunk);
	close_all(all, 2);
}

/* A server that is slow, or stands still, is no hole. */
static void test_a_server_that_stands_still(void)
{
	struct pgr *all[2];
	struct pgr_peer *peer;

	for (uint32_t known = 0; known < 2; known++) {
		const struct pgr_iov iov = {pattern, FEW_BYTES};

		net_reset(1, LARGE);
		all[0] = open_with(1, 0);
		all[1] = open_with(2, 0);
		peer = bind_to(all[0], 2);
		if (known)
			call_echo(all, 2, peer, ECHO, 8);
		t.done = 0;
		CHECK(pgr_call(peer, ECHO, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
		for (uint64_t begun_ns = net_now_ns(); net_now_ns() - begun_ns < SECOND;)
			net_step(all, 1);
		while (!t.done)
			net_step(all, 2);
		CHECK(t.code == PGR_OK && all[0]->stats.retransmissions > 3 &&
		      !all[0]->stats.bindings_shrunk);
		close_all(all, 2);
	}
}

/* A client, bound to the second, which passes calls on to the third. */
static struct pgr_peer *open_three(struct pgr *all[3])
{
	const struct pgr_to second = address(2);

	net_reset(1, LARGE);
	for (uint16_t i = 0; i < 3; i++)
		all[i] = open_with((uint16_t)(i + 1), 0);
	t.peer = bind_to(all[1], 3);
	CHECK(pgr_delegations_from(all[2], second.bytes, sizeof(second.bytes), 1) == PGR_OK);
	return bind_to(all[0], 2);
}

/* A call that was passed on: the way back from the last server has a hole. */
static void test_a_hole_behind_delegation(void)
{
	static const uint32_t bytes[] = {ONE_BYTES, FEW_BYTES, EVEN_BYTES};

	for (unsigned int i = 0; i < 3; i++) {
		for (unsigned int before = 0; before < 2; before++) {
			struct path path = {0};
			struct pgr *all[3];
			struct pgr_peer *peer;

			peer = open_three(all);
			net_watch(look, &path);
			if (before)
				call_echo(all, 3, peer, PASS, bytes[i]);
			path.holes = 1u << PGR_RESULT;
			CHECK(call_echo(all, 3, peer, PASS, bytes[i]) < 2 * SECOND);
			CHECK(all[0]->stats.bindings_shrunk == 1);
			path.large[PGR_RESULT] = 0;
			CHECK(call_echo(all, 3, peer, PASS, bytes[i]) < 5 * MS && !path.large[PGR_RESULT]);
			close_all(all, 3);
		}
	}
	t.peer = NULL;
}

/* Where nobody has spoken, a result that begins anew is no second burst. */
static void test_no_second_burst(void)
{
	const struct pgr_iov iov = {pattern, FEW_BYTES};
	struct path path = {.no_results = true};
	struct pgr *all[3];
	struct pgr_peer *peer;

	peer = open_three(all);
	net_watch(look, &path);
	CHECK(pgr_call(peer, PASS, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
	for (uint64_t begun_ns = net_now_ns(); net_now_ns() - begun_ns < 5 * SECOND;)
		net_step(all, 3);
	CHECK(all[0]->stats.bindings_shrunk == 1 && path.large[PGR_RESULT] >= 4 && path.run_most == 1);
	close_all(all, 3);
	t.peer = NULL;
}

const struct protocol_test protocol_sizes[] = {
	{"the smaller limit of both ends", test_limits},
	{"a limit that is none", test_a_limit_that_is_none},
	{"large packets vanish", test_holes},
	{"large packets vanish in the middle of a message", test_a_hole_in_the_middle},
	{"a report of large packets comes late", test_a_late_report},
	{"losses do not make packets small", test_losses},
	{"nor does a server that stands still", test_a_server_that_stands_still},
	{"large packets vanish on the way back from another server", test_a_hole_behind_delegation},
	{"no second burst to who has not spoken", test_no_second_burst},
	{NULL, NULL},
};
