/* SPDX-License-Identifier: BSD-3-Clause */
/* A binding that ends, and one that ends from within. */
#include "caller.h"

static void test_client_unbind(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	call(10, 0);
	head = result_of(10);
	put(&head, pattern);
	call(10, 0);
	CHECK(pgr_slot_make(t.peer, 1));
	t.peer->unacked |= 2; /* as if another slot had a result that is not acknowledged */
	call(LONG_BYTES, 0);
	/* What is outstanding ends; what is not acknowledged is. */
	t.seen_count = 0;
	t.done = 0;
	pgr_unbind(t.peer);
	pgr_poll(t.pgr);
	CHECK(t.done == 2 && t.code == PGR_E_CLOSED);
	put(&head, pattern);
	CHECK(silent() && t.done == 2 && !t.pgr->peers);
}

static void on_done_unbind(void *arg, int code, const void *result, size_t result_bytes)
{
	on_done(arg, code, result, result_bytes);
	if (t.peer)
		pgr_unbind(t.peer);
	t.peer = NULL;
}

/* A continuation may end its own binding, while other calls of it are outstanding. */
static void test_client_unbind_within(void)
{
	const struct pgr_iov iov = {pattern, LONG_BYTES};
	const struct pgr_to far = address(FAR);
	struct pgr_header head;

	for (unsigned int i = 0; i < 3; i++) {
		open_endpoint(NULL);
		learn_server();
		t.done = 0;
		for (unsigned int j = 0; j < 4; j++)
			CHECK(pgr_call(t.peer, ECHO, NULL, &iov, 1, NULL, 0, 0, on_done_unbind, NULL) ==
			      PGR_QUEUED);
		if (i == 0) { /* by a result */
			head = result_of(8);
			put(&head, pattern);
		} else if (i == 1) { /* by a rejection */
			head = answer_of(PGR_REJECT);
			head.procedure = PGR_REJECT_NOT_AUTHORISED;
			put(&head, NULL);
		} else { /* by time */
			pass(11 * SECOND);
		}
		pgr_poll(t.pgr);
		pgr_poll(t.pgr);
		/* those that had to wait for credits left later, so that their time is not up when the first one's is */
		CHECK(t.done == 4 && t.code == PGR_E_CLOSED && !t.pgr->peers && !t.pgr->peers_count);
		/* The same server again is another binding. */
		CHECK(pgr_bind(t.pgr, far.bytes, sizeof(far.bytes), &t.peer) == PGR_OK);
		learn_server();
		CHECK(slot_of(t.peer, 0)->sequence == 1);
		close_endpoint();
	}
}

const struct protocol_test protocol_client_unbind[] = {
	{"client: a binding that ends", test_client_unbind},
	{"client: a binding that ends within", test_client_unbind_within},
	{NULL, NULL},
};
