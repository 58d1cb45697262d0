/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that has restarted executes no old call; what it forgets, and when. */
#include "hand.h"

static void test_server_restarted(void)
{
	struct pgr_header call;
	uint64_t cookie;
	uint32_t old;

	open_endpoint(NULL);
	call = call_of(1, ECHO, 10);
	put(&call, pattern);
	cookie = cookie_in(&t.seen[0].packet.head);
	old = t.pgr->incarnation;
	put_from(FAR, &call, cookie, pattern);
	CHECK(t.executed == 1);
	close_endpoint();
	open_endpoint(NULL);
	t.executed = 0;
	CHECK(t.pgr->incarnation != old);
	/* The old call, with the old incarnation and its cookie: challenged, never executed. */
	put_from(FAR, &call, cookie, pattern);
	CHECK(one(PGR_CHALLENGE) && one(PGR_CHALLENGE)->procedure == old &&
	      one(PGR_CHALLENGE)->incarnation == t.pgr->incarnation);
	/* Not even under the new incarnation: the cookie is of another secret. */
	call.incarnation = t.pgr->incarnation;
	put_from(FAR, &call, cookie, pattern);
	CHECK(one(PGR_CHALLENGE) && t.executed == 0 && stats()->clients == 0);
	/* When the client is known again, what is delayed from before is still not executed. */
	make_known();
	call.incarnation = old;
	put_from(FAR, &call, cookie, pattern);
	CHECK(one(PGR_CHALLENGE) && t.executed == 0);
	/* Late acks of before are not answered. */
	{
		struct pgr_header ack = bare_of(PGR_ACK, 1);

		ack.incarnation = old;
		put(&ack, NULL);
		CHECK(silent());
	}
}

static void test_server_forgets(void)
{
	open_endpoint(NULL);
	make_known();
	put_call(1, ECHO, 10, 0);
	/* Half of the memory time: all is there. */
	pass(19 * SECOND);
	put_call(1, ECHO, 10, 0);
	CHECK(one(PGR_RESULT) && t.executed == 1 && stats()->clients == 1);
	/* Nobody waits for the result any more, but the call stays filtered. */
	pass(21 * SECOND);
	CHECK(stats()->clients == 1 && stats()->pool_bytes == sizeof(struct pgr_work));
	put_call(1, ECHO, 10, PGR_FLAG_ASK);
	CHECK(one_reject(PGR_REJECT_LOST) && t.executed == 1);
	/* Silent for the memory time: forgotten, and challenged under the same incarnation. */
	pass(41 * SECOND);
	CHECK(stats()->clients == 0);
	put_call(2, ECHO, 10, 0);
	CHECK(one(PGR_CHALLENGE) && one(PGR_CHALLENGE)->incarnation == t.pgr->incarnation &&
	      one(PGR_CHALLENGE)->procedure == t.pgr->incarnation && t.executed == 1);
}

const struct protocol_test protocol_server_restart[] = {
	{"server: a restarted one executes no old call", test_server_restarted},
	{"server: what it forgets, and when", test_server_forgets},
	{NULL, NULL},
};
