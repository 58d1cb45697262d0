/* SPDX-License-Identifier: BSD-3-Clause */
/* A client and a server of the other byte order. */
#include "caller.h"
#include "unlike.h"

static void test_client_byte_order(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	learn_server();
	for (unsigned int lent = 0; lent < 2; lent++) {
		/* A result of the other byte order is swapped by the signature, into the caller's buffers or
		 * not. */
		call_typed(10, lent ? 0 : 100, &signature);
		CHECK(one(PGR_CALL) && (one(PGR_CALL)->flags & PGR_FLAG_BIG_ENDIAN) == PGR_OWN_ORDER);
		head = result_of(sizeof(plain));
		head.flags = PGR_FLAG_BIG_ENDIAN ^ PGR_OWN_ORDER;
		put(&head, unlike);
		CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == sizeof(plain) &&
		      !memcmp(lent ? t.result : t.out, own, sizeof(plain)));
		/* As words. */
		call_typed(10, lent ? 0 : 100, &signature);
		head = result_of(sizeof(words));
		head.flags = PGR_FLAG_WORDS;
		put(&head, words);
		CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == sizeof(plain) &&
		      !memcmp(lent ? t.result : t.out, own, sizeof(plain)));
	}
	/* Words that do not fit: an error, not a result. */
	call_typed(10, 0, &signature);
	head = result_of(sizeof(words));
	head.flags = PGR_FLAG_WORDS;
	put(&head, pattern + 1);
	CHECK(t.done == 1 && t.code < 0);
	close_endpoint();
	/* A client that converts sends words. */
	open_endpoint(&(struct pgr_config){.off = PGR_OFF_NO_CONVERSION});
	{
		const struct pgr_iov iov = {(void *)(uintptr_t)own, sizeof(plain)};

		t.seen_count = 0;
		CHECK(pgr_call(t.peer, TYPED, &signature, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
		CHECK(one(PGR_CALL) && (one(PGR_CALL)->flags & PGR_FLAG_WORDS) &&
		      one(PGR_CALL)->data_bytes == sizeof(words) &&
		      !memcmp(t.seen[0].packet.data, words, sizeof(words)));
	}
}

const struct protocol_test protocol_client_unlike[] = {
	{"client: unlike byte order", test_client_byte_order},
	{NULL, NULL},
};
