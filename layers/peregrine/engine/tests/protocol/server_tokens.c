/* SPDX-License-Identifier: BSD-3-Clause */
/* A token of a call is consumed once. */
#include "hand.h"

static void test_tokens(void)
{
	const struct pgr_iov iov = {pattern, 10};
	struct pgr_token forged = {{0}};

	open_endpoint(NULL);
	make_known();
	/* Answered once: neither a second answer, nor a failure, nor passing on does anything. */
	put_call(1, LATER, 10, 0);
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK);
	t.seen_count = 0;
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_E_ARGUMENT);
	CHECK(pgr_fail(t.pgr, &t.token, FAIL_CODE) == PGR_E_ARGUMENT);
	CHECK(pgr_delegate(t.peer, &t.token, ECHO, &iov, 1) == PGR_E_ARGUMENT);
	CHECK(silent());
	/* When the result is gone, the token is only stale: consumed in silence. */
	put_bare(PGR_ACK, 1, 1);
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK);
	CHECK(pgr_fail(t.pgr, &t.token, FAIL_CODE) == PGR_OK);
	CHECK(pgr_delegate(t.peer, &t.token, ECHO, &iov, 1) == PGR_OK && silent());
	/* Failed: the same. */
	put_call(2, LATER, 10, 0);
	/* a code that is not a procedure's own consumes nothing */
	CHECK(pgr_fail(t.pgr, &t.token, PGR_E_GIVE_UP) == PGR_E_ARGUMENT);
	CHECK(pgr_fail(t.pgr, &t.token, FAIL_CODE) == PGR_OK && one_reject(PGR_REJECT_FAILED));
	t.seen_count = 0;
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_E_ARGUMENT && silent());
	/* Passed on: the same. */
	put_call(3, LATER, 10, 0);
	CHECK(pgr_delegate(t.peer, &t.token, ECHO, &iov, 1) == PGR_OK && t.seen_count == 1);
	t.seen_count = 0;
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_E_ARGUMENT);
	CHECK(pgr_fail(t.pgr, &t.token, FAIL_CODE) == PGR_E_ARGUMENT);
	CHECK(pgr_delegate(t.peer, &t.token, ECHO, &iov, 1) == PGR_E_ARGUMENT && silent());
	/* A client for whom something is executed is not forgotten; one that moves on is not answered. */
	put_call(4, LATER, 10, 0);
	forged = t.token;
	pass(60 * SECOND);
	CHECK(stats()->clients == 1);
	put_call(5, ECHO, 10, 0);
	CHECK(one(PGR_RESULT) != NULL);
	t.seen_count = 0;
	CHECK(pgr_reply(t.pgr, &forged, &iov, 1, 0, NULL, NULL) == PGR_OK && silent());
	put_bare(PGR_ACK, 5, 1);
	/* Tokens that never were. */
	for (unsigned int i = 0; i < 64; i++) {
		forged.word[0] = i % 8 ? UINT64_C(1) << i : i;
		forged.word[1] = UINT64_C(1) << (i * 7 % 64);
		CHECK(pgr_reply(t.pgr, &forged, &iov, 1, 0, NULL, NULL) == PGR_OK && silent());
	}
}

const struct protocol_test protocol_server_tokens[] = {
	{"server: a token is consumed once", test_tokens},
	{NULL, NULL},
};
