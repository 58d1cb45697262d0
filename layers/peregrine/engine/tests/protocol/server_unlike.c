/* SPDX-License-Identifier: BSD-3-Clause */
/* A server and a client of the other byte order. */
#include "hand.h"
#include "unlike.h"

static void test_server_byte_order(void)
{
	struct pgr_header call;

	open_endpoint(NULL);
	make_known();
	call = call_of(1, TYPED, sizeof(plain));
	/*
	 * Of the other byte order: swapped by the signature, to the last whole element. Answered in its
	 * own.
	 */
	call.flags = PGR_FLAG_BIG_ENDIAN ^ PGR_OWN_ORDER;
	put(&call, unlike);
	CHECK(t.args_bytes == sizeof(plain) && !memcmp(t.args, own, sizeof(plain)));
	CHECK(one(PGR_RESULT) && (one(PGR_RESULT)->flags & PGR_FLAG_BIG_ENDIAN) == PGR_OWN_ORDER &&
	      !memcmp(t.seen[0].packet.data, own, sizeof(plain)));
	/* As words. */
	call = call_of(2, TYPED, sizeof(words));
	call.flags = PGR_FLAG_WORDS;
	put(&call, words);
	CHECK(t.args_bytes == sizeof(plain) && !memcmp(t.args, own, sizeof(plain)));
	/* Words that do not fit the signature: failed, not executed. */
	t.executed = 0;
	{
		uint8_t bad[sizeof(words)];

		memcpy(bad, words, sizeof(words));
		bad[0] = 1; /* a half word beyond 65535 */
		call.sequence = 3;
		put(&call, bad);
		CHECK(one_reject(PGR_REJECT_FAILED) && t.executed == 0);
	}
	/* Without a signature, data are bytes. */
	call = call_of(4, ECHO, sizeof(plain));
	call.flags = PGR_FLAG_BIG_ENDIAN ^ PGR_OWN_ORDER;
	put(&call, unlike);
	CHECK(t.args_bytes == sizeof(plain) && !memcmp(t.args, unlike, sizeof(plain)));
}

const struct protocol_test protocol_server_unlike[] = {
	{"server: unlike byte order", test_server_byte_order},
	{NULL, NULL},
};
