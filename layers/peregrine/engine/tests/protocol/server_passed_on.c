/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are passed on: the last server, the one before it, and the one between. */
#include "hand.h"

struct wire_token { /* as PROTOCOL.md says */
	uint8_t address[32];
	uint32_t address_bytes, packet_bytes;
	uint64_t client, sequence;
	uint32_t slot, incarnation;
};

static struct wire_token token_of(uint32_t from)
{
	struct wire_token token = {
		.address_bytes = pgr_le32(32),
		.packet_bytes = pgr_le32(DATA_BYTES),
		.client = pgr_le64(77),
		.sequence = pgr_le64(9),
		.slot = pgr_le32(3),
		.incarnation = pgr_le32(INCARNATION),
	};

	memcpy(token.address, &from, sizeof(from));
	return token;
}

/* A call that was passed on to us for the caller at THIRD. */
static void put_delegated(uint64_t sequence, uint32_t procedure, const struct wire_token *token,
			  uint32_t bytes)
{
	struct pgr_header call = call_of(sequence, procedure, (uint32_t)sizeof(*token) + bytes);
	uint8_t data[DATA_BYTES];

	memcpy(data, token, sizeof(*token));
	memcpy(data + sizeof(*token), pattern, bytes);
	call.flags = PGR_FLAG_DELEGATED | PGR_FLAG_ASK;
	put(&call, data);
}

static struct pgr_header third_ack(void)
{
	return (struct pgr_header){
		.type = PGR_ACK,
		.flags = PGR_FLAG_DELEGATED | PGR_FLAG_OF_RESULT,
		.version = PGR_VERSION,
		.slot = 3,
		.client = 77,
		.sequence = 9,
		.incarnation = INCARNATION,
		.packet_number = 1,
		.packet_bytes = DATA_BYTES,
	};
}

/* The result to the caller once more, and a word to who passed the call on. */
static bool said_again(void)
{
	return t.seen_count == 2 && t.seen[0].packet.head.type == PGR_RESULT && is_at(&t.seen[0].to, THIRD) &&
	       t.seen[1].packet.head.type == PGR_ALIVE && is_at(&t.seen[1].to, FAR);
}

/* A stranger has results sent to whom he names: no more than the first credits, and one for each packet of his. */
static void test_delegated_flood(void)
{
	const struct wire_token token = token_of(THIRD);
	size_t bytes_in = 0, bytes_out = 0;

	open_endpoint(NULL);
	make_known();
	make_known_as(CLIENT + 1, OTHER);
	/* Who was not named has nothing sent at all. */
	for (unsigned int i = 0; i < 2; i++) {
		struct pgr_header call = call_of(1, LONG, sizeof(token));

		call.client = CLIENT + 1;
		call.flags = PGR_FLAG_DELEGATED;
		put_from(OTHER, &call, 0, &token);
		CHECK(one_reject(PGR_REJECT_NOT_AUTHORISED) && is_at(&t.seen[0].to, OTHER) &&
		      t.executed == 0);
	}
	/* Who was: one burst, and then a packet for a packet, for as long as nobody speaks from there. */
	put_delegated(1, LONG, &token, 0);
	CHECK(t.seen_count <= PGR_CREDITS_FIRST && t.executed == 1);
	t.seen_count = 0;
	for (unsigned int i = 0; i < 100; i++) {
		struct pgr_header probe = bare_of(PGR_PROBE, 1);

		put(&probe, NULL);
		bytes_in += PGR_HEADER_BYTES;
		for (unsigned int k = 0; k < t.seen_count; k++)
			bytes_out += is_at(&t.seen[k].to, THIRD) ? t.seen[k].bytes : 0;
		pass(50 * MS);
		CHECK(t.seen_count <= 2);
	}
	CHECK(bytes_out <= 100 * PACKET_BYTES && bytes_in == 100 * PGR_HEADER_BYTES);
}

static void test_delegated_last(void)
{
	const struct wire_token token = token_of(THIRD);
	struct pgr_header ack = third_ack();
	const struct pgr_header *head;

	open_endpoint(NULL);
	make_known();
	/* Executed; the result goes straight to the caller under the identity of the token. */
	put_delegated(1, ECHO, &token, 30);
	head = one(PGR_RESULT);
	CHECK(t.executed == 1 && t.args_bytes == 30 && !memcmp(t.args, pattern, 30));
	CHECK(head && is_at(&t.seen[0].to, THIRD) && head->client == 77 && head->sequence == 9 &&
	      head->slot == 3 && head->incarnation == INCARNATION && (head->flags & PGR_FLAG_DELEGATED) &&
	      (head->flags & PGR_FLAG_ASK) && head->data_bytes == 30);
	/* Who passed it on and repeats it hears that we are at it; it is not executed twice. */
	put_delegated(1, ECHO, &token, 30);
	CHECK(t.executed == 1 && said_again());
	/* Not acknowledged: it is said again each time that somebody asks for it, and not by itself. */
	t.seen_count = 0;
	pass(SECOND);
	CHECK(silent());
	{
		struct pgr_header probe = bare_of(PGR_PROBE, 1);

		put(&probe, NULL);
		CHECK(said_again());
	}
	/* An ack of another client, slot, sequence, incarnation or address is none. */
	for (unsigned int i = 0; i < 5; i++) {
		struct pgr_header wrong = ack;

		wrong.client += i == 0;
		wrong.slot = (uint16_t)(wrong.slot + (i == 1));
		wrong.sequence += i == 2;
		wrong.incarnation += i == 3;
		put_from(i == 4 ? OTHER : THIRD, &wrong, 0, NULL);
		CHECK(silent());
	}
	{
		/* nor is a probe or a call's report */
		struct pgr_header wrong = ack;

		wrong.type = PGR_PROBE;
		put_from(THIRD, &wrong, 0, NULL);
		CHECK(silent());
	}
	/* The right one: now the server before us has its empty result. */
	put_from(THIRD, &ack, 0, NULL);
	head = one(PGR_RESULT);
	CHECK(head && is_at(&t.seen[0].to, FAR) && head->client == CLIENT && head->sequence == 1 &&
	      head->slot == 5 && head->incarnation == t.pgr->incarnation && head->data_bytes == 0 &&
	      !(head->flags & PGR_FLAG_DELEGATED));
	/* which is kept until acknowledged, like any. */
	put_delegated(1, ECHO, &token, 30);
	CHECK(one(PGR_RESULT) && is_at(&t.seen[0].to, FAR) && t.executed == 1);
	put_from(THIRD, &ack, 0, NULL);
	CHECK(silent());
	put_bare(PGR_ACK, 1, 1);
	put_delegated(1, ECHO, &token, 30);
	CHECK(silent() && t.executed == 1 && stats()->pool_bytes == sizeof(struct pgr_work));
	/* A long result, by the caller's own reports. */
	put_delegated(2, LONG, &token, 0);
	CHECK(t.seen_count == LONG_PACKETS && t.sent == 0 && is_at(&t.seen[0].to, THIRD));
	ack.packet_number = LONG_PACKETS;
	put_from(THIRD, &ack, 0, NULL);
	CHECK(t.sent == 1 && one(PGR_RESULT) && is_at(&t.seen[0].to, FAR));
	/* The server before us moves on: the caller's ack still ends it. Who has spoken once is told again by itself. */
	put_delegated(3, ECHO, &token, 30);
	put_call(4, ECHO, 1, 0);
	CHECK(t.seen_count == 1);
	{
		struct pgr_header nack = ack;

		nack.type = PGR_NACK;
		nack.packet_number = 0;
		put_from(THIRD, &nack, 0, NULL);
	}
	t.seen_count = 0;
	pass(100 * MS);
	CHECK(t.seen_count >= 2 && t.seen_count <= 6 && t.seen[0].packet.head.type == PGR_RESULT &&
	      is_at(&t.seen[0].to, THIRD));
	ack.packet_number = 1;
	put_from(THIRD, &ack, 0, NULL);
	CHECK(silent() && t.pgr->timed == NULL);
	/* The caller never answers: given up after twice the give-up time. */
	put_delegated(5, ECHO, &token, 30);
	pass(21 * SECOND);
	CHECK(t.pgr->timed == NULL);
	/* A procedure that fails says so to the server before us. */
	put_delegated(6, FAIL, &token, 30);
	CHECK(one_reject(PGR_REJECT_FAILED) && is_at(&t.seen[0].to, FAR));
}

static void test_delegated_malformed(void)
{
	struct wire_token token = token_of(THIRD);
	struct pgr_header call;

	open_endpoint(NULL);
	make_known();
	/* A slot or an address that cannot be: failed, not executed. */
	token.slot = pgr_le32(PGR_SLOTS);
	put_delegated(1, ECHO, &token, 30);
	CHECK(one_reject(PGR_REJECT_FAILED) && t.executed == 0);
	token = token_of(THIRD);
	token.address_bytes = pgr_le32(33);
	put_delegated(2, ECHO, &token, 30);
	CHECK(one_reject(PGR_REJECT_FAILED) && t.executed == 0);
	/* Shorter than a token. */
	for (uint32_t bytes = 0; bytes < PGR_TOKEN_BYTES; bytes++) {
		call = call_of(3 + bytes, ECHO, bytes);
		call.flags = PGR_FLAG_DELEGATED;
		put(&call, pattern);
		CHECK(one_reject(PGR_REJECT_FAILED) && t.executed == 0);
	}
	/* In several packets, which disagree about the flag: the first one counts. */
	{
		const uint32_t bytes = 2 * DATA_BYTES;

		token = token_of(THIRD);
		memcpy(pattern, &token, sizeof(token));
		put_part(100, LATER, bytes, 0, PGR_FLAG_DELEGATED);
		put_part(100, LATER, bytes, 1, 0);
		CHECK(t.executed == 1 && t.args_bytes == bytes - PGR_TOKEN_BYTES);
		put_part(101, LATER, bytes, 0, 0);
		put_part(101, LATER, bytes, 1, PGR_FLAG_DELEGATED);
		CHECK(t.executed == 2 && t.args_bytes == bytes);
	}
}

/* The caller who asks hears that we are at it, and the next server is asked. */
static bool asked_onward(void)
{
	return t.seen_count == 2 && t.seen[0].packet.head.type == PGR_PROBE && is_at(&t.seen[0].to, FAR) &&
	       t.seen[1].packet.head.type == PGR_ALIVE && is_at(&t.seen[1].to, THIRD);
}

static void test_delegated_on(void)
{
	struct pgr_header call, result;
	struct wire_token token;

	open_endpoint(NULL);
	make_known_as(CLIENT, THIRD);
	call = call_of(1, PASS, 30);
	put_from(THIRD, &call, 0, pattern);
	/* It goes on as a call of our own, with who is to have the result, and does not answer itself. */
	if (!CHECK(one(PGR_CALL) && is_at(&t.seen[0].to, FAR) &&
		   (one(PGR_CALL)->flags & PGR_FLAG_DELEGATED) && one(PGR_CALL)->data_bytes == 64 + 30))
		return;
	memcpy(&token, t.seen[0].packet.data, sizeof(token));
	CHECK(is_at((const struct pgr_to *)(const void *)token.address, THIRD) &&
	      pgr_le32(token.address_bytes) == 32 && pgr_le32(token.packet_bytes) == DATA_BYTES &&
	      pgr_le64(token.client) == CLIENT && pgr_le64(token.sequence) == 1 &&
	      pgr_le32(token.slot) == 5 && pgr_le32(token.incarnation) == t.pgr->incarnation);
	result = t.seen[0].packet.head;
	/* The caller who asks hears that we are at it. */
	call.flags = PGR_FLAG_ASK;
	put_from(THIRD, &call, 0, pattern);
	CHECK(t.executed == 1 && asked_onward());
	/* The next server is done: the call is over here; repetitions of it are dropped. */
	result.type = PGR_RESULT;
	result.flags = PGR_OWN_ORDER;
	result.incarnation = 0;
	part(&result, 0, 0);
	put(&result, NULL);
	put_from(THIRD, &call, 0, pattern);
	CHECK(silent() && t.executed == 1);
	/* A failure of the next one's procedure is passed back. */
	call.sequence = 2;
	call.flags = 0;
	put_from(THIRD, &call, 0, pattern);
	if (CHECK(one(PGR_CALL) != NULL)) {
		const int32_t code = (int32_t)pgr_le32((uint32_t)FAIL_CODE);

		result = t.seen[0].packet.head;
		result.type = PGR_REJECT;
		result.flags = PGR_OWN_ORDER;
		result.procedure = PGR_REJECT_FAILED;
		result.message_bytes = result.packet_bytes = 0;
		result.data_bytes = 4;
		put(&result, &code);
		CHECK(one_reject(PGR_REJECT_FAILED) && is_at(&t.seen[0].to, THIRD) &&
		      !memcmp(t.seen[0].packet.data, &code, sizeof(code)));
	}
	/* So is that it has no such procedure, without data. */
	call.sequence = 3;
	put_from(THIRD, &call, 0, pattern);
	if (CHECK(one(PGR_CALL) != NULL)) {
		result = t.seen[0].packet.head;
		result.type = PGR_REJECT;
		result.flags = PGR_OWN_ORDER;
		result.procedure = PGR_REJECT_PROCEDURE;
		result.message_bytes = result.packet_bytes = result.data_bytes = 0;
		put(&result, NULL);
		CHECK(one_reject(PGR_REJECT_PROCEDURE) && is_at(&t.seen[0].to, THIRD) &&
		      one(PGR_REJECT)->data_bytes == 0);
	}
	/*
	 * The next server is dead: alive, until our own give-up time; then silence, and the caller gives
	 * up.
	 */
	call.sequence = 4;
	put_from(THIRD, &call, 0, pattern);
	call.flags = PGR_FLAG_ASK;
	pass(9 * SECOND);
	put_from(THIRD, &call, 0, pattern);
	CHECK(asked_onward());
	t.seen_count = 0;
	pass(2 * SECOND);
	CHECK(t.seen_count && t.seen[t.seen_count - 1].packet.head.type == PGR_REJECT &&
	      is_at(&t.seen[t.seen_count - 1].to, THIRD));
	put_from(THIRD, &call, 0, pattern);
	CHECK(one_reject(PGR_REJECT_LOST) && one(PGR_REJECT)->data_bytes == 0 && t.executed == 4);
	CHECK(stats()->pool_bytes == t.pgr->works_count * sizeof(struct pgr_work));
}

/* Between two servers: the call comes delegated and goes on. */
static void test_delegated_through(void)
{
	const struct wire_token token = token_of(THIRD);
	struct wire_token onward;
	struct pgr_header result;

	open_endpoint(NULL);
	make_known_as(CLIENT, FAR);
	/* The token that goes on is the caller's, not that of the server before us. */
	put_delegated(1, PASS, &token, 30);
	if (!CHECK(one(PGR_CALL) && one(PGR_CALL)->data_bytes == 64 + 30))
		return;
	memcpy(&onward, t.seen[0].packet.data, sizeof(onward));
	CHECK(!memcmp(&onward, &token, sizeof(token)));
	result = t.seen[0].packet.head;
	put_delegated(1, PASS, &token, 30);
	CHECK(t.seen_count == 2 && t.seen[0].packet.head.type == PGR_PROBE &&
	      t.seen[1].packet.head.type == PGR_ALIVE && is_at(&t.seen[1].to, FAR) &&
	      t.seen[1].packet.head.client == CLIENT);
	/* Done: the server before us gets its empty result. */
	result.type = PGR_RESULT;
	result.flags = PGR_OWN_ORDER;
	part(&result, 0, 0);
	put(&result, NULL);
	CHECK(one(PGR_RESULT) && one(PGR_RESULT)->client == CLIENT && one(PGR_RESULT)->data_bytes == 0 &&
	      is_at(&t.seen[0].to, FAR));
}

const struct protocol_test protocol_server_passed_on[] = {
	{"server: what a delegated call can have sent", test_delegated_flood},
	{"server: the last of a delegated call", test_delegated_last},
	{"server: malformed delegated calls", test_delegated_malformed},
	{"server: passes a call on", test_delegated_on},
	{"server: between two others", test_delegated_through},
	{NULL, NULL},
};
