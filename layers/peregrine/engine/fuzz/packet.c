/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary packets for an endpoint in the middle of its work: it knows a client whose calls it has half
 * received, is executing, has answered; it has calls of its own under way, whole and in parts, one result
 * half received, one call passed on. Its network and its time are those of the tests.
 *
 * The input is a row of packets: a selector, how much time passes before, how many bytes follow, the bytes.
 * The selector says whose identity (client, slot's sequence number, incarnation) is written over them and
 * whether the lengths are made to fit, for no input finds 64 random bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "../tests/support/net.h"
#include "must.h"

enum {
	ECHO = 1,
	LATER = 2,
	LONG = 3,
	FAIL = 4,
	PASS = 5,
	TYPED = 6,

	OWN = 7, /* the addresses */
	FAR = 40,
	OTHER = 41,

	PACKET_BYTES = 256,
	DATA_BYTES = PACKET_BYTES - PGR_HEADER_BYTES - PGR_EXTENSIONS_BYTES,
	LONG_BYTES = 9 * DATA_BYTES - 20,
	PACKETS_MAX = 400,
	TOKENS = 8,
	INCARNATION = 0x1234567,
	POOL_BYTES = 100000,
	CALLS_MAX = 512,

	/* the selector */
	/*
	 * 1 a known client, 2 a binding of ours, 3 the caller of a delegated call, 4 a stranger with his
	 * cookie
	 */
	WHO = 7,
	LENGTHS = 8,  /* data bytes are those that are there */
	MESSAGE = 16, /* and the message is right */
	SEQUENCE = 32,
	FROM = 64,
	LITTLE = 128, /* the header is all 0 but what is patched: short inputs go far */
};
#define CLIENT UINT64_C(0x1122334455667788)
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static struct {
	struct pgr *pgr;
	struct pgr_peer *peer;
	struct pgr_token tokens[TOKENS];
	unsigned int tokens_count, tokens_next;
	unsigned int begun, ended;
	uint8_t pending[CALLS_MAX];
	uint64_t cookie, known; /* of the last challenge, and of the last one to the known client */
} f;
static uint8_t pattern[LONG_BYTES], out[LONG_BYTES];
static const uint8_t *key;

/* Chance is the same in each run, so that what was found is found again. */
ssize_t getrandom(void *at, size_t bytes, unsigned int flags);
ssize_t getrandom(void *at, size_t bytes, unsigned int flags)
{
	(void)flags;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)at)[i] = (uint8_t)(net_random(255) + 1);
	return (ssize_t)bytes;
}

static bool on_packet(void *arg, uint8_t *packet, size_t bytes)
{
	struct pgr_packet packet_seen;

	(void)arg;
	MUST(bytes <= PACKET_BYTES);
	if (!pgr_packet_read(packet, bytes, key, &packet_seen)) { /* to who has another version or key */
		MUST(pgr_packet_fault(packet, bytes, key, &packet_seen.head) != PGR_FAULT_JUNK &&
		     packet_seen.head.type == PGR_REJECT);
		return false;
	}
	if (packet_seen.head.type == PGR_CHALLENGE)
		f.cookie = (uint64_t)packet_seen.head.packet_number << 32 | packet_seen.head.message_bytes;
	if (packet_seen.head.type == PGR_CHALLENGE && packet_seen.head.client == CLIENT)
		f.known = f.cookie;
	return false;
}

static struct pgr_wire_ops ops; /* pgr_wire_net, but for what it promises */
static bool reliable;

static int open_net(const struct pgr_config *config, pgr_input *input, void *engine,
		    struct pgr_wire **wire_out)
{
	const int code = pgr_wire_net.open(config, input, engine, wire_out);

	if (code == PGR_OK)
		(*wire_out)->reliable = reliable;
	return code;
}

static void on_sent(void *arg, int code)
{
	(void)arg, (void)code;
}

static void on_echo(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {(void *)(uintptr_t)request->args,
				    request->args_bytes < DATA_BYTES ? request->args_bytes : DATA_BYTES};

	(void)arg;
	if (pgr_reply(request->pgr, &request->token, &iov, 1, 0, on_sent, NULL) == PGR_BUSY)
		pgr_fail(request->pgr, &request->token, -72);
}

static void on_later(void *arg, const struct pgr_request *request)
{
	uint8_t sum = 0;

	(void)arg;
	for (size_t i = 0; i < request->args_bytes; i++) /* all of it is there */
		sum = (uint8_t)(sum + ((const uint8_t *)request->args)[i]);
	f.tokens[f.tokens_count++ % TOKENS] = request->token;
	f.tokens[f.tokens_count % TOKENS].word[3] = sum;
}

static void on_long(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {pattern, LONG_BYTES};

	(void)arg;
	if (pgr_reply(request->pgr, &request->token, &iov, 1, 0, on_sent, NULL) == PGR_BUSY)
		pgr_fail(request->pgr, &request->token, -72);
}

static void on_fail(void *arg, const struct pgr_request *request)
{
	(void)arg;
	pgr_fail(request->pgr, &request->token, -70);
}

static void on_pass(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {(void *)(uintptr_t)request->args, request->args_bytes};

	(void)arg;
	if (pgr_delegate(f.peer, &request->token, ECHO, &iov, 1) != PGR_OK)
		pgr_fail(request->pgr, &request->token, -71);
}

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	const size_t number = (size_t)(uintptr_t)arg;
	uint8_t sum = 0;

	MUST(number < f.begun && f.pending[number] == 1); /* one event a call */
	f.pending[number] = 2;
	f.ended++;
	if (code == PGR_OK && result)
		for (size_t i = 0; i < result_bytes; i++)
			sum = (uint8_t)(sum + ((const uint8_t *)result)[i]);
	out[0] = sum;
}

static void call(uint32_t bytes, size_t out_bytes, const struct pgr_signature *signature)
{
	const struct pgr_iov in = {pattern, bytes}, to = {out, out_bytes};

	if (f.begun == CALLS_MAX)
		return;
	f.pending[f.begun] = 1;
	f.begun++;
	if (pgr_call(f.peer, ECHO, signature, &in, 1, &to, out_bytes ? 1 : 0, 0, on_done,
		     (void *)(uintptr_t)(f.begun - 1)) != PGR_QUEUED)
		f.begun--;
}

static struct pgr_to address(uint32_t number)
{
	struct pgr_to to = {{0}};

	memcpy(to.bytes, &number, sizeof(number));
	return to;
}

static void put(uint32_t from, const struct pgr_header *head, uint64_t cookie, const void *data)
{
	const struct pgr_to at = address(from);
	uint8_t packet[PACKET_BYTES];
	const size_t bytes = pgr_packet_write(head, cookie, key, data, packet);

	if (head->data_bytes)
		memcpy(packet + bytes, data, head->data_bytes);
	net_inject(f.pgr, &at, packet, bytes + head->data_bytes);
	pgr_poll(f.pgr);
}

static void part(struct pgr_header *head, uint32_t bytes, uint32_t number)
{
	const uint32_t at = number * DATA_BYTES;

	head->message_bytes = bytes;
	head->packet_bytes = DATA_BYTES;
	head->packet_number = number;
	head->data_bytes = bytes - at < DATA_BYTES ? bytes - at : DATA_BYTES;
}

/* What the known client has under way, a slot each. */
static void known_client(void)
{
	struct pgr_header head = {
		.type = PGR_PROBE, .version = PGR_VERSION, .client = CLIENT, .sequence = 1, .credits = 4};
	static const struct {
		uint32_t procedure, bytes;
	} calls[] = {{ECHO, 20}, {LATER, 20}, {LONG, 0}, {LATER, LONG_BYTES},
		     {FAIL, 1},  {TYPED, 30}, {PASS, 30}};

	put(FAR, &head, 0, NULL);
	head.incarnation = f.pgr->incarnation;
	head.type = PGR_CALL;
	for (uint16_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		head.slot = i;
		head.procedure = calls[i].procedure;
		head.flags = 0;
		part(&head, calls[i].bytes, 0);
		put(FAR, &head, f.known, pattern);
	}
	/* one that was delegated to us, by hand; its token is that of FAR's slot 9 */
	{
		uint8_t data[PGR_TOKEN_BYTES + 10] = {FAR, [32] = 32, [40] = 77, [48] = 9, [56] = 9};
		const uint32_t incarnation = pgr_le32(INCARNATION);

		memcpy(data + 60, &incarnation, sizeof(incarnation));
		head.slot = 7;
		head.procedure = LONG;
		head.flags = PGR_FLAG_DELEGATED;
		part(&head, sizeof(data), 0);
		put(FAR, &head, f.known, data);
	}
}

/* What the endpoint has under way itself. */
/* One that the binding has not, or not yet, is as a new one would be. */
static const struct pgr_slot *slot_of(unsigned int number)
{
	static struct pgr_slot fresh;

	fresh.sequence = f.peer->sequence;
	return f.peer->slots[number] ? f.peer->slots[number] : &fresh;
}

static void own_calls(void)
{
	static const struct pgr_signature signature = {"hw2bd", "hw2bd"};
	struct pgr_header head = {
		.version = PGR_VERSION, .client = f.peer->client, .sequence = 1, .credits = 16};

	call(10, 0, NULL);
	head.type = PGR_CHALLENGE;
	head.slot = (uint16_t)__builtin_ctzll(~f.peer->free);
	head.sequence = slot_of(head.slot)->sequence;
	head.incarnation = INCARNATION;
	head.message_bytes = 1;
	put(FAR, &head, 0, NULL);
	head.type = PGR_RESULT;
	head.message_bytes = 0;
	put(FAR, &head, 0, NULL);
	call(10, 100, &signature);
	call(LONG_BYTES, 100, NULL);
	call(10, LONG_BYTES, NULL); /* its result is half here */
	for (head.slot = 0; slot_of(head.slot)->arg != (void *)3; head.slot++)
		;
	head.sequence = slot_of(head.slot)->sequence;
	part(&head, LONG_BYTES, 2);
	put(FAR, &head, 0, pattern);
	call(LONG_BYTES, 0, NULL);
}

static void check_state(void)
{
	const struct pgr *pgr = f.pgr;
	uint64_t charged = 0;
	uint32_t under_way = 0, clients = 0;
	struct pgr_client *const recent = pgr->recent;

	for (uint32_t i = 0; i < pgr->works_count; i++) {
		const struct pgr_work *work = pgr->works[i];

		charged += sizeof(*work);
		if (work->client || work->back)
			charged += work->charged_bytes;
		if (work->client)
			MUST(work->client->slots[work->slot].work == work);
	}
	MUST(pgr->stats.pool_bytes == charged && pgr->stats.pool_bytes <= POOL_BYTES);
	for (const struct pgr_client *client = pgr->silent.first; client;
	     client = client->behind[PGR_OF_ALL]) {
		clients++;
		MUST(pgr_client_of(f.pgr, client->id) == client);
		for (unsigned int j = 0; j < PGR_SLOTS; j++)
			MUST(!client->slots[j].work || client->slots[j].work->client == client);
	}
	f.pgr->recent = recent; /* as if nobody had looked */
	MUST(clients == pgr->clients_count && clients <= pgr->config.clients_max);
	for (unsigned int i = 0; i < PGR_SLOTS; i++) {
		const struct pgr_slot *slot = slot_of(i);

		if (f.peer->free >> i & 1) {
			MUST(slot->state == PGR_SLOT_FREE && !(f.peer->queued >> i & 1));
			continue;
		}
		MUST(slot->out.under_way <= slot->out.next && slot->out.next <= slot->out.packets &&
		     slot->out.acked <= slot->out.next && slot->out.lost <= slot->out.next);
		under_way += slot->out.under_way;
	}
	MUST(under_way == f.peer->under_way);
	MUST(f.ended <= f.begun);
}

/* Writes an identity over what the input says. */
static void patch(struct pgr_header *head, uint8_t selector, uint64_t *cookie_out)
{
	*cookie_out = 0;
	switch (selector & WHO) {
	case 1:
		head->client = CLIENT;
		head->incarnation = f.pgr->incarnation;
		break;
	case 2:
		head->client = f.peer->client;
		head->slot %= 8;
		head->incarnation = slot_of(head->slot)->claimed;
		break;
	case 3:
		head->client = 77;
		head->slot = 9;
		head->incarnation = INCARNATION;
		head->sequence = 9;
		head->flags |= PGR_FLAG_DELEGATED;
		break;
	case 4:
		head->client = CLIENT + 1 + (head->client & 3);
		head->incarnation = f.pgr->incarnation;
		*cookie_out = f.cookie;
		break;
	default: return;
	}
	head->version = PGR_VERSION;
	if (!(selector & SEQUENCE) || (selector & WHO) == 3)
		return;
	head->slot %= PGR_SLOTS;
	if ((selector & WHO) == 2) {
		head->sequence = slot_of(head->slot)->sequence;
	} else {
		const struct pgr_client *client = pgr_client_of(f.pgr, head->client);

		if (head->client == CLIENT && (!client || !client->slots[head->slot].sequence))
			*cookie_out = f.known;
		head->sequence = (client ? client->slots[head->slot].sequence : 0) + (head->sequence & 1);
	}
}

static void one_packet(uint8_t selector, const uint8_t *bytes, size_t count)
{
	const struct pgr_to from = address(selector & FROM ? OTHER : FAR);
	uint8_t packet[PACKET_BYTES + PGR_EXTENSIONS_BYTES] = {0};
	struct pgr_header head = {0};
	uint8_t body[DATA_BYTES] = {0};
	uint64_t cookie;
	size_t head_bytes = selector & LITTLE ? 8 : sizeof(head), used;

	if (!(selector & WHO)) { /* as it is */
		net_inject(f.pgr, &from, bytes, count);
		return;
	}
	if (head_bytes > count)
		head_bytes = count;
	memcpy(&head, bytes, head_bytes);
	bytes += head_bytes, count -= head_bytes;
	if (selector & LITTLE) { /* eight bytes say it all */
		const uint8_t *short_form = (const uint8_t *)&head;
		const uint8_t b[8] = {short_form[0], short_form[1], short_form[2], short_form[3],
				      short_form[4], short_form[5], short_form[6], short_form[7]};

		memset(&head, 0, sizeof(head));
		head.type = (uint8_t)(1 + b[0] % (PGR_TYPES_END - 1));
		head.flags = b[1] & (uint8_t)~(PGR_FLAG_KEYED | PGR_FLAG_COOKIE);
		head.slot = b[2];
		head.sequence = b[3];
		head.procedure = b[4];
		head.packet_number = b[5];
		head.message_bytes = b[6] * 16u;
		head.credits = b[7];
		head.packet_bytes = DATA_BYTES;
		if (head.type == PGR_CHALLENGE && (b[4] & 1))
			head.procedure = INCARNATION;
	}
	patch(&head, selector, &cookie);
	if (count > DATA_BYTES)
		count = DATA_BYTES;
	memcpy(body, bytes, count);
	if (selector & LENGTHS)
		head.data_bytes = (uint32_t)count;
	if ((selector & MESSAGE) && (head.type == PGR_CALL || head.type == PGR_RESULT)) {
		const uint32_t message = head.message_bytes % (LONG_BYTES + 1);

		part(&head, message, head.packet_number % pgr_packets_of(message, DATA_BYTES));
	}
	if ((selector & LENGTHS) && (selector & MESSAGE))
		count = head.data_bytes; /* of 0 where the input has fewer */
	used = pgr_packet_write(&head, cookie, key, body, packet);
	memcpy(packet + used, body, count);
	net_inject(f.pgr, &from, packet, used + count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct pgr_signature signature = {"hw2bd", "hw2bd"};
	struct pgr_config config = {
		.bytes = sizeof(config),
		.clients_max = 4,
		.peers_max = 2,
		.message_bytes_max = 20000,
		.pool_bytes_max = POOL_BYTES,
		.port_first = OWN,
		.port_last = OWN,
	};
	const struct pgr_to far = address(FAR);

	net_reset(1, PACKET_BYTES);
	memset(&f, 0, sizeof(f));
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + 1);
	if (!bytes)
		return 0;
	reliable = data[0] >> 6 & 1;
	config.off = data[0] & PGR_OFF_ALL &
		     ~(uint32_t)PGR_OFF_NO_THREAD_STATE; /* sanitizers dislike its stacks */
	data++, bytes--;
	ops = pgr_wire_net;
	ops.open = open_net;
	if (pgr_open_on(&ops, &config, &f.pgr) != PGR_OK)
		abort();
	pgr_serve(f.pgr, ECHO, NULL, on_echo, NULL);
	pgr_serve(f.pgr, LATER, NULL, on_later, NULL);
	pgr_serve(f.pgr, LONG, NULL, on_long, NULL);
	pgr_serve(f.pgr, FAIL, NULL, on_fail, NULL);
	pgr_serve(f.pgr, PASS, NULL, on_pass, NULL);
	pgr_serve(f.pgr, TYPED, &signature, on_echo, NULL);
	if (pgr_bind(f.pgr, far.bytes, sizeof(far.bytes), &f.peer) != PGR_OK)
		abort();
	if (pgr_delegations_from(f.pgr, far.bytes, sizeof(far.bytes), 1) != PGR_OK)
		abort();
	net_watch(on_packet, NULL);
	known_client();
	own_calls();
	check_state();
	for (unsigned int i = 0; i < PACKETS_MAX && bytes >= 3; i++) {
		const uint8_t selector = data[0], time = data[1];
		size_t count = data[2];

		data += 3, bytes -= 3;
		if (count > bytes)
			count = bytes;
		if (time & 0x80) /* the application does something too */
			switch (time & 7) {
			case 0: call(count * 8 % LONG_BYTES, 0, NULL); break;
			case 1: call(20, 400, &signature); break;
			case 2:
			case 3:
			case 4:
				if (f.tokens_next < f.tokens_count) {
					const struct pgr_token *token = &f.tokens[f.tokens_next++ % TOKENS];
					const struct pgr_iov iov = {pattern, time & 8 ? LONG_BYTES : 30};

					if ((time & 7) == 2)
						pgr_reply(f.pgr, token, &iov, 1, 0, on_sent, NULL);
					else if ((time & 7) == 3)
						pgr_fail(f.pgr, token, -80);
					else
						pgr_delegate(f.peer, token, ECHO, &iov, 1);
				}
				break;
			case 5: f.tokens_next = 0; break; /* stale tokens */
			default: break;
			}
		net_pass_time((time & 0x60) == 0x60 ? (uint64_t)(time & 31) * SECOND
						    : (uint64_t)(time & 0x7f) * MS / 4);
		one_packet(selector, data, count);
		data += count, bytes -= count;
		pgr_poll(f.pgr);
		check_state();
	}
	/* In the end each call is answered, each of ours has had its event, and nothing is remembered. */
	for (unsigned int i = 0; i < 60; i++) {
		net_pass_time(2 * SECOND);
		for (uint32_t j = 0; j < f.pgr->works_count; j++) {
			const struct pgr_token token = {{j, f.pgr->works[j]->generation, 0, 0}};

			if (f.pgr->works[j]->client && f.pgr->works[j]->state == PGR_WORK_EXECUTING)
				pgr_fail(f.pgr, &token, -90);
		}
		while (pgr_poll(f.pgr) > 0)
			;
		check_state();
	}
	MUST(f.pgr->clients_count == 0);
	MUST(f.ended == f.begun && f.peer->under_way == 0 && f.peer->free == UINT64_MAX);
	pgr_close(f.pgr);
	net_reset(1, PACKET_BYTES);
	return 0;
}
