/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server may say instead of a result: rejected, busy, restarted. */
#include "caller.h"

static void test_client_rejects(void)
{
	static const struct {
		enum pgr_reject reason;
		int code;
	} reasons[] = {
		{PGR_REJECT_PROCEDURE, PGR_E_PROCEDURE}, {PGR_REJECT_VERSION, PGR_E_REFUSED},
		{PGR_REJECT_TOO_LARGE, PGR_E_TOO_LARGE}, {PGR_REJECT_NOT_AUTHORISED, PGR_E_REFUSED},
		{PGR_REJECT_FAILED, FAIL_CODE},
	};
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	for (unsigned int i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		const int32_t code = (int32_t)pgr_le32((uint32_t)FAIL_CODE);

		call(10, 0);
		head = answer_of(PGR_REJECT);
		head.procedure = reasons[i].reason;
		head.data_bytes = reasons[i].reason == PGR_REJECT_FAILED ? 4 : 0;
		put(&head, &code);
		CHECK(t.done == 1 && t.code == reasons[i].code && silent());
	}
	/* A code in a rejection that has none, none in one that has, or one that is not a procedure's own:
	 * dropped. */
	call(10, 0);
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_PROCEDURE;
	head.data_bytes = 4;
	put(&head, pattern);
	head.procedure = PGR_REJECT_FAILED;
	head.data_bytes = 0;
	put(&head, pattern);
	head.data_bytes = 5;
	put(&head, pattern);
	{
		const int32_t code = (int32_t)pgr_le32((uint32_t)PGR_E_GIVE_UP);

		head.data_bytes = 4;
		put(&head, &code);
	}
	CHECK(silent() && t.done == 0);
}

static void test_client_busy(void)
{
	struct pgr_header head;
	unsigned int tries = 0, waited_ms = 0;

	open_endpoint(NULL);
	learn_server();
	call(10, 0);
	/* Busy: tried again later, not at once. */
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_BUSY;
	put(&head, NULL);
	CHECK(silent() && t.done == 0);
	pass(21 * MS);
	CHECK(t.seen_count && t.seen[0].packet.head.type == PGR_CALL &&
	      t.seen[0].packet.head.retransmissions >= 1);
	/* And then there is room. */
	head = result_of(10);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK);
	/* Busy, until the cookie is too old: the challenge that follows is obeyed, for nothing of the call is
	 * there. */
	{
		struct pgr_header first;

		t.peer->introduced = 0;
		call(10, 0);
		head = answer_of(PGR_REJECT);
		head.procedure = PGR_REJECT_BUSY;
		put(&head, NULL);
		pass(21 * MS);
		first = challenge_of(INCARNATION, COOKIE + 9);
		put(&first, NULL);
		CHECK(one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE + 9);
		head = result_of(10);
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK);
	}
	/* Busy for ever: after the give-up time the call ends, and it is known why. */
	for (call(10, 0); !t.done && waited_ms < 12000; waited_ms++) {
		if (t.seen_count) {
			tries++;
			head = answer_of(PGR_REJECT);
			head.procedure = PGR_REJECT_BUSY;
			put(&head, NULL);
		}
		pass(MS);
	}
	CHECK(t.code == PGR_E_SERVER_BUSY && tries >= 40 && waited_ms >= 9990 && waited_ms <= 10010);
	/* Busy once, then executing, then dead: that the server was busy is not why. */
	call(10, 0);
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_BUSY;
	put(&head, NULL);
	pass(30 * MS);
	head = answer_of(PGR_ALIVE);
	put(&head, NULL);
	pass(11 * SECOND);
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP);
	/* Busy once, then silence: nobody knows whether the repetition was executed. */
	call(10, 0);
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_BUSY;
	put(&head, NULL);
	pass(11 * SECOND);
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP);
}

static void test_client_restarted(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	/* The server that comes back is another one: what went out to the old one ends, nobody knows how. */
	call(10, 0);
	head = challenge_of(INCARNATION, COOKIE + 2);
	head.incarnation = INCARNATION + 1;
	put(&head, NULL);
	CHECK(t.done == 1 && t.code == PGR_E_RESTARTED);
	/* The next call claims the new one. */
	call(10, 0);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->incarnation == INCARNATION + 1 &&
	      t.seen[0].packet.cookie == COOKIE + 2);
	/* With its cookie; that it is told to use this one is late, another one is obeyed. */
	head = challenge_of(INCARNATION + 1, COOKIE + 2);
	head.incarnation = INCARNATION + 1;
	put(&head, NULL);
	CHECK(t.done == 0 && silent());
	head = challenge_of(INCARNATION + 1, COOKIE + 3);
	head.incarnation = INCARNATION + 1;
	put(&head, NULL);
	CHECK(t.done == 0 && one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE + 3);
	/* A challenge of the time before, that claims something else: dropped. */
	head = challenge_of(INCARNATION, COOKIE + 2);
	head.incarnation = INCARNATION + 1;
	put(&head, NULL);
	CHECK(silent() && t.done == 0);
	close_endpoint();
	/* A call that claimed nothing goes on, whoever answers, and however often it restarts before it
	 * obeys. */
	open_endpoint(NULL);
	call(10, 0);
	pass(11 * MS);
	CHECK(t.seen_count == 2 && t.seen[1].packet.head.incarnation == 0);
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->incarnation == INCARNATION && t.done == 0);
	/* From here on it has gone out under an incarnation. */
	head = challenge_of(0, COOKIE);
	head.incarnation = INCARNATION + 1;
	put(&head, NULL);
	CHECK(silent() && t.done == 0);
	head = challenge_of(INCARNATION, COOKIE);
	head.incarnation = INCARNATION + 1;
	put(&head, NULL);
	CHECK(t.done == 1 && t.code == PGR_E_RESTARTED);
}

const struct protocol_test protocol_client_rejects[] = {
	{"client: rejections", test_client_rejects},
	{"client: a busy server", test_client_busy},
	{"client: a restarted server", test_client_restarted},
	{NULL, NULL},
};
