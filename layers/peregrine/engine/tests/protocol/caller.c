/* SPDX-License-Identifier: BSD-3-Clause */
/* See caller.h. */
#include "caller.h"

void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg;
	t.done++;
	t.code = code;
	t.result_bytes = result_bytes;
	if (result && CHECK(result_bytes <= sizeof(t.result)))
		memcpy(t.result, result, result_bytes);
}

void call_typed(uint32_t bytes, size_t out_bytes, const struct pgr_signature *with)
{
	const struct pgr_iov in[2] = {{pattern, bytes / 3}, {pattern + bytes / 3, bytes - bytes / 3}};
	const struct pgr_iov out[2] = {{t.out, out_bytes / 2},
				       {t.out + out_bytes / 2, out_bytes - out_bytes / 2}};

	t.seen_count = 0;
	t.done = 0;
	t.code = 1;
	memset(t.result, 0, sizeof(t.result));
	memset(t.out, 0, sizeof(t.out));
	CHECK(pgr_call(t.peer, ECHO, with, in, 2, out, out_bytes ? 2 : 0, 0, on_done, NULL) == PGR_QUEUED);
}

void call(uint32_t bytes, size_t out_bytes)
{
	call_typed(bytes, out_bytes, NULL);
}

struct pgr_header answer_of(enum pgr_type type)
{
	const struct pgr_header *last = &t.seen[t.seen_count ? t.seen_count - 1 : 0].packet.head;

	return (struct pgr_header){
		.type = (uint8_t)type,
		.flags = type == PGR_RESULT ? PGR_OWN_ORDER : 0,
		.version = PGR_VERSION,
		.retransmissions = last->retransmissions,
		.slot = last->slot,
		.credits = type == PGR_CHALLENGE ? 0 : CREDITS,
		.client = last->client,
		.sequence = last->sequence,
		.incarnation = INCARNATION,
		.procedure = last->procedure,
		.packet_bytes = type == PGR_ACK || type == PGR_NACK ? last->packet_bytes : 0,
	};
}

struct pgr_header result_of(uint32_t bytes)
{
	struct pgr_header head = answer_of(PGR_RESULT);

	part(&head, bytes, 0);
	return head;
}

struct pgr_header challenge_of(uint32_t claimed, uint64_t cookie)
{
	struct pgr_header head = answer_of(PGR_CHALLENGE);

	head.procedure = claimed;
	head.message_bytes = (uint32_t)cookie;
	head.packet_number = (uint32_t)(cookie >> 32);
	head.packet_bytes = MEMORY_MS;
	return head;
}

void learn_server(void)
{
	struct pgr_header head;

	call(8, 0);
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	head = result_of(8);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK);
	pass(25 * MS);
	t.seen_count = 0;
	t.done = 0;
}
