/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server rejects, and how. */
#include "hand.h"

static void test_server_rejects(void)
{
	struct pgr_config config = {.message_bytes_max = 3000};
	struct pgr_header call;

	open_endpoint(&config);
	make_known();
	/* No such procedure: said again for each repetition; no state, no data. */
	for (unsigned int i = 0; i < 2; i++) {
		put_call(1, NONE, 10, PGR_FLAG_ASK);
		CHECK(one_reject(PGR_REJECT_PROCEDURE) && one(PGR_REJECT)->data_bytes == 0);
	}
	/* Longer than the limit: rejected. As long: taken. */
	put_part(1, LATER, 3001, 0, 0);
	CHECK(one_reject(PGR_REJECT_TOO_LARGE));
	call = call_of(1, LATER, PGR_PACKETS_MAX * DATA_BYTES);
	put(&call, pattern);
	CHECK(one_reject(PGR_REJECT_TOO_LARGE));
	put_part(1, LATER, 3000, 0, PGR_FLAG_ASK);
	CHECK(one(PGR_ACK) && stats()->pool_bytes < 5000);
	/* The procedure fails: 4 bytes of its code, kept like a result until acknowledged. */
	for (unsigned int i = 0; i < 2; i++) {
		int32_t code = 0;

		put_call(2, FAIL, 10, PGR_FLAG_ASK);
		if (CHECK(one_reject(PGR_REJECT_FAILED) && one(PGR_REJECT)->data_bytes == 4)) {
			memcpy(&code, t.seen[0].packet.data, sizeof(code));
			CHECK((int32_t)pgr_le32((uint32_t)code) == FAIL_CODE);
		}
	}
	put_bare(PGR_ACK, 2, 1);
	put_call(2, FAIL, 10, PGR_FLAG_ASK);
	CHECK(silent() && t.executed == 1);
}

const struct protocol_test protocol_server_rejects[] = {
	{"server: rejections", test_server_rejects},
	{NULL, NULL},
};
