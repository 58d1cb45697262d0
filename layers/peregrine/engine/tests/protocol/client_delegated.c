/* SPDX-License-Identifier: BSD-3-Clause */
/* Results that come from another server than the one that was called. */
#include "caller.h"

static void test_client_delegated(void)
{
	struct pgr_header head, wrong;

	open_endpoint(NULL);
	learn_server();
	call(10, 0);
	head = result_of(20);
	/* From a third address without the flag: dropped. */
	put_from(THIRD, &head, 0, pattern);
	CHECK(silent() && t.done == 0);
	head.flags |= PGR_FLAG_DELEGATED | PGR_FLAG_ASK;
	/* With it, but under another identity: dropped. */
	for (unsigned int i = 0; i < 4; i++) {
		wrong = head;
		wrong.client ^= i == 0;
		wrong.slot = (uint16_t)(wrong.slot + (i == 1));
		wrong.sequence += i == 2;
		wrong.incarnation += i == 3;
		put_from(THIRD, &wrong, 0, pattern);
		CHECK(silent() && t.done == 0);
	}
	/* Nothing else is taken from a stranger. */
	for (unsigned int type = PGR_ACK; type < PGR_TYPES_END; type++) {
		wrong = answer_of((enum pgr_type)type);
		wrong.flags = PGR_FLAG_DELEGATED;
		wrong.procedure = type == PGR_CHALLENGE ? INCARNATION : PGR_REJECT_NOT_AUTHORISED;
		wrong.credits = 1;
		if (type == PGR_CHALLENGE)
			wrong.incarnation++;
		put_from(THIRD, &wrong, 0, NULL);
		CHECK(t.done == 0 && t.peer->credits == CREDITS && type != PGR_PROBE ? silent() : true);
	}
	/* The right identity: taken, and acknowledged there, explicitly and at once; again for each
	 * repetition. */
	put_from(THIRD, &head, 0, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 20);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK(one(PGR_ACK) && is_at(&t.seen[0].to, THIRD) &&
		      one(PGR_ACK)->sequence == head.sequence && one(PGR_ACK)->client == head.client &&
		      one(PGR_ACK)->incarnation == INCARNATION && one(PGR_ACK)->packet_number == 1 &&
		      (one(PGR_ACK)->flags & PGR_FLAG_DELEGATED) &&
		      (one(PGR_ACK)->flags & PGR_FLAG_OF_RESULT));
		put_from(THIRD, &head, 0, pattern);
		CHECK(t.done == 1);
	}
	/* Even when the slot is at its next call; and that call is not touched by it. */
	call(10, 0);
	put_from(THIRD, &head, 0, pattern);
	CHECK(one(PGR_ACK) && is_at(&t.seen[0].to, THIRD) && one(PGR_ACK)->sequence == head.sequence &&
	      t.done == 0);
	/* There is no other ack of it. */
	t.seen_count = 0;
	pass(30 * MS);
	for (unsigned int i = 0; i < t.seen_count; i++)
		CHECK(t.seen[i].packet.head.type == PGR_CALL);
	/* A long one: its reports go to the third address. */
	head.sequence++;
	head.message_bytes = 3 * DATA_BYTES;
	for (uint32_t i = 3; i-- > 0;) {
		struct pgr_header one_part = head;

		part(&one_part, head.message_bytes, i);
		put_from(THIRD, &one_part, 0, pattern + i * DATA_BYTES);
		CHECK(t.seen_count == 1 && is_at(&t.seen[0].to, THIRD) &&
		      (t.seen[0].packet.head.flags & PGR_FLAG_DELEGATED) &&
		      t.seen[0].packet.head.type == (i ? PGR_NACK : PGR_ACK));
	}
	CHECK(t.done == 1 && t.result_bytes == 3 * DATA_BYTES && !memcmp(t.result, pattern, t.result_bytes) &&
	      one(PGR_ACK)->packet_number == 3);
}

const struct protocol_test protocol_client_delegated[] = {
	{"client: delegated results", test_client_delegated},
	{NULL, NULL},
};
