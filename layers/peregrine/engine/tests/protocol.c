/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol packet by packet: one endpoint, no network. What it would hear is put before it by hand, what
 * it says is caught and swallowed. PROTOCOL.md is the rule; each expectation stands before its check. TAP on
 * standard output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/net.h"

enum {
	ECHO = 1,  /* answers with its arguments */
	LATER = 2, /* keeps the token */
	LONG = 3,  /* answers with LONG_BYTES */
	FAIL = 4,
	PASS = 5,  /* passes the call on */
	TYPED = 6, /* echo, with a signature */
	NONE = 99,

	OWN = 7, /* the addresses */
	FAR = 40,
	OTHER = 41,
	THIRD = 42,

	PACKET_BYTES = 512,
	DATA_BYTES = PACKET_BYTES - PGR_HEADER_BYTES - PGR_EXTENSIONS_BYTES,
	LONG_PACKETS = 20,
	LONG_BYTES = LONG_PACKETS * DATA_BYTES - 100,
	SEEN_MAX = 4096,
	FAIL_CODE = -70,
	CREDITS = 32,
	KNOWN_SLOT = 62,
	INCARNATION = 0x1234567, /* of the server that is played by hand */
};
#define CLIENT    UINT64_C(0x1122334455667788)
#define COOKIE    UINT64_C(0xc00c1e00c00c1e11)
#define MS        UINT64_C(1000000)
#define SECOND    UINT64_C(1000000000)
#define SIGNATURE "hw2bd"

/* A packet that the endpoint sent. */
struct seen {
	struct pgr_to to;
	struct pgr_packet packet;
	size_t bytes;
	uint8_t raw[PACKET_BYTES];
};

static struct test {
	bool good;
	struct pgr *pgr;
	const uint8_t *key;
	bool reliable; /* the wire says that it loses nothing */
	struct pgr_peer *peer;
	struct seen seen[SEEN_MAX];
	unsigned int seen_count;
	struct pgr_to to; /* of the packet that is being sent */
	/* served */
	unsigned int executed, sent;
	bool short_way; /* by fast.h */
	size_t args_bytes;
	uint8_t args[2 * LONG_BYTES];
	struct pgr_token token;
	struct { /* the cookies that the clients played here were given */
		uint64_t client, cookie;
		uint32_t from;
	} cookies[64];
	unsigned int cookies_count;
	/* called */
	unsigned int done;
	int code;
	size_t result_bytes;
	uint8_t result[2 * LONG_BYTES], out[2 * LONG_BYTES];
	struct pgr_stats stats;
} t;
static uint8_t pattern[2 * LONG_BYTES];

static bool check(bool holds, int line, const char *what)
{
	if (!holds) {
		printf("# protocol.c:%d: %s\n", line, what);
		t.good = false;
	}
	return holds;
}
#define CHECK(what) check((what), __LINE__, #what)

/* ---- the endpoint and what is around it ---- */

static struct pgr_to address(uint32_t number)
{
	struct pgr_to to = {{0}};

	memcpy(to.bytes, &number, sizeof(number));
	return to;
}

static bool is_at(const struct pgr_to *to, uint32_t number)
{
	const struct pgr_to other = address(number);

	return memcmp(to, &other, sizeof(other)) == 0;
}

static bool catch_packet(void *arg, uint8_t *packet, size_t bytes)
{
	struct seen *seen = &t.seen[t.seen_count];

	(void)arg;
	if (t.seen_count == SEEN_MAX)
		abort();
	memcpy(seen->raw, packet, bytes);
	seen->bytes = bytes;
	seen->to = t.to;
	/* what the endpoint sends is right in itself, and fills each byte that it declares */
	CHECK(pgr_packet_read(seen->raw, bytes, t.key, &seen->packet));
	CHECK(seen->packet.data + seen->packet.head.data_bytes == seen->raw + bytes);
	t.seen_count++;
	return false;
}

static struct pgr_wire_ops ops; /* pgr_wire_net, which also says where a packet goes */

static int send_noted(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		      unsigned int count, bool more)
{
	t.to = *to;
	return pgr_wire_net.send(wire, to, pieces, count, more);
}

static int open_noted(const struct pgr_config *config, pgr_input *input, void *engine,
		      struct pgr_wire **wire_out)
{
	const int code = pgr_wire_net.open(config, input, engine, wire_out);

	if (code == PGR_OK) {
		(*wire_out)->ops = &ops;
		(*wire_out)->reliable = t.reliable;
	}
	return code;
}

static void on_sent(void *arg, int code)
{
	(void)arg;
	CHECK(code == PGR_OK);
	t.sent++;
}

static void note(const struct pgr_request *request)
{
	t.executed++;
	t.short_way = request->pgr->current != NULL;
	t.args_bytes = request->args_bytes;
	t.token = request->token;
	if (CHECK(request->args_bytes <= sizeof(t.args)) && request->args_bytes)
		memcpy(t.args, request->args, request->args_bytes);
}

static void on_echo(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {(void *)(uintptr_t)request->args, request->args_bytes};
	int code;

	(void)arg;

	note(request);
	code = pgr_reply(request->pgr, &request->token, &iov, 1, 0, on_sent, NULL);
	if (code == PGR_BUSY) /* the pool has no room for the result; a failure needs none */
		code = pgr_fail(request->pgr, &request->token, FAIL_CODE);
	CHECK(code >= 0);
}

static void on_later(void *arg, const struct pgr_request *request)
{
	(void)arg;
	note(request);
}

static void on_long(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {pattern, LONG_BYTES};

	(void)arg;
	note(request);
	/* a wire that loses nothing has taken it all */
	CHECK(pgr_reply(request->pgr, &request->token, &iov, 1, 0, on_sent, NULL) ==
	      (t.reliable ? PGR_OK : PGR_QUEUED));
}

static void on_fail(void *arg, const struct pgr_request *request)
{
	(void)arg;
	note(request);
	CHECK(pgr_fail(request->pgr, &request->token, FAIL_CODE) == PGR_OK);
}

static void on_pass(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {(void *)(uintptr_t)request->args, request->args_bytes};

	(void)arg;
	note(request);
	CHECK(pgr_delegate(t.peer, &request->token, ECHO, &iov, 1) == PGR_OK);
}

static const struct pgr_signature signature = {SIGNATURE, SIGNATURE};

static void open_endpoint(const struct pgr_config *with)
{
	struct pgr_config config = with ? *with : (struct pgr_config){0};
	const struct pgr_to far = address(FAR);

	ops = pgr_wire_net;
	ops.open = open_noted;
	ops.send = send_noted;
	config.bytes = sizeof(config);
	config.port_first = config.port_last = OWN;
	t.key = config.key;
	if (pgr_open_on(&ops, &config, &t.pgr) != PGR_OK)
		abort();
	pgr_serve(t.pgr, ECHO, NULL, on_echo, NULL);
	pgr_serve(t.pgr, LATER, NULL, on_later, NULL);
	pgr_serve(t.pgr, LONG, NULL, on_long, NULL);
	pgr_serve(t.pgr, FAIL, NULL, on_fail, NULL);
	pgr_serve(t.pgr, PASS, NULL, on_pass, NULL);
	pgr_serve(t.pgr, TYPED, &signature, on_echo, NULL);
	if (pgr_bind(t.pgr, far.bytes, sizeof(far.bytes), &t.peer) != PGR_OK)
		abort();
	net_watch(catch_packet, NULL);
}

static void close_endpoint(void)
{
	pgr_close(t.pgr);
	t.pgr = NULL;
}

/* Time passes, in steps in which nothing is missed. */
static void pass(uint64_t ns)
{
	while (ns) {
		const uint64_t step_ns = ns < MS / 2 ? ns : MS / 2;

		net_pass_time(step_ns);
		pgr_poll(t.pgr);
		ns -= step_ns;
	}
}

static const struct pgr_stats *stats(void)
{
	pgr_stats(t.pgr, &t.stats);
	return &t.stats;
}

/* ---- packets by hand ---- */

static void put_raw(uint32_t from, const void *packet, size_t bytes)
{
	const struct pgr_to at = address(from);

	net_inject(t.pgr, &at, packet, bytes);
	pgr_poll(t.pgr);
}

/* The packet as it is on the wire; returns its bytes. */
static size_t make(const struct pgr_header *head, uint64_t cookie, const void *data, uint8_t *packet)
{
	const size_t bytes = pgr_packet_write(head, cookie, t.key, data, packet);

	if (data && head->data_bytes)
		memcpy(packet + bytes, data, head->data_bytes);
	return bytes + head->data_bytes;
}

/* As clients do: the first call of a slot has the cookie that the client was given, if any. */
static uint64_t own_cookie(uint32_t from, const struct pgr_header *head)
{
	const struct pgr_client *client = t.pgr->buckets[head->client & t.pgr->clients_mask];

	while (client && client->id != head->client)
		client = client->next;
	if (head->type != PGR_CALL || (client && client->slots[head->slot % PGR_SLOTS].sequence))
		return 0;
	for (unsigned int i = t.cookies_count; i-- > 0;)
		if (t.cookies[i].client == head->client && t.cookies[i].from == from)
			return t.cookies[i].cookie;
	return 0;
}

/* The endpoint hears this; what it said before is forgotten. */
static void put_from(uint32_t from, const struct pgr_header *head, uint64_t cookie, const void *data)
{
	uint8_t packet[PACKET_BYTES];

	if (!cookie)
		cookie = own_cookie(from, head);
	t.seen_count = 0;
	put_raw(from, packet, make(head, cookie, data, packet));
}

static void put(const struct pgr_header *head, const void *data)
{
	put_from(FAR, head, 0, data);
}

/* What it said, if that was one packet of this type. */
static const struct pgr_header *one(enum pgr_type type)
{
	return t.seen_count == 1 && t.seen[0].packet.head.type == type ? &t.seen[0].packet.head : NULL;
}

static bool silent(void)
{
	return t.seen_count == 0;
}

static bool one_reject(enum pgr_reject reason)
{
	return one(PGR_REJECT) && t.seen[0].packet.head.procedure == reason;
}

static uint64_t cookie_in(const struct pgr_header *head)
{
	return (uint64_t)head->packet_number << 32 | head->message_bytes;
}

/* Packet `number` of a message of `bytes`. */
static void part(struct pgr_header *head, uint32_t bytes, uint32_t number)
{
	const uint32_t at = number * DATA_BYTES;

	head->message_bytes = bytes;
	head->packet_bytes = DATA_BYTES;
	head->packet_number = number;
	head->data_bytes = bytes - at < DATA_BYTES ? bytes - at : DATA_BYTES;
}

static struct pgr_header call_of(uint64_t sequence, uint32_t procedure, uint32_t bytes)
{
	struct pgr_header head = {
		.type = PGR_CALL,
		.version = PGR_VERSION,
		.slot = 5,
		.credits = CREDITS,
		.client = CLIENT,
		.sequence = sequence,
		.incarnation = t.pgr->incarnation,
		.procedure = procedure,
	};

	part(&head, bytes, 0);
	return head;
}

static struct pgr_header bare_of(enum pgr_type type, uint64_t sequence)
{
	return (struct pgr_header){
		.type = (uint8_t)type,
		.flags = type == PGR_PROBE ? PGR_FLAG_ASK : PGR_FLAG_OF_RESULT,
		.version = PGR_VERSION,
		.slot = 5,
		.client = CLIENT,
		.sequence = sequence,
		.incarnation = t.pgr->incarnation,
	};
}

/* A client makes itself known: a challenge, an empty call in a slot that is not used otherwise, its
 * acknowledgement. */
static void make_known_as(uint64_t client, uint32_t from)
{
	struct pgr_header head = bare_of(PGR_PROBE, 1);

	head.client = client;
	head.slot = KNOWN_SLOT;
	head.incarnation = 0;
	put_from(from, &head, 0, NULL);
	if (!CHECK(one(PGR_CHALLENGE) && t.cookies_count < 64))
		return;
	t.cookies[t.cookies_count].client = client;
	t.cookies[t.cookies_count].from = from;
	t.cookies[t.cookies_count++].cookie = cookie_in(&t.seen[0].packet.head);
	head = call_of(1, ECHO, 0);
	head.client = client;
	head.slot = KNOWN_SLOT;
	put_from(from, &head, 0, NULL);
	if (!one(PGR_RESULT))
		return;
	head = bare_of(PGR_ACK, 1);
	head.client = client;
	head.slot = KNOWN_SLOT;
	head.packet_number = 1;
	put_from(from, &head, 0, NULL);
	t.executed = 0;
}

static void make_known(void)
{
	make_known_as(CLIENT, FAR);
}

static void put_call(uint64_t sequence, uint32_t procedure, uint32_t bytes, uint8_t flags)
{
	struct pgr_header head = call_of(sequence, procedure, bytes);

	head.flags = flags;
	put(&head, pattern);
}

/* A packet of a longer call. */
static void put_part(uint64_t sequence, uint32_t procedure, uint32_t bytes, uint32_t number, uint8_t flags)
{
	struct pgr_header head = call_of(sequence, procedure, bytes);

	part(&head, bytes, number);
	head.flags = flags;
	put(&head, pattern + (size_t)number * DATA_BYTES);
}

static void put_bare(enum pgr_type type, uint64_t sequence, uint32_t packet_number)
{
	struct pgr_header head = bare_of(type, sequence);

	head.packet_number = packet_number;
	put(&head, NULL);
}

/* Slot 5 shows its cookie, so that later calls in it need none. */
static void introduce(void)
{
	put_call(1, ECHO, 10, 0);
	CHECK(one(PGR_RESULT) != NULL);
	put_bare(PGR_ACK, 1, 1);
	t.executed = 0;
}

/* ---- server: first contact ---- */

static void test_first_contact(void)
{
	struct pgr_header call, probe;
	uint8_t packet[PACKET_BYTES];
	uint64_t cookie;

	open_endpoint(NULL);
	call = call_of(1, ECHO, 0);
	call.incarnation = 0;
	/* An unknown client is challenged, not executed, not remembered. */
	put(&call, NULL);
	if (!CHECK(one(PGR_CHALLENGE) != NULL))
		return;
	CHECK(t.executed == 0 && stats()->clients == 0 && stats()->pool_bytes == 0);
	/*
	 * The challenge is not longer than the shortest call, names the incarnation and the claim, goes
	 * back.
	 */
	CHECK(t.seen[0].bytes <= make(&call, 0, NULL, packet) && is_at(&t.seen[0].to, FAR));
	CHECK(t.seen[0].packet.head.incarnation == t.pgr->incarnation &&
	      t.seen[0].packet.head.procedure == 0);
	CHECK(t.seen[0].packet.head.client == CLIENT && t.seen[0].packet.head.sequence == 1 &&
	      t.seen[0].packet.head.slot == 5);
	cookie = cookie_in(&t.seen[0].packet.head);
	call.incarnation = t.pgr->incarnation;
	/*
	 * No cookie, a wrong one, that of another address, that of another client: a challenge, nothing
	 * else.
	 */
	put(&call, NULL);
	CHECK(one(PGR_CHALLENGE) && t.seen[0].packet.head.procedure == t.pgr->incarnation);
	put_from(FAR, &call, cookie ^ 1, NULL);
	CHECK(one(PGR_CHALLENGE) != NULL);
	put_from(OTHER, &call, cookie, NULL);
	CHECK(one(PGR_CHALLENGE) && is_at(&t.seen[0].to, OTHER));
	call.client++;
	put_from(FAR, &call, cookie, NULL);
	CHECK(one(PGR_CHALLENGE) != NULL);
	call.client--;
	/* The right cookie with the wrong incarnation: a challenge. */
	call.incarnation ^= 1;
	put_from(FAR, &call, cookie, NULL);
	CHECK(one(PGR_CHALLENGE) != NULL);
	CHECK(t.executed == 0 && stats()->clients == 0);
	/* An ack and a nack of a stranger: silence. A probe: a challenge. */
	put_bare(PGR_ACK, 1, 1);
	CHECK(silent());
	put_bare(PGR_NACK, 1, 0);
	CHECK(silent());
	probe = bare_of(PGR_PROBE, 1);
	put(&probe, NULL);
	CHECK(one(PGR_CHALLENGE) && stats()->clients == 0);
	/* with the right cookie too: only a call makes known */
	put_from(FAR, &probe, cookie, NULL);
	CHECK(one(PGR_CHALLENGE) && stats()->clients == 0);
	/* The right cookie: known, executed. */
	call.incarnation = t.pgr->incarnation;
	put_from(FAR, &call, cookie, NULL);
	CHECK(one(PGR_RESULT) && t.executed == 1 && stats()->clients == 1);
	/* The same with a cookie once more: the saved result, not a second execution. */
	put_from(FAR, &call, cookie, NULL);
	CHECK(one(PGR_RESULT) && t.executed == 1 && stats()->clients == 1);
	/*
	 * Each slot shows the cookie once: an old copy of a call in another one may be from before we
	 * forgot.
	 */
	call.slot++;
	put(&call, NULL);
	CHECK(one(PGR_CHALLENGE) && t.executed == 1);
	put_from(FAR, &call, cookie ^ 1, NULL);
	CHECK(one(PGR_CHALLENGE) && t.executed == 1);
	put_from(FAR, &call, cookie, NULL);
	CHECK(one(PGR_RESULT) && t.executed == 2);
	call.sequence++;
	put(&call, NULL);
	CHECK(one(PGR_RESULT) && t.executed == 3);
}

static void test_cookie_epochs(void)
{
	struct pgr_header probe;
	uint64_t cookie;

	open_endpoint(NULL);
	probe = call_of(1, ECHO, 0);
	/* to the begin of an epoch */
	pass(5 * SECOND - net_now_ns() % (5 * SECOND) + MS);
	put(&probe, NULL);
	cookie = cookie_in(&t.seen[0].packet.head);
	/* Of the epoch before the last: a challenge with another cookie. */
	pass(10 * SECOND);
	put_from(FAR, &probe, cookie, NULL);
	CHECK(one(PGR_CHALLENGE) && cookie_in(&t.seen[0].packet.head) != cookie && stats()->clients == 0);
	cookie = cookie_in(&t.seen[0].packet.head);
	/* Of the last epoch: good. */
	pass(5 * SECOND);
	put_from(FAR, &probe, cookie, NULL);
	CHECK(one(PGR_RESULT) && stats()->clients == 1);
}

static void test_first_contact_keyed(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";
	const struct pgr_config config = {.key = key};
	struct pgr_header call;
	uint8_t packet[PACKET_BYTES];
	size_t bytes;

	open_endpoint(&config);
	call = call_of(1, ECHO, 0);
	/* With a key the challenge is not longer than a keyed call either. */
	bytes = make(&call, 0, NULL, packet);
	put(&call, NULL);
	CHECK(one(PGR_CHALLENGE) && t.seen[0].bytes <= bytes);
	/* A packet without a check is no packet: not even a challenge. */
	t.key = NULL;
	put(&call, NULL);
	t.key = key;
	CHECK(silent() && stats()->packets_dropped == 1);
	close_endpoint();
	/* Nor is one with a check to an endpoint without a key. */
	open_endpoint(NULL);
	t.seen_count = 0;
	put_raw(FAR, packet, bytes);
	CHECK(silent() && stats()->packets_dropped == 1);
}

static void test_table_full(void)
{
	const struct pgr_config config = {.clients_max = 2};

	open_endpoint(&config);
	make_known_as(1, FAR);
	make_known_as(2, OTHER);
	/* A full table rejects newcomers, though they have the right cookie, and forgets nobody. */
	make_known_as(3, THIRD);
	CHECK(one_reject(PGR_REJECT_BUSY) && stats()->clients == 2);
	/* Who has been silent for the memory time makes room. */
	pass(41 * SECOND);
	CHECK(stats()->clients == 0);
	make_known_as(3, THIRD);
	CHECK(stats()->clients == 1);
}

static void test_new_address(void)
{
	struct pgr_header call;

	open_endpoint(NULL);
	make_known();
	put_call(1, ECHO, 10, 0);
	call = call_of(1, ECHO, 10);
	/* The same client at another address: only with a cookie for it; then its calls are filtered as
	 * before. */
	put_from(OTHER, &call, 0, pattern);
	if (CHECK(one(PGR_CHALLENGE) && is_at(&t.seen[0].to, OTHER)))
		put_from(OTHER, &call, cookie_in(&t.seen[0].packet.head), pattern);
	CHECK(one(PGR_RESULT) && is_at(&t.seen[0].to, OTHER) && t.executed == 1 && stats()->clients == 1);
}

/* ---- server: a call meets its slot ---- */

static void test_server_single(void)
{
	const struct pgr_header *head;

	open_endpoint(NULL);
	make_known();
	/* A probe for a call that never came: nack of packet 0 with an empty bitmap. */
	put_bare(PGR_PROBE, 3, 0);
	head = one(PGR_NACK);
	CHECK(head && head->packet_number == 0 && head->data_bytes == 0 && head->sequence == 3 &&
	      !(head->flags & PGR_FLAG_OF_RESULT));
	/* In order: executed, answered with its slot, sequence, incarnation, count and data. */
	put_call(3, ECHO, 100, 0);
	head = one(PGR_RESULT);
	if (CHECK(head && t.executed == 1 && t.args_bytes == 100 && !memcmp(t.args, pattern, 100))) {
		CHECK(head->sequence == 3 && head->slot == 5 && head->incarnation == t.pgr->incarnation &&
		      head->client == CLIENT && head->retransmissions == 0 && head->credits > 0);
		CHECK(head->data_bytes == 100 && !memcmp(t.seen[0].packet.data, pattern, 100));
	}
	/* Past: dropped. */
	put_call(2, ECHO, 100, PGR_FLAG_ASK);
	CHECK(silent() && t.executed == 1);
	put_bare(PGR_PROBE, 2, 0);
	CHECK(silent());
	/* The same again, and a probe: the saved result, with the count of what it answers. */
	for (unsigned int i = 1; i < 4; i++) {
		struct pgr_header again = call_of(3, ECHO, 100);

		again.retransmissions = (uint8_t)i;
		again.flags = PGR_FLAG_ASK;
		put(&again, pattern);
		head = one(PGR_RESULT);
		CHECK(head && head->retransmissions == i && head->data_bytes == 100 &&
		      !memcmp(t.seen[0].packet.data, pattern, 100));
	}
	put_bare(PGR_PROBE, 3, 0);
	CHECK(one(PGR_RESULT) && t.executed == 1);
	/* An ack of another sequence number changes nothing. */
	put_bare(PGR_ACK, 2, 1);
	put_bare(PGR_ACK, 4, 1);
	CHECK(silent() && t.pgr->works[0]->client);
	/* Acknowledged: the result is gone; call and probe are dropped. */
	put_bare(PGR_ACK, 3, 1);
	CHECK(silent() && stats()->pool_bytes == sizeof(struct pgr_work));
	put_call(3, ECHO, 100, PGR_FLAG_ASK);
	CHECK(silent() && t.executed == 1);
	put_bare(PGR_PROBE, 3, 0);
	CHECK(silent());
	put_bare(PGR_ACK, 3, 1);
	CHECK(silent());
	/* The future, with a gap: executed. */
	put_call(UINT64_C(1) << 40, ECHO, 0, 0);
	CHECK(one(PGR_RESULT) && t.executed == 2);
	/* The next call acknowledges the last result. */
	put_call((UINT64_C(1) << 40) + 1, ECHO, 7, 0);
	CHECK(one(PGR_RESULT) && t.executed == 3 && t.pgr->works_count == 1);
	/* Slots do not disturb each other. */
	for (uint16_t slot = 0; slot < PGR_SLOTS; slot++) {
		struct pgr_header call = call_of(1, ECHO, 3);

		call.slot = slot;
		put(&call, pattern);
		CHECK(slot == 5 || slot == KNOWN_SLOT ? silent()
						      : one(PGR_RESULT) && one(PGR_RESULT)->slot == slot);
	}
	CHECK(t.executed == 3 + PGR_SLOTS - 2);
}

static void test_server_executing(void)
{
	const struct pgr_iov iov = {pattern, 20};

	open_endpoint(NULL);
	make_known();
	/* It takes its time. */
	put_call(1, LATER, 10, 0);
	CHECK(silent() && t.executed == 1);
	/* The call again without ask: silence. With ask, or a probe: alive, and no result. */
	put_call(1, LATER, 10, 0);
	CHECK(silent());
	put_call(1, LATER, 10, PGR_FLAG_ASK);
	CHECK(one(PGR_ALIVE) && one(PGR_ALIVE)->sequence == 1 &&
	      one(PGR_ALIVE)->incarnation == t.pgr->incarnation);
	put_bare(PGR_PROBE, 1, 0);
	CHECK(one(PGR_ALIVE) && t.executed == 1);
	/* However long that is. */
	for (unsigned int i = 0; i < 120; i++) {
		pass(SECOND);
		put_bare(PGR_PROBE, 1, 0);
		CHECK(one(PGR_ALIVE) != NULL);
	}
	/* An ack of a result that does not exist yet is nothing. */
	put_bare(PGR_ACK, 1, 1);
	put_bare(PGR_PROBE, 1, 0);
	CHECK(one(PGR_ALIVE) != NULL);
	/* Then the result goes out by itself. */
	t.seen_count = 0;
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK);
	CHECK(one(PGR_RESULT) && t.seen[0].packet.head.data_bytes == 20);
	/* The client moves on while a procedure runs: its answer goes nowhere. */
	put_call(2, LATER, 10, 0);
	put_call(3, LATER, 10, 0);
	CHECK(t.executed == 3);
	t.seen_count = 0;
	t.token.word[1]--; /* that of call 2, which sat in the same place */
	CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK && silent());
}

static void test_server_parts(void)
{
	const struct pgr_header *head;
	const uint32_t packets = 5, bytes = 5 * DATA_BYTES - 9;

	open_endpoint(NULL);
	make_known();
	/* The first, with ask: ack of all below 1. */
	put_part(1, LATER, bytes, 0, PGR_FLAG_ASK);
	CHECK(one(PGR_ACK) && one(PGR_ACK)->packet_number == 1 &&
	      !(one(PGR_ACK)->flags & PGR_FLAG_OF_RESULT));
	/* Without ask: nothing to say yet. */
	put_part(1, LATER, bytes, 3, 0);
	CHECK(silent());
	/* A duplicate while receiving, with ask: nack of 1, bitmap: 2 is missing, 3 here. */
	put_part(1, LATER, bytes, 3, PGR_FLAG_ASK);
	head = one(PGR_NACK);
	CHECK(head && head->packet_number == 1 && head->data_bytes == 1 && t.seen[0].packet.data[0] == 2);
	/* A probe asks the same. */
	put_bare(PGR_PROBE, 1, 0);
	CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1);
	/* Of another length, or cut otherwise: dropped. */
	put_part(1, LATER, bytes + 1, 1, PGR_FLAG_ASK);
	CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1);
	{
		struct pgr_header other = call_of(1, LATER, bytes);

		other.packet_bytes = DATA_BYTES - 8;
		other.data_bytes = other.packet_bytes;
		other.packet_number = 1;
		other.flags = PGR_FLAG_ASK;
		put(&other, pattern);
		CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1);
		/* and all in one packet that claims to be longer than it may be */
		other = call_of(1, LATER, DATA_BYTES);
		other.flags = PGR_FLAG_ASK;
		put(&other, pattern);
		CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1 && t.executed == 0);
	}
	/* The rest, out of order: executed once, with what was sent. */
	put_part(1, LATER, bytes, packets - 1, 0);
	put_part(1, LATER, bytes, 2, 0);
	CHECK(t.executed == 0);
	put_part(1, LATER, bytes, 1, 0);
	CHECK(t.executed == 1 && t.args_bytes == bytes && !memcmp(t.args, pattern, bytes));
	put_part(1, LATER, bytes, 1, PGR_FLAG_ASK);
	CHECK(one(PGR_ALIVE) && t.executed == 1);
	/* A newer call drops one that is half received. */
	put_part(2, LATER, bytes, 0, 0);
	put_call(3, ECHO, 5, 0);
	CHECK(t.executed == 2 && one(PGR_RESULT));
	put_part(2, LATER, bytes, 1, PGR_FLAG_ASK);
	CHECK(silent() && t.pgr->works_count == 1);
	/* Every quarter of the window is acknowledged unasked. */
	t.seen_count = 0;
	for (uint32_t i = 0; i < 40; i++) {
		struct pgr_header call = call_of(4, LATER, 41 * DATA_BYTES);
		uint8_t packet[PACKET_BYTES];

		part(&call, 41 * DATA_BYTES, i);
		put_raw(FAR, packet, make(&call, 0, pattern, packet));
	}
	CHECK(t.seen_count == 2 && t.seen[1].packet.head.packet_number == 32);
	/* One that is never completed is dropped in the end. */
	pass(41 * SECOND);
	CHECK(stats()->pool_bytes == t.pgr->works_count * sizeof(struct pgr_work) && stats()->clients == 0);
}

static void test_server_long_result(void)
{
	unsigned int at = 0;

	open_endpoint(NULL);
	make_known();
	{
		struct pgr_header call = call_of(1, LONG, 0);

		call.credits = 4;
		put(&call, NULL);
	}
	/* As far as the client's credits go; the last of the burst asks. */
	CHECK(t.seen_count == 4 && t.sent == 0);
	for (unsigned int i = 0; i < t.seen_count; i++)
		CHECK(t.seen[i].packet.head.packet_number == i &&
		      !(t.seen[i].packet.head.flags & PGR_FLAG_ASK) == (i < 3) &&
		      !memcmp(t.seen[i].packet.data, pattern + i * DATA_BYTES, DATA_BYTES));
	/* The call again: one packet, which asks; there are no more credits than before. */
	put_call(1, LONG, 0, PGR_FLAG_ASK);
	CHECK(t.seen_count == 1 && (t.seen[0].packet.head.flags & PGR_FLAG_ASK));
	{
		/* Nack: 0 and 2 to 3 came, 1 did not; what was sent three sendings before it is lost. */
		struct pgr_header nack = bare_of(PGR_NACK, 1);
		uint8_t bitmap = 3;

		nack.credits = 4;
		nack.packet_number = 1;
		nack.data_bytes = 1;
		put(&nack, &bitmap);
		CHECK(t.seen_count == 4 && t.seen[0].packet.head.packet_number == 1 &&
		      t.seen[3].packet.head.packet_number == 6);
		/* 4 to 6 came too: 1 is lost, and goes first. */
		bitmap = 31;
		put(&nack, &bitmap);
		CHECK(t.seen_count == 4 && t.seen[0].packet.head.packet_number == 1);
		/* the same once more: nothing is repeated twice in a round */
		put(&nack, &bitmap);
		CHECK(silent());
	}
	/* A nack that names packets never sent, an ack beyond the end: dropped. */
	{
		struct pgr_header nack = bare_of(PGR_NACK, 1);
		uint8_t bitmap[PGR_NACK_BITMAP_BYTES];

		memset(bitmap, 0xff, sizeof(bitmap));
		nack.packet_number = LONG_PACKETS - 1;
		put(&nack, NULL);
		CHECK(silent());
		nack.packet_number = 15;
		nack.data_bytes = sizeof(bitmap);
		put(&nack, bitmap);
		CHECK(silent());
		put_bare(PGR_ACK, 1, LONG_PACKETS + 1);
		CHECK(t.sent == 0);
		put_bare(PGR_ACK, 1, UINT32_MAX);
		CHECK(t.sent == 0);
	}
	/* On, ack by ack, never more than four under way. */
	for (at = 10; at<LONG_PACKETS; at = at + 2> LONG_PACKETS ? LONG_PACKETS : at + 2) {
		put_bare(PGR_ACK, 1, at);
		CHECK(t.seen_count <= 4);
		for (unsigned int i = 0; i < t.seen_count; i++)
			CHECK(t.seen[i].packet.head.packet_number >= at &&
			      t.seen[i].packet.head.packet_number < at + 4);
	}
	/* The last packet is shorter. All have arrived: the buffers are the procedure's again, once. */
	CHECK(t.sent == 0);
	put_bare(PGR_ACK, 1, LONG_PACKETS);
	CHECK(t.sent == 1 && silent());
	put_bare(PGR_ACK, 1, LONG_PACKETS);
	CHECK(t.sent == 1);
	/* The next call gives the buffers back too. */
	put_call(2, LONG, 0, 0);
	CHECK(t.sent == 1);
	put_call(3, ECHO, 0, 0);
	CHECK(t.sent == 2);
	/* And so does time. */
	put_call(4, LONG, 0, 0);
	pass(50 * SECOND);
	CHECK(t.sent == 3 && stats()->clients == 0);
}

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

/* ---- server: memory ---- */

static void test_pool_full(void)
{
	struct pgr_config config = {.pool_bytes_max = 40000};
	struct pgr_header call;

	open_endpoint(&config);
	make_known();
	call = call_of(1, LATER, 30000);
	put(&call, pattern);
	CHECK(silent());
	/* No room for another long call: busy, and nothing of it is kept. */
	call.slot = 6;
	put(&call, pattern);
	CHECK(one_reject(PGR_REJECT_BUSY) && stats()->pool_bytes <= 40000);
	/* The first one goes: now there is. */
	put_call(2, ECHO, 1, 0);
	call.flags = PGR_FLAG_ASK;
	put(&call, pattern);
	CHECK(one(PGR_ACK) && t.executed == 1);
}

static void test_flood_unknown(void)
{
	open_endpoint(NULL);
	/* Ten thousand strangers: each is answered, none is remembered. */
	for (unsigned int i = 0; i < 10000; i++) {
		struct pgr_header call = call_of(1 + net_random(100), ECHO, 100);

		call.client = (uint64_t)net_random(UINT32_MAX) << 32 | net_random(UINT32_MAX);
		call.slot = (uint16_t)net_random(PGR_SLOTS);
		call.incarnation = i % 2 ? t.pgr->incarnation : 0;
		put_from(FAR, &call, i % 3 ? 0 : COOKIE + i, pattern);
		if (!CHECK(one(PGR_CHALLENGE) != NULL))
			break;
	}
	CHECK(t.executed == 0 && stats()->clients == 0 && stats()->pool_bytes == 0 &&
	      t.pgr->works_count == 0);
	CHECK(stats()->challenges_sent == 10000);
	/* What a known one costs, without what it has under way. */
	CHECK(stats()->server_bytes_per_client <= 2048);
}

static void test_flood_known(void)
{
	const struct pgr_config config = {.pool_bytes_max = 200000, .clients_max = 16};
	uint64_t sequence = 1;
	unsigned int busy = 0;

	open_endpoint(&config);
	for (uint32_t i = 0; i < 16; i++)
		make_known_as(100 + i, FAR + i);
	/* Known clients in all their slots: calls begun and never completed, results never acknowledged. */
	for (unsigned int round = 0; round < 4; round++, sequence++)
		for (uint32_t i = 0; i < 16; i++)
			for (uint16_t slot = 0; slot < PGR_SLOTS; slot++) {
				struct pgr_header call = call_of(sequence, slot % 3 ? ECHO : LATER,
								 slot % 3 ? DATA_BYTES : 3000 + 1000u * slot);

				call.client = 100 + i;
				call.slot = slot;
				put_from(FAR + i, &call, 0, pattern);
				busy += one_reject(PGR_REJECT_BUSY) || one_reject(PGR_REJECT_FAILED);
				if (!CHECK(t.pgr->stats.pool_bytes <= 200000))
					return;
			}
	/* Not all of it fitted, and what did not was rejected; the peak is what it was. */
	CHECK(busy > 0 && stats()->pool_bytes_peak <= 200000 && stats()->pool_bytes_peak > 150000);
	/* Each client comes, when others have let go. */
	pass(45 * SECOND);
	CHECK(stats()->clients == 0 && stats()->pool_bytes == t.pgr->works_count * sizeof(struct pgr_work));
}

/* ---- server: restart and forgetting ---- */

static void test_server_restarted(void)
{
	struct pgr_header call;
	uint64_t cookie;
	uint32_t old;

	open_endpoint(NULL);
	call = call_of(1, ECHO, 10);
	put(&call, pattern);
	cookie = cookie_in(&t.seen[0].packet.head);
	old = t.pgr->incarnation;
	put_from(FAR, &call, cookie, pattern);
	CHECK(t.executed == 1);
	close_endpoint();
	open_endpoint(NULL);
	t.executed = 0;
	CHECK(t.pgr->incarnation != old);
	/* The old call, with the old incarnation and its cookie: challenged, never executed. */
	put_from(FAR, &call, cookie, pattern);
	CHECK(one(PGR_CHALLENGE) && one(PGR_CHALLENGE)->procedure == old &&
	      one(PGR_CHALLENGE)->incarnation == t.pgr->incarnation);
	/* Not even under the new incarnation: the cookie is of another secret. */
	call.incarnation = t.pgr->incarnation;
	put_from(FAR, &call, cookie, pattern);
	CHECK(one(PGR_CHALLENGE) && t.executed == 0 && stats()->clients == 0);
	/* When the client is known again, what is delayed from before is still not executed. */
	make_known();
	call.incarnation = old;
	put_from(FAR, &call, cookie, pattern);
	CHECK(one(PGR_CHALLENGE) && t.executed == 0);
	/* Late acks of before are not answered. */
	{
		struct pgr_header ack = bare_of(PGR_ACK, 1);

		ack.incarnation = old;
		put(&ack, NULL);
		CHECK(silent());
	}
}

static void test_server_forgets(void)
{
	open_endpoint(NULL);
	make_known();
	put_call(1, ECHO, 10, 0);
	/* Half of the memory time: all is there. */
	pass(19 * SECOND);
	put_call(1, ECHO, 10, 0);
	CHECK(one(PGR_RESULT) && t.executed == 1 && stats()->clients == 1);
	/* Nobody waits for the result any more, but the call stays filtered. */
	pass(21 * SECOND);
	CHECK(stats()->clients == 1 && stats()->pool_bytes == sizeof(struct pgr_work));
	put_call(1, ECHO, 10, PGR_FLAG_ASK);
	CHECK(silent() && t.executed == 1);
	/* Silent for the memory time: forgotten, and challenged under the same incarnation. */
	pass(41 * SECOND);
	CHECK(stats()->clients == 0);
	put_call(2, ECHO, 10, 0);
	CHECK(one(PGR_CHALLENGE) && one(PGR_CHALLENGE)->incarnation == t.pgr->incarnation &&
	      one(PGR_CHALLENGE)->procedure == t.pgr->incarnation && t.executed == 1);
}

/* ---- server: tokens ---- */

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

/* ---- server: unlike machines ---- */

/* Data of SIGNATURE: a half word, two words, bytes... of which the last kind, double words, repeats. */
static const uint8_t plain[] = {0x02, 0x01, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21,
				0x7a, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x48,
				0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x51, 0x52, 0x53};
static const uint8_t swapped[] = {0x01, 0x02, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
				  0x7a, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41,
				  0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x51, 0x52, 0x53};
static const uint8_t words[] = {0x00, 0x00, 0x01, 0x02, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
				0x7a, 0x00, 0x00, 0x00, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
				0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x51, 0x52, 0x53};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const uint8_t *const own = plain, *const unlike = swapped;
#else
static const uint8_t *const own = swapped, *const unlike = plain;
#endif

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

/* ---- server: what is not a packet ---- */

static void test_server_corrupt(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";
	const struct pgr_config config = {.key = key};
	uint8_t packet[PACKET_BYTES];
	struct pgr_header call;
	size_t bytes;

	open_endpoint(&config);
	make_known();
	introduce();
	call = call_of(2, ECHO, 50);
	bytes = make(&call, COOKIE, pattern, packet);
	t.seen_count = 0;
	/* Any one bit is turned: dropped. */
	for (size_t bit = 0; bit < bytes * 8; bit++) {
		const uint64_t dropped = t.pgr->stats.packets_dropped;

		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		put_raw(FAR, packet, bytes);
		packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (!CHECK(silent() && t.executed == 0 && t.pgr->stats.packets_dropped == dropped + 1)) {
			printf("# bit %zu\n", bit);
			break;
		}
	}
	/* Under another key: dropped. */
	packet[PGR_HEADER_BYTES + PGR_COOKIE_BYTES] ^= 0xff;
	put_raw(FAR, packet, bytes);
	CHECK(silent() && t.executed == 0);
	packet[PGR_HEADER_BYTES + PGR_COOKIE_BYTES] ^= 0xff;
	put_raw(FAR, packet, bytes);
	CHECK(one(PGR_RESULT) && t.executed == 1);
}

/* Cut at every length, and longer than it says. */
static void cut(const uint8_t *packet, size_t bytes)
{
	uint8_t longer[PACKET_BYTES] = {0};

	memcpy(longer, packet, bytes);
	t.seen_count = 0;
	for (size_t length = 0; length < bytes + 20; length++) {
		const uint64_t dropped = t.pgr->stats.packets_dropped;

		if (length == bytes)
			continue;
		put_raw(FAR, longer, length);
		if (!CHECK(silent() && t.executed == 0 && t.done == 0 &&
			   t.pgr->stats.packets_dropped == dropped + 1)) {
			printf("# %zu of %zu bytes\n", length, bytes);
			return;
		}
	}
}

static void test_server_truncated(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";

	for (unsigned int i = 0; i < 4; i++) {
		const struct pgr_config config = {.key = i & 1 ? key : NULL};
		uint8_t packet[PACKET_BYTES];
		struct pgr_header call;
		size_t bytes;

		t.executed = 0;
		open_endpoint(&config);
		make_known();
		introduce();
		call = call_of(2, ECHO, 60);
		bytes = make(&call, i & 2 ? COOKIE : 0, pattern, packet);
		cut(packet, bytes);
		put_raw(FAR, packet, bytes);
		CHECK(one(PGR_RESULT) && t.executed == 1);
		close_endpoint();
	}
}

/* Header bytes that no reader may accept; `head` is one that is right. */
static void refused(const struct pgr_header *right)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t bytes, value;
	} wrong[] = {
		{"type 0", offsetof(struct pgr_header, type), 1, 0},
		{"type 9", offsetof(struct pgr_header, type), 1, 9},
		{"type 255", offsetof(struct pgr_header, type), 1, 255},
		{"an unknown flag", offsetof(struct pgr_header, flags), 1, 128},
		{"version 0", offsetof(struct pgr_header, version), 1, 0},
		{"version 2", offsetof(struct pgr_header, version), 1, 2},
		{"slot 64", offsetof(struct pgr_header, slot), 2, 64},
		{"slot 65535", offsetof(struct pgr_header, slot), 2, 65535},
		{"more data than there are", offsetof(struct pgr_header, data_bytes), 4, DATA_BYTES + 1},
		{"a wrap of data", offsetof(struct pgr_header, data_bytes), 4, UINT32_MAX},
		{"less data than there are", offsetof(struct pgr_header, data_bytes), 4, DATA_BYTES - 1},
		{"no data", offsetof(struct pgr_header, data_bytes), 4, 0},
		{"packets of no bytes", offsetof(struct pgr_header, packet_bytes), 4, 0},
		{"packets of other lengths", offsetof(struct pgr_header, packet_bytes), 4, DATA_BYTES + 1},
		{"a message of no bytes", offsetof(struct pgr_header, message_bytes), 4, 0},
		{"a message shorter than its packet", offsetof(struct pgr_header, message_bytes), 4, 5},
		{"a message over 1 GiB", offsetof(struct pgr_header, message_bytes), 4,
		 PGR_MESSAGE_BYTES_MAX + 1},
		{"a message of 4 GiB", offsetof(struct pgr_header, message_bytes), 4, UINT32_MAX},
		{"a message of too many packets", offsetof(struct pgr_header, message_bytes), 4,
		 (PGR_PACKETS_MAX + 1) * (uint32_t)DATA_BYTES},
		{"packet number beyond the end", offsetof(struct pgr_header, packet_number), 4, 5},
		{"a wild packet number", offsetof(struct pgr_header, packet_number), 4, UINT32_MAX},
		{"the last packet, of wrong length", offsetof(struct pgr_header, packet_number), 4, 4},
	};
	uint8_t packet[PACKET_BYTES];
	const size_t bytes = make(right, 0, pattern, packet);
	const uint32_t works = t.pgr->works_count;

	t.seen_count = 0;
	for (size_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
		const uint64_t dropped = t.pgr->stats.packets_dropped;
		uint8_t other[PACKET_BYTES];

		memcpy(other, packet, bytes);
		if (i == sizeof(wrong) / sizeof(wrong[0])) { /* sequence number 0, which counts nothing */
			memset(other + offsetof(struct pgr_header, sequence), 0, sizeof(uint64_t));
		} else { /* little-endian, as all headers */
			for (uint32_t j = 0; j < wrong[i].bytes; j++)
				other[wrong[i].at + j] = (uint8_t)(wrong[i].value >> 8 * j);
		}
		put_raw(FAR, other, bytes);
		if (!CHECK(silent() && t.executed == 0 && t.done == 0 && t.pgr->works_count == works &&
			   t.pgr->stats.packets_dropped == dropped + 1))
			printf("# %s\n",
			       i == sizeof(wrong) / sizeof(wrong[0]) ? "sequence 0" : wrong[i].what);
	}
}

static void test_server_hostile(void)
{
	struct pgr_header head;
	uint8_t bitmap[DATA_BYTES];

	open_endpoint(NULL);
	make_known();
	head = call_of(1, ECHO, 5 * DATA_BYTES - 9);
	refused(&head);
	/* Types that only a server sends, to a client that does not exist: nothing. */
	for (unsigned int type = PGR_RESULT; type < PGR_TYPES_END; type++) {
		if (type == PGR_PROBE)
			continue;
		head = bare_of((enum pgr_type)type, 1);
		put(&head, NULL);
		CHECK(silent() && t.executed == 0);
		head.flags |= PGR_FLAG_DELEGATED;
		put(&head, NULL);
		CHECK(silent());
	}
	/* A bitmap longer than any. */
	memset(bitmap, 0xff, sizeof(bitmap));
	put_call(1, LONG, 0, 0);
	head = bare_of(PGR_NACK, 1);
	head.data_bytes = sizeof(bitmap);
	put(&head, bitmap);
	CHECK(silent());
	/* Acks and probes carry no data. */
	head = bare_of(PGR_ACK, 1);
	head.data_bytes = 8;
	head.packet_number = LONG_PACKETS;
	put(&head, bitmap);
	CHECK(silent() && t.sent == 0);
	/* A report about our arguments is for a client, not for us. */
	head = bare_of(PGR_ACK, 1);
	head.flags = 0;
	head.packet_number = LONG_PACKETS;
	put(&head, NULL);
	CHECK(silent() && t.sent == 0);
	/* Packets of one byte: as many as there may be, and one more. */
	head = call_of(2, LATER, PGR_PACKETS_MAX);
	head.packet_bytes = head.data_bytes = 1;
	head.packet_number = PGR_PACKETS_MAX - 1;
	head.flags = PGR_FLAG_ASK;
	put(&head, pattern);
	/* so far behind the hole that no bitmap reaches: a nack without one, or with an empty one */
	CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 0);
	head.message_bytes++;
	put(&head, pattern);
	CHECK(silent());
	/* Big words in every field of what is not a call. */
	for (unsigned int i = 0; i < 20000; i++) {
		static const enum pgr_type types[] = {PGR_ACK, PGR_NACK, PGR_PROBE, PGR_CALL};

		head = bare_of(types[net_random(4)], net_random(4) ? 3 + i / 20 : 1 + net_random(2000));
		head.procedure = 1 + net_random(3);
		head.flags = (uint8_t)net_random(128);
		head.flags &= (uint8_t)~(PGR_FLAG_COOKIE | PGR_FLAG_KEYED);
		head.credits = (uint16_t)net_random(65536);
		head.message_bytes = net_random(2) ? net_random(UINT32_MAX) : net_random(2000);
		head.packet_bytes = net_random(2) ? net_random(UINT32_MAX) : net_random(600);
		head.packet_number = net_random(2) ? net_random(UINT32_MAX) : net_random(30);
		head.data_bytes = net_random(2) ? net_random(448) : head.message_bytes % 448;
		put(&head, pattern);
	}
	CHECK(stats()->clients == 1);
}

/* ---- server: calls passed on ---- */

struct wire_token { /* as PROTOCOL.md says */
	uint8_t address[32];
	uint32_t address_bytes, flags;
	uint64_t client, sequence;
	uint32_t slot, incarnation;
};

static struct wire_token token_of(uint32_t from)
{
	struct wire_token token = {
		.address_bytes = pgr_le32(32),
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
	};
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
	CHECK(one(PGR_ALIVE) && is_at(&t.seen[0].to, FAR) && t.executed == 1);
	/* Not acknowledged: it is said again, less and less often. */
	t.seen_count = 0;
	pass(100 * MS);
	CHECK(t.seen_count >= 2 && t.seen_count <= 6 && t.seen[0].packet.head.type == PGR_RESULT &&
	      is_at(&t.seen[0].to, THIRD));
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
		put_bare(PGR_PROBE, 1, 0);
		CHECK(one(PGR_ALIVE) != NULL);
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
	/* The server before us moves on: the caller still gets its result, and its ack ends it. */
	put_delegated(3, ECHO, &token, 30);
	put_call(4, ECHO, 1, 0);
	CHECK(t.seen_count == 1);
	t.seen_count = 0;
	pass(100 * MS);
	CHECK(t.seen_count >= 2 && is_at(&t.seen[0].to, THIRD));
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
	      pgr_le32(token.address_bytes) == 32 && token.flags == 0 && pgr_le64(token.client) == CLIENT &&
	      pgr_le64(token.sequence) == 1 && pgr_le32(token.slot) == 5 &&
	      pgr_le32(token.incarnation) == t.pgr->incarnation);
	result = t.seen[0].packet.head;
	/* The caller who asks hears that we are at it. */
	call.flags = PGR_FLAG_ASK;
	put_from(THIRD, &call, 0, pattern);
	CHECK(one(PGR_ALIVE) && t.executed == 1);
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
	CHECK(one(PGR_ALIVE) != NULL);
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
	CHECK(one(PGR_ALIVE) && is_at(&t.seen[0].to, FAR) && one(PGR_ALIVE)->client == CLIENT);
	/* Done: the server before us gets its empty result. */
	result.type = PGR_RESULT;
	result.flags = PGR_OWN_ORDER;
	part(&result, 0, 0);
	put(&result, NULL);
	CHECK(one(PGR_RESULT) && one(PGR_RESULT)->client == CLIENT && one(PGR_RESULT)->data_bytes == 0 &&
	      is_at(&t.seen[0].to, FAR));
}

/* ---- client ---- */

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg;
	t.done++;
	t.code = code;
	t.result_bytes = result_bytes;
	if (result && CHECK(result_bytes <= sizeof(t.result)))
		memcpy(t.result, result, result_bytes);
}

/* Calls with `bytes` of the pattern; the result goes to t.out if there are out_bytes, else to t.result. */
static void call_typed(uint32_t bytes, size_t out_bytes, const struct pgr_signature *with)
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

static void call(uint32_t bytes, size_t out_bytes)
{
	call_typed(bytes, out_bytes, NULL);
}

/* An answer to the packet that was sent last. */
static struct pgr_header answer_of(enum pgr_type type)
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
	};
}

static struct pgr_header result_of(uint32_t bytes)
{
	struct pgr_header head = answer_of(PGR_RESULT);

	part(&head, bytes, 0);
	return head;
}

static struct pgr_header challenge_of(uint32_t claimed, uint64_t cookie)
{
	struct pgr_header head = answer_of(PGR_CHALLENGE);

	head.procedure = claimed;
	head.message_bytes = (uint32_t)cookie;
	head.packet_number = (uint32_t)(cookie >> 32);
	return head;
}

/* The client learns who its server is, by a short call; then all is quiet, acks included. */
static void meet_server(void)
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

static void test_client_first_contact(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	call(100, 0);
	/* It claims nothing yet, and sends no cookie. */
	CHECK(one(PGR_CALL) && one(PGR_CALL)->incarnation == 0 && !t.seen[0].packet.cookie &&
	      is_at(&t.seen[0].to, FAR) && one(PGR_CALL)->sequence == 1);
	/*
	 * A challenge that names no incarnation, speaks of another claim, or comes from elsewhere: dropped.
	 */
	head = challenge_of(0, COOKIE);
	head.incarnation = 0;
	put(&head, NULL);
	CHECK(silent());
	head = challenge_of(5, COOKIE);
	put(&head, NULL);
	CHECK(silent());
	head = challenge_of(0, COOKIE);
	put_from(OTHER, &head, 0, NULL);
	head.flags = PGR_FLAG_DELEGATED;
	put_from(OTHER, &head, 0, NULL);
	CHECK(silent() && t.done == 0);
	/* The right one: the call again, with incarnation and cookie. */
	head.flags = 0;
	put(&head, NULL);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->incarnation == INCARNATION &&
	      t.seen[0].packet.cookie == COOKIE && one(PGR_CALL)->data_bytes == 100 &&
	      !memcmp(t.seen[0].packet.data, pattern, 100));
	/* That challenge once more speaks of an earlier claim. */
	put(&head, NULL);
	CHECK(silent());
	/* Until there is another answer, the cookie goes with each packet, and of other calls too. */
	t.seen_count = 0;
	pass(11 * MS);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->retransmissions == 1 && t.seen[0].packet.cookie == COOKIE);
	head = result_of(4);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 4 && !memcmp(t.result, pattern, 4));
	call(10, 0);
	CHECK(one(PGR_CALL) && !t.seen[0].packet.cookie && one(PGR_CALL)->incarnation == INCARNATION);
	/* The server forgot us: its challenge names what we claim. On with the cookie. */
	head = challenge_of(INCARNATION, COOKIE + 1);
	put(&head, NULL);
	CHECK(one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE + 1 && t.done == 0);
	head = result_of(4);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK);
}

static void test_client_results(void)
{
	struct pgr_header head, wrong;

	open_endpoint(NULL);
	meet_server();
	call(10, 100);
	head = result_of(20);
	/* Past and future, another slot, client, incarnation, address: dropped, without an answer. */
	for (unsigned int i = 0; i < 7; i++) {
		wrong = head;
		wrong.sequence += i == 0 ? UINT64_MAX : i == 1;
		wrong.slot = (uint16_t)(wrong.slot + (i == 2));
		wrong.client ^= i == 3;
		wrong.incarnation ^= i == 4;
		wrong.incarnation = i == 5 ? 0 : wrong.incarnation;
		put_from(i == 6 ? OTHER : FAR, &wrong, 0, pattern);
		CHECK(silent() && t.done == 0);
	}
	/* Nor is a rejection from elsewhere or of another incarnation taken, though it be marked as
	 * delegated. */
	wrong = answer_of(PGR_REJECT);
	wrong.procedure = PGR_REJECT_NOT_AUTHORISED;
	put_from(OTHER, &wrong, 0, NULL);
	wrong.flags = PGR_FLAG_DELEGATED;
	put_from(OTHER, &wrong, 0, NULL);
	wrong.flags = 0;
	wrong.incarnation ^= 1;
	put(&wrong, NULL);
	CHECK(silent() && t.done == 0);
	/* The right one: one event, no packet. */
	put(&head, pattern);
	CHECK(silent() && t.done == 1 && t.code == PGR_OK && t.result_bytes == 20 &&
	      !memcmp(t.out, pattern, 20));
	/* A duplicate: dropped. */
	put(&head, pattern);
	CHECK(silent() && t.done == 1);
	/* The slot stays idle: after about 20 ms the result is acknowledged, once. */
	pass(18 * MS);
	CHECK(silent());
	pass(4 * MS);
	CHECK(one(PGR_ACK) && one(PGR_ACK)->sequence == head.sequence && one(PGR_ACK)->packet_number == 1 &&
	      (one(PGR_ACK)->flags & PGR_FLAG_OF_RESULT) && one(PGR_ACK)->incarnation == INCARNATION);
	t.seen_count = 0;
	pass(100 * MS);
	CHECK(silent());
	/* The next call in the slot acknowledges: there is no ack. */
	for (unsigned int i = 0; i < 5; i++) {
		call(10, 0);
		head = result_of(20);
		pass(MS);
		put(&head, pattern);
		CHECK(silent() && t.done == 1);
		pass(10 * MS);
		CHECK(silent());
	}
	/* Longer than the buffers: an error, and the rest of the world hears no more of it. */
	call(10, 19);
	head = result_of(20);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
	pass(30 * MS);
	CHECK(one(PGR_ACK) != NULL);
	/* An empty one. */
	call(0, 10);
	head = result_of(0);
	put(&head, NULL);
	CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 0);
	/* All slots, answered in another order. */
	{
		unsigned int count = 0;
		struct pgr_header heads[PGR_SLOTS];

		for (unsigned int i = 0; i < CREDITS; i++) {
			call(10, 0);
			heads[count++] = result_of(10);
		}
		t.done = 0;
		while (count--)
			put(&heads[count], pattern);
		CHECK(t.done == CREDITS);
	}
}

static void test_client_lost(void)
{
	static const unsigned int due_ms[] = {10, 20, 40, 80, 160, 250, 250};
	struct pgr_header head;
	unsigned int waited_ms, tries;

	open_endpoint(NULL);
	call(10, 0);
	/* Nothing comes: said again, with ask, counted; the time-out doubles, to a fortieth of the give-up
	 * time. */
	for (unsigned int i = 0; i < sizeof(due_ms) / sizeof(due_ms[0]); i++) {
		unsigned int halves = 0;

		for (t.seen_count = 0; silent() && halves < 1000; halves++)
			pass(MS / 2);
		CHECK(halves >= 2 * due_ms[i] - 1 && halves <= 2 * due_ms[i] + 1);
		CHECK(one(PGR_CALL) && one(PGR_CALL)->retransmissions == i + 1 &&
		      (one(PGR_CALL)->flags & PGR_FLAG_ASK) && one(PGR_CALL)->sequence == 1);
	}
	/* Karn: no round-trip time from a call that was repeated, whichever sending was answered. */
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	head = result_of(10);
	put(&head, pattern);
	CHECK(t.done == 1 && stats()->rto_ns == 0);
	for (unsigned int i = 0; i < 64; i++) {
		call(10, 0);
		head = result_of(10);
		pass(12 * MS);
		CHECK(t.seen_count == 2);
		put(&head, pattern);
		CHECK(t.done == 1 && stats()->rto_ns == 0);
	}
	/* From one that was not: RFC 6298, of a sample of 4 ms: 4 + 4 * 2. */
	for (unsigned int i = 0; i < 8; i++) {
		call(10, 0);
		head = result_of(10);
		pass(4 * MS);
		put(&head, pattern);
	}
	CHECK(stats()->rto_ns == 12 * MS);
	/* An answer that repeats another count than that of the call is no sample. */
	for (unsigned int i = 0; i < 8; i++) {
		call(10, 0);
		head = result_of(10);
		head.retransmissions = 1;
		pass(MS);
		put(&head, pattern);
	}
	CHECK(stats()->rto_ns == 12 * MS);
	/* Silence: given up after the give-up time, with at least forty tries in it. */
	call(10, 0);
	for (waited_ms = 0, tries = 0; !t.done && waited_ms < 11000; waited_ms++)
		pass(MS);
	tries = t.seen_count;
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP && waited_ms >= 9999 && waited_ms <= 10010 &&
	      tries >= 40 && tries < 60);
	/* What comes after that is dropped. */
	head = result_of(10);
	put(&head, pattern);
	CHECK(t.done == 1 && silent());
}

/* The first sample is not the time of two exchanges. */
static void test_client_first_sample(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	call(10, 0);
	pass(4 * MS);
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	pass(4 * MS);
	head = result_of(10);
	put(&head, pattern);
	/* one exchange took 4 ms, not 8 */
	CHECK(t.done == 1 && (stats()->rto_ns == 0 || stats()->rto_ns == 12 * MS));
}

static void test_client_alive(void)
{
	struct pgr_header head;
	unsigned int probes = 0;

	open_endpoint(NULL);
	meet_server();
	call(10, 0);
	/* The server says that it executes the call: from then on it is asked, not told; it may take as long
	 * as it likes. */
	pass(11 * MS);
	CHECK(t.seen_count >= 2 && t.seen[1].packet.head.type == PGR_CALL);
	for (unsigned int i = 0; i < 300; i++) {
		head = answer_of(PGR_ALIVE);
		put(&head, NULL);
		pass(100 * MS);
		for (unsigned int j = 0; j < t.seen_count; j++)
			probes += t.seen[j].packet.head.type == PGR_PROBE;
		CHECK(t.seen_count && probes && t.seen[0].packet.head.type == PGR_PROBE &&
		      (t.seen[0].packet.head.flags & PGR_FLAG_ASK) && t.done == 0);
	}
	/* Not in haste. */
	CHECK(probes < 300 * 6);
	/* Silence from now on: given up. */
	pass(9 * SECOND);
	CHECK(t.done == 0);
	pass(SECOND + 10 * MS);
	CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP);
	/* It has not got the call (nack of packet 0 with nothing): said again, as a call. */
	call(10, 0);
	pass(11 * MS);
	head = answer_of(PGR_ALIVE);
	put(&head, NULL);
	head = answer_of(PGR_NACK);
	put(&head, NULL);
	CHECK(one(PGR_CALL) != NULL);
	head = result_of(1);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK);
}

/* Answers `count` further calls; returns how often the call in `slot` was repeated meanwhile. */
static unsigned int overtake(uint16_t slot, unsigned int count)
{
	unsigned int repeated = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct pgr_header head;

		call(8, 0);
		head = result_of(8);
		CHECK(head.slot != slot);
		put(&head, pattern);
		for (unsigned int k = 0; k < t.seen_count; k++)
			repeated += t.seen[k].packet.head.type == PGR_CALL &&
				    t.seen[k].packet.head.slot == slot &&
				    (t.seen[k].packet.head.flags & PGR_FLAG_ASK);
	}
	return repeated;
}

/* A call is repeated before its time-out where later ones are answered: a few times, and not in a hurry. */
static void test_client_overtaken(void)
{
	struct pgr_header first, head;
	uint16_t slot;

	open_endpoint(NULL);
	meet_server();
	call(10, 0);
	first = result_of(10);
	slot = first.slot;
	CHECK(overtake(slot, PGR_REORDER_CALLS - 1) == 0);
	CHECK(overtake(slot, PGR_REORDER_CALLS) == 1);
	CHECK(overtake(slot, 20 * PGR_REORDER_CALLS) == PGR_HURRIES_MAX - 1);
	/* After that the clock decides, and an answer is an answer. */
	put(&first, pattern);
	CHECK(t.done == 2 && silent());
	/* A server that says that it executes the call is believed. */
	call(10, 0);
	first = result_of(10);
	head = answer_of(PGR_ALIVE);
	put(&head, NULL);
	CHECK(overtake(first.slot, 20 * PGR_REORDER_CALLS) == 0);
	put(&first, pattern);
	CHECK(t.done == 2);
}

static void test_client_rejects(void)
{
	static const struct {
		enum pgr_reject reason;
		int code;
	} reasons[] = {
		{PGR_REJECT_PROCEDURE, PGR_E_PROCEDURE}, {PGR_REJECT_UNUSED, PGR_E_REFUSED},
		{PGR_REJECT_TOO_LARGE, PGR_E_TOO_LARGE}, {PGR_REJECT_NOT_AUTHORISED, PGR_E_REFUSED},
		{PGR_REJECT_FAILED, FAIL_CODE},
	};
	struct pgr_header head;

	open_endpoint(NULL);
	meet_server();
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
	meet_server();
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
	meet_server();
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

static void test_client_parts(void)
{
	const uint32_t bytes = LONG_BYTES;
	struct pgr_header head;
	uint8_t bitmap[PGR_NACK_BITMAP_BYTES];
	uint32_t most = 0;

	open_endpoint(NULL);
	/* To an unknown server one packet goes, not all. */
	call(bytes, 0);
	CHECK(one(PGR_CALL) && one(PGR_CALL)->packet_number == 0 && one(PGR_CALL)->message_bytes == bytes);
	head = challenge_of(0, COOKIE);
	put(&head, NULL);
	/* Then all that credits allow, each once; the last asks. */
	CHECK(t.seen_count == LONG_PACKETS);
	for (unsigned int i = 0; i < t.seen_count; i++)
		CHECK(t.seen[i].packet.head.packet_number == i &&
		      !(t.seen[i].packet.head.flags & PGR_FLAG_ASK) == (i < LONG_PACKETS - 1) &&
		      !memcmp(t.seen[i].packet.data, pattern + i * DATA_BYTES,
			      t.seen[i].packet.head.data_bytes));
	/* A hole: 4 and 7 are missing. Sent again, in order, once; the last asks. */
	head = answer_of(PGR_NACK);
	head.packet_number = 4;
	head.data_bytes = 2;
	bitmap[0] = 0xff & ~4u;
	bitmap[1] = 0x7f;
	put(&head, bitmap);
	CHECK(t.seen_count == 2 && t.seen[0].packet.head.packet_number == 4 &&
	      t.seen[1].packet.head.packet_number == 7 && (t.seen[1].packet.head.flags & PGR_FLAG_ASK));
	/* The same report again: they are under way already. */
	put(&head, bitmap);
	CHECK(silent());
	/* It has them. The result acknowledges the rest. */
	head = answer_of(PGR_ACK);
	head.packet_number = LONG_PACKETS;
	put(&head, NULL);
	CHECK(silent() && t.peer->under_way == 0);
	/* All arrived, no result: probes, not packets. */
	pass(300 * MS);
	CHECK(t.seen_count && t.seen[t.seen_count - 1].packet.head.type == PGR_PROBE);
	head = result_of(1);
	put(&head, pattern);
	CHECK(t.done == 1 && t.code == PGR_OK && t.peer->under_way == 0);
	/* Never more under way than granted, over all calls; what waits goes on when there is room. */
	call(8, 0);
	head = result_of(8);
	head.credits = 6;
	put(&head, pattern);
	call(bytes, 0);
	CHECK(t.seen_count == 6);
	t.done = 0;
	for (uint32_t i = 2; i <= LONG_PACKETS; i += 2) {
		head = answer_of(PGR_ACK);
		head.credits = 6;
		head.packet_number = i;
		put(&head, NULL);
		CHECK(t.peer->under_way <= 6 && t.seen_count <= 2);
		most = t.peer->under_way > most ? t.peer->under_way : most;
	}
	CHECK(most == 6 && t.peer->under_way == 0);
	for (unsigned int i = 0; i < 10; i++)
		call(8, 0);
	CHECK(t.peer->under_way == 6);
	/* While the result of one frees a credit, another one goes out. */
	t.seen_count = 0;
	pass(11 * MS);
	CHECK(t.peer->under_way <= 6);
	/* Fewer are granted: fewer are under way in the end. */
	{
		struct pgr_peer *peer = t.peer;

		for (unsigned int i = 0; i < 2000 && peer->free != UINT64_MAX; i++) {
			for (unsigned int slot = 0; slot < PGR_SLOTS; slot++) {
				if (peer->slots[slot].state != PGR_SLOT_CALLING)
					continue;
				head = (struct pgr_header){.type = PGR_RESULT,
							   .flags = PGR_OWN_ORDER,
							   .version = PGR_VERSION,
							   .slot = (uint16_t)slot,
							   .credits = 2,
							   .client = peer->client,
							   .sequence = peer->slots[slot].sequence,
							   .incarnation = INCARNATION};
				put(&head, NULL);
				CHECK(peer->under_way <= 6 && t.seen_count <= 2);
			}
			pass(MS);
			CHECK(peer->credits == 2 && peer->under_way <= 6);
		}
		CHECK(peer->free == UINT64_MAX && peer->under_way == 0 && peer->queued == 0);
	}
}

static void test_client_lost_parts(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	meet_server();
	/* All of a burst is lost: after the time-out its last packet, with ask. */
	call(LONG_BYTES, 0);
	CHECK(t.seen_count == LONG_PACKETS);
	t.seen_count = 0;
	pass(21 * MS);
	CHECK(t.seen_count && t.seen[0].packet.head.packet_number == LONG_PACKETS - 1 &&
	      (t.seen[0].packet.head.flags & PGR_FLAG_ASK) && t.seen[0].packet.head.retransmissions == 1);
	/* The answer shows what is missing: all goes again that was sent before. */
	{
		uint8_t bitmap[PGR_NACK_BITMAP_BYTES] = {0};

		head = answer_of(PGR_NACK);
		head.data_bytes = 3;
		bitmap[(LONG_PACKETS - 2) / 8] = 1u << (LONG_PACKETS - 2) % 8;
		put(&head, bitmap);
		CHECK(t.seen_count == LONG_PACKETS - 1 && t.seen[0].packet.head.packet_number == 0 &&
		      t.peer->under_way == LONG_PACKETS - 1);
	}
	/* Lies: packets never sent, an ack beyond the end, a nack of the whole, bitmaps beyond the end. */
	call(LONG_BYTES, 0); /* in another slot; there are credits for a part of it */
	CHECK(t.seen_count == CREDITS - (LONG_PACKETS - 1));
	for (unsigned int i = 0; i < 4; i++) {
		uint8_t bitmap[PGR_NACK_BITMAP_BYTES];
		const uint32_t numbers[] = {t.seen_count + 1, LONG_PACKETS + 1, UINT32_MAX, UINT32_MAX - 511};
		const struct pgr_header last = answer_of(PGR_ACK);

		memset(bitmap, 0xff, sizeof(bitmap));
		for (unsigned int j = 0; j < 3; j++) {
			uint8_t packet[PACKET_BYTES];
			const unsigned int before = t.seen_count;

			head = last;
			head.packet_number = numbers[i];
			head.type = j ? PGR_NACK : PGR_ACK;
			head.data_bytes = j == 2 ? sizeof(bitmap) : 0;
			put_raw(FAR, packet, make(&head, 0, bitmap, packet));
			CHECK(t.seen_count == before && t.done == 0 && t.peer->under_way == CREDITS);
		}
	}
}

/* What is late makes the client begin again; it believes the server that more has arrived than it has sent
 * since. */
static void test_client_begins_again(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	meet_server();
	call(8, 0);
	head = result_of(8);
	head.credits = 6;
	put(&head, pattern);
	call(LONG_BYTES, 0);
	CHECK(t.seen_count == 6);
	head = answer_of(PGR_ACK);
	head.credits = 6;
	head.packet_number = 6;
	put(&head, NULL);
	CHECK(t.seen_count == 6 && t.seen[5].packet.head.packet_number == 11);
	/* A challenge is late: the server has something of the call. */
	head = challenge_of(INCARNATION, COOKIE);
	put(&head, NULL);
	CHECK(silent() && t.peer->under_way == 6);
	/* So is busy, but that cannot be known; it is not answered at once, though there is more to send. */
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_BUSY;
	head.credits = 6;
	put(&head, NULL);
	CHECK(silent() && t.peer->under_way == 0);
	pass(5 * MS);
	CHECK(t.seen_count >= 6 && t.seen[0].packet.head.packet_number == 0 &&
	      t.seen[5].packet.head.packet_number == 5);
	/* All twelve are there: on with the next, not from the beginning for ever. */
	head = answer_of(PGR_ACK);
	head.credits = 6;
	head.packet_number = 12;
	put(&head, NULL);
	CHECK(t.seen_count == 6 && t.seen[0].packet.head.packet_number == 12 && t.peer->under_way == 6);
	/* More than that was never sent. */
	head.packet_number = 19;
	put(&head, NULL);
	CHECK(silent() && t.peer->under_way == 6);
	head.packet_number = 18;
	put(&head, NULL);
	CHECK(t.seen_count == 2 && t.peer->under_way == 2);
}

/* A packet of a result in parts. */
static void put_result(const struct pgr_header *head, uint32_t number, uint8_t flags)
{
	struct pgr_header one_part = *head;

	part(&one_part, head->message_bytes, number);
	one_part.flags |= flags;
	put(&one_part, pattern + (size_t)number * DATA_BYTES);
}

static void test_client_long_result(void)
{
	struct pgr_header head, other;
	const uint32_t bytes = 5 * DATA_BYTES - 9;

	for (unsigned int lent = 0; lent < 2; lent++) {
		open_endpoint(NULL);
		meet_server();
		call(10, lent ? 0 : bytes + 10);
		head = result_of(bytes);
		/* Any order, each once; ask is answered. */
		put_result(&head, 3, 0);
		CHECK(silent());
		put_result(&head, 0, PGR_FLAG_ASK);
		CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1 && one(PGR_NACK)->data_bytes == 1 &&
		      t.seen[0].packet.data[0] == 2 && (one(PGR_NACK)->flags & PGR_FLAG_OF_RESULT));
		put_result(&head, 0, PGR_FLAG_ASK);
		CHECK(one(PGR_NACK) && one(PGR_NACK)->packet_number == 1);
		/* Of another length, cut otherwise, or all at once: dropped. */
		other = head;
		other.message_bytes++;
		put_result(&other, 1, 0);
		other = head;
		other.packet_bytes = other.data_bytes = DATA_BYTES - 8;
		other.packet_number = 1;
		put(&other, pattern);
		other = result_of(20);
		put(&other, pattern);
		other = result_of(0);
		put(&other, pattern);
		CHECK(silent() && t.done == 0);
		/* Late words that concern the call: a challenge, busy, what came of the arguments. */
		other = challenge_of(INCARNATION, COOKIE);
		put(&other, NULL);
		CHECK(silent() && t.done == 0);
		other = answer_of(PGR_REJECT);
		other.procedure = PGR_REJECT_BUSY;
		put(&other, NULL);
		other = answer_of(PGR_NACK);
		put(&other, NULL);
		other = answer_of(PGR_ACK);
		put(&other, NULL);
		other = answer_of(PGR_ALIVE);
		put(&other, NULL);
		CHECK(silent() && t.done == 0);
		/* Nothing more comes: the client says what it has. */
		pass(300 * MS);
		CHECK(t.seen_count && t.seen[0].packet.head.type == PGR_NACK &&
		      t.seen[0].packet.head.packet_number == 1 && t.seen[0].packet.head.retransmissions > 0);
		put_result(&head, 4, 0);
		put_result(&head, 2, 0);
		CHECK(silent());
		put_result(&head, 1, 0);
		/* Whole: acknowledged at once, so that the server's procedure has its buffers back. */
		CHECK(one(PGR_ACK) && one(PGR_ACK)->packet_number == 5 &&
		      (one(PGR_ACK)->flags & PGR_FLAG_OF_RESULT));
		CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == bytes &&
		      !memcmp(lent ? t.result : t.out, pattern, bytes));
		t.seen_count = 0;
		pass(50 * MS);
		CHECK(silent());
		close_endpoint();
	}
}

static void test_client_too_large(void)
{
	const struct pgr_config config = {.message_bytes_max = 3000};
	struct pgr_header head;
	const struct pgr_iov iov = {pattern, 3001};

	open_endpoint(&config);
	meet_server();
	/* Over the limit: not sent. */
	CHECK(pgr_call(t.peer, ECHO, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_E_TOO_LARGE &&
	      silent());
	/* A result over the limit, or longer than the buffers: the call ends; the server need not keep it. */
	call(10, 0);
	head = result_of(3001);
	put_result(&head, 2, PGR_FLAG_ASK);
	CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
	CHECK(one(PGR_ACK) && one(PGR_ACK)->packet_number == 7);
	call(10, 2000);
	head = result_of(2001);
	put_result(&head, 2, 0);
	CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
	CHECK(one(PGR_ACK) && one(PGR_ACK)->packet_number == 5);
	call(10, 0);
	head = result_of(PGR_PACKETS_MAX * DATA_BYTES);
	put_result(&head, 9, 0);
	CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
	/* As long as the limit: taken. */
	call(10, 0);
	head = result_of(3000);
	for (uint32_t i = 0; i < 7; i++)
		put_result(&head, i, 0);
	CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 3000);
}

static void test_client_byte_order(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	meet_server();
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

static void test_client_delegated(void)
{
	struct pgr_header head, wrong;

	open_endpoint(NULL);
	meet_server();
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

static void test_client_unbind(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	meet_server();
	call(10, 0);
	head = result_of(10);
	put(&head, pattern);
	call(10, 0);
	t.pgr->peers->unacked |= 2; /* as if another slot had a result that is not acknowledged */
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
		meet_server();
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
		CHECK(t.done == 4 && t.code == (i == 2 ? PGR_E_GIVE_UP : PGR_E_CLOSED) && !t.pgr->peers &&
		      !t.pgr->peers_count);
		/* The same server again is another binding. */
		CHECK(pgr_bind(t.pgr, far.bytes, sizeof(far.bytes), &t.peer) == PGR_OK);
		meet_server();
		CHECK(t.peer->slots[0].sequence == 1);
		close_endpoint();
	}
}

static void test_client_corrupt(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";
	uint8_t packet[PACKET_BYTES];
	struct pgr_header head;
	size_t bytes;

	for (unsigned int keyed = 0; keyed < 2; keyed++) {
		open_endpoint(&(struct pgr_config){.key = keyed ? key : NULL});
		meet_server();
		call(10, 100);
		head = result_of(40);
		bytes = make(&head, 0, pattern, packet);
		t.executed = 0;
		cut(packet, bytes);
		for (size_t bit = 0; keyed && bit < bytes * 8; bit++) {
			const uint64_t dropped = t.pgr->stats.packets_dropped;

			packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
			put_raw(FAR, packet, bytes);
			packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (!CHECK(silent() && t.done == 0 && t.pgr->stats.packets_dropped == dropped + 1))
				break;
		}
		put_raw(FAR, packet, bytes);
		CHECK(t.done == 1 && t.code == PGR_OK && !memcmp(t.out, pattern, 40));
		close_endpoint();
	}
}

static void test_client_hostile(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	meet_server();
	call(10, 100);
	head = result_of(5 * DATA_BYTES - 9);
	refused(&head);
	/* Anything in every field, from the server itself and from others: each call still has one event. */
	for (unsigned int i = 0; i < 50000; i++) {
		const struct pgr_slot *slot = &t.peer->slots[net_random(4)];

		if (t.peer->free & 1) {
			const uint32_t bytes = net_random(3) ? 10 : LONG_BYTES;

			t.done = 0;
			call(bytes, net_random(2) * 2000);
			t.seen_count = 0;
		}
		head = (struct pgr_header){
			.type = (uint8_t)(1 + net_random(PGR_TYPES_END - 1)),
			.flags = (uint8_t)(net_random(128) & ~(uint32_t)(PGR_FLAG_KEYED | PGR_FLAG_COOKIE)),
			.version = PGR_VERSION,
			.retransmissions = (uint8_t)net_random(4),
			.slot = slot->number,
			.credits = (uint16_t)(net_random(4) ? 0 : net_random(65536)),
			.client = t.peer->client,
			.sequence = slot->sequence + (net_random(8) ? 0 : net_random(3) - 1),
			.incarnation = net_random(16) ? slot->claimed : net_random(4),
			.procedure = net_random(4) ? slot->claimed : net_random(10),
			.message_bytes =
				net_random(4) ? 1 + net_random(5 * DATA_BYTES) : net_random(UINT32_MAX),
			.packet_bytes = net_random(8) ? DATA_BYTES : net_random(UINT32_MAX),
			.packet_number = net_random(4) ? net_random(6) : net_random(UINT32_MAX),
		};
		if (head.type == PGR_RESULT && head.packet_bytes == DATA_BYTES &&
		    head.message_bytes < 10000 && head.packet_number * DATA_BYTES < head.message_bytes &&
		    net_random(8))
			part(&head, head.message_bytes, head.packet_number);
		else
			head.data_bytes = net_random(DATA_BYTES);
		put_from(net_random(4) ? FAR : OTHER, &head, 0, pattern);
		if (!CHECK(t.done <= 1 && t.seen_count < 1000 && t.peer->under_way < 100000))
			break;
		if (!net_random(16))
			pass(net_random(40) * MS);
	}
	/* And in the end all of them end. */
	t.seen_count = 0;
	for (unsigned int i = 0; i < 30 && t.peer->free != UINT64_MAX; i++) {
		pass(SECOND);
		t.seen_count = 0;
	}
	CHECK(t.peer->free == UINT64_MAX && t.peer->under_way == 0);
}

/* ---- a wire that loses nothing, where the usual call goes a shorter way ---- */

static void test_reliable_server(void)
{
	const struct pgr_iov iov = {pattern, 20};
	struct pgr_header head;
	struct pgr_token kept;

	t.reliable = true;
	open_endpoint(NULL);
	make_known();
	/* In order: executed, answered, nothing kept. The second is one of those that go the short way. */
	for (uint64_t i = 1; i < 5; i++) {
		put_call(i, ECHO, 100, 0);
		CHECK(one(PGR_RESULT) && one(PGR_RESULT)->sequence == i &&
		      one(PGR_RESULT)->data_bytes == 100 &&
		      one(PGR_RESULT)->incarnation == t.pgr->incarnation && one(PGR_RESULT)->slot == 5 &&
		      !memcmp(t.seen[0].packet.data, pattern, 100));
		CHECK(t.executed == i && t.args_bytes == 100 &&
		      stats()->pool_bytes == sizeof(struct pgr_work));
	}
	/* Past and again: dropped. Of another incarnation or address: challenged. */
	put_call(4, ECHO, 100, 0);
	CHECK(silent());
	put_call(3, ECHO, 100, 0);
	CHECK(silent() && t.executed == 4);
	head = call_of(5, ECHO, 100);
	head.incarnation ^= 1;
	put(&head, pattern);
	CHECK(one(PGR_CHALLENGE) != NULL);
	head.incarnation ^= 1;
	put_from(OTHER, &head, 0, pattern);
	CHECK(one(PGR_CHALLENGE) && t.executed == 4);
	/* Another client, another procedure, none at all, a failure. */
	make_known_as(CLIENT + 1, OTHER);
	t.executed = 4;
	head.client++;
	put_from(OTHER, &head, 0, pattern);
	CHECK(one(PGR_RESULT) && one(PGR_RESULT)->client == CLIENT + 1 && is_at(&t.seen[0].to, OTHER));
	put_call(5, ECHO, 100, 0);
	CHECK(one(PGR_RESULT) && one(PGR_RESULT)->client == CLIENT && is_at(&t.seen[0].to, FAR));
	for (unsigned int i = 0; i < 2; i++) {
		put_call(6, NONE, 100, 0);
		CHECK(one_reject(PGR_REJECT_PROCEDURE) && t.executed == 6);
	}
	for (uint64_t i = 6; i < 9; i++) {
		put_call(i, FAIL, 100, 0);
		CHECK(one_reject(PGR_REJECT_FAILED));
	}
	/* Later: alive meanwhile; a newer call of another slot does not touch it, nor does its token. */
	put_call(9, LATER, 10, 0);
	put_call(10, LATER, 10, 0);
	kept = t.token;
	CHECK(silent() && t.executed == 11);
	put_bare(PGR_PROBE, 10, 0);
	CHECK(one(PGR_ALIVE) != NULL);
	head = call_of(1, ECHO, 7);
	for (head.slot = 6; head.slot < 9; head.slot++) {
		put(&head, pattern);
		CHECK(one(PGR_RESULT) && one(PGR_RESULT)->data_bytes == 7);
		/* that call's token is used up */
		t.seen_count = 0;
		CHECK(pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL) == PGR_OK && silent());
	}
	CHECK(pgr_reply(t.pgr, &kept, &iov, 1, 0, NULL, NULL) == PGR_OK && one(PGR_RESULT) &&
	      one(PGR_RESULT)->sequence == 10 && one(PGR_RESULT)->data_bytes == 20);
	t.seen_count = 0;
	CHECK(pgr_reply(t.pgr, &kept, &iov, 1, 0, NULL, NULL) == PGR_OK && silent());
	/* A long result, at once and whole; then the buffers are free. */
	put_call(11, LONG, 0, 0);
	CHECK(t.seen_count == LONG_PACKETS);
}

/* On that wire too: what is no packet. */
static void test_reliable_hostile(void)
{
	struct pgr_header head;
	uint8_t packet[PACKET_BYTES];

	t.reliable = true;
	open_endpoint(NULL);
	make_known();
	head = call_of(1, ECHO, 5 * DATA_BYTES - 9);
	refused(&head);
	head = call_of(1, ECHO, 60);
	cut(packet, make(&head, 0, pattern, packet));
	/* once more, when all is ready for the short way */
	for (uint64_t i = 1; i < 4; i++) {
		put_call(i, ECHO, 60, 0);
		CHECK(one(PGR_RESULT) != NULL);
	}
	put_bare(PGR_ACK, 3, 1);
	t.executed = 0;
	head = call_of(4, ECHO, 60);
	cut(packet, make(&head, 0, pattern, packet));
	put(&head, pattern);
	CHECK(one(PGR_RESULT) && t.executed == 1);
}

static void test_reliable_client(void)
{
	struct pgr_header head, other;

	t.reliable = true;
	open_endpoint(NULL);
	meet_server();
	for (unsigned int i = 0; i < 3; i++) {
		/* There and back, whatever is wrong dropped. */
		call(10, 100);
		CHECK(one(PGR_CALL) && one(PGR_CALL)->data_bytes == 10 &&
		      !(one(PGR_CALL)->flags & PGR_FLAG_ASK));
		head = result_of(20);
		for (unsigned int j = 0; j < 6; j++) {
			other = head;
			other.sequence += j == 0 ? UINT64_MAX : j == 1;
			other.slot = (uint16_t)(other.slot + (j == 2));
			other.client ^= j == 3;
			other.incarnation ^= j == 4;
			put_from(j == 5 ? OTHER : FAR, &other, 0, pattern);
			CHECK(silent() && t.done == 0);
		}
		put(&head, pattern);
		CHECK(silent() && t.done == 1 && t.code == PGR_OK && t.result_bytes == 20 &&
		      !memcmp(t.out, pattern, 20));
		put(&head, pattern);
		CHECK(t.done == 1);
		/* Longer than the buffers. */
		call(10, 19);
		head = result_of(20);
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_E_TOO_LARGE);
		/* The server forgot us: the same call again, with a cookie. */
		call(60, 0);
		head = challenge_of(INCARNATION, COOKIE);
		put(&head, NULL);
		CHECK(one(PGR_CALL) && t.seen[0].packet.cookie == COOKIE && one(PGR_CALL)->data_bytes == 60 &&
		      !memcmp(t.seen[0].packet.data, pattern, 60));
		head = result_of(20);
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK && !memcmp(t.result, pattern, 20));
		/* It was busy: the same call again, later; and it may say that it has not got it. */
		call(70, 0);
		head = answer_of(PGR_REJECT);
		head.procedure = PGR_REJECT_BUSY;
		put(&head, NULL);
		CHECK(silent() && t.done == 0);
		pass(600 * MS);
		CHECK(t.seen_count == 1);
		if (one(PGR_PROBE)) {
			head = answer_of(PGR_NACK);
			put(&head, NULL);
		}
		CHECK(one(PGR_CALL) && one(PGR_CALL)->data_bytes == 70 &&
		      !memcmp(t.seen[0].packet.data, pattern, 70));
		head = result_of(20);
		put(&head, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK && t.peer->under_way == 0);
		/* Silence: it is asked about now and then, then given up. */
		call(10, 0);
		t.seen_count = 0;
		pass(9 * SECOND);
		CHECK(t.done == 0 && t.seen_count >= 10 && t.seen[0].packet.head.type == PGR_PROBE);
		pass(2 * SECOND);
		CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP);
		t.seen_count = 0;
	}
}

/* A slot that passed a call on is an ordinary one afterwards. */
static void test_reliable_delegating(void)
{
	struct pgr_header head, result;

	t.reliable = true;
	open_endpoint(NULL);
	meet_server();
	make_known_as(CLIENT, THIRD);
	for (uint64_t i = 1; i < 4; i++) {
		head = call_of(i, PASS, 30);
		put_from(THIRD, &head, 0, pattern);
		if (!CHECK(one(PGR_CALL) && (one(PGR_CALL)->flags & PGR_FLAG_DELEGATED)))
			return;
		result = result_of(0);
		put(&result, NULL);
		CHECK(silent() && t.executed == i);
		call(10, 0);
		CHECK(one(PGR_CALL) && !(one(PGR_CALL)->flags & PGR_FLAG_DELEGATED));
		result = result_of(8);
		put(&result, pattern);
		CHECK(t.done == 1 && t.code == PGR_OK && t.result_bytes == 8);
	}
	/* outstanding when the endpoint is closed; the argument is none that it may free */
	CHECK(pgr_call(t.peer, ECHO, NULL, NULL, 0, NULL, 0, 0, on_done, &t) == PGR_QUEUED);
}

/* ---- three of them ---- */

static struct pgr *open_plain(uint16_t port)
{
	const struct pgr_config config = {.bytes = sizeof(config), .port_first = port, .port_last = port};
	struct pgr *pgr = NULL;

	if (pgr_open_on(&pgr_wire_net, &config, &pgr) != PGR_OK)
		abort();
	pgr_serve(pgr, ECHO, NULL, on_echo, NULL);
	pgr_serve(pgr, PASS, NULL, on_pass, NULL);
	return pgr;
}

static struct pgr_peer *bind_plain(struct pgr *pgr, uint32_t port)
{
	const struct pgr_to to = address(port);
	struct pgr_peer *peer = NULL;

	if (pgr_bind(pgr, to.bytes, sizeof(to.bytes), &peer) != PGR_OK)
		abort();
	return peer;
}

/* The server to which a call was passed on dies: before, and after it had the call. */
static void test_delegated_to_the_dead(void)
{
	for (unsigned int after = 0; after < 2; after++) {
		struct pgr *all[3] = {open_plain(1), open_plain(2), open_plain(3)};
		struct pgr_peer *peer = bind_plain(all[0], 2);
		const struct pgr_iov iov = {pattern, 10};
		uint64_t begun_ns;

		t.peer = bind_plain(all[1], 3);
		t.done = t.executed = 0;
		net_cut(all[2], !after);
		/* all three know each other, if they can */
		for (unsigned int i = 0; i < 2; i++) {
			begun_ns = net_now_ns();
			t.done = 0;
			CHECK(pgr_call(peer, PASS, NULL, &iov, 1, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
			while (!t.done && net_now_ns() - begun_ns < 40 * SECOND)
				net_step(all, 3);
			if (!after)
				break;
			CHECK(t.done == 1 && (i || (t.code == PGR_OK && t.result_bytes == 10)));
			net_cut(all[2], true);
		}
		/* The one before says alive until its own give-up time; then the caller's begins. */
		CHECK(t.done == 1 && t.code == PGR_E_GIVE_UP && net_now_ns() - begun_ns >= 10 * SECOND &&
		      net_now_ns() - begun_ns <= 21 * SECOND);
		for (unsigned int i = 0; i < 3; i++)
			pgr_close(all[i]);
		net_reset(1, PACKET_BYTES);
	}
}

/* There, too, a call of an unlike machine is told from one of a machine alike, which goes the short way. */
static void test_reliable_byte_order(void)
{
	struct pgr_header head;

	t.reliable = true;
	open_endpoint(NULL);
	make_known();
	for (uint64_t i = 1; i < 7; i++) {
		const bool alike = i % 2;

		head = call_of(i, TYPED, sizeof(plain));
		head.flags = alike ? PGR_OWN_ORDER : PGR_FLAG_BIG_ENDIAN ^ PGR_OWN_ORDER;
		put(&head, alike ? own : unlike);
		CHECK(t.executed == i && t.args_bytes == sizeof(plain) &&
		      !memcmp(t.args, own, sizeof(plain)));
		CHECK(t.short_way == (alike && i > 1)); /* the first one finds the procedure */
		CHECK(one(PGR_RESULT) && one(PGR_RESULT)->flags == PGR_OWN_ORDER &&
		      !memcmp(t.seen[0].packet.data, own, sizeof(plain)));
	}
}

/* ---- bytes ---- */

/* Header and extensions byte by byte as PROTOCOL.md says, whatever the byte order of this machine. */
static void test_layout(void)
{
	static const struct pgr_header head = {
		.type = 1,
		.flags = 2, /* that of the cookie, too */
		.version = 3,
		.retransmissions = 4,
		.slot = 0x0605,
		.credits = 0x0807,
		.client = UINT64_C(0x100f0e0d0c0b0a09),
		.sequence = UINT64_C(0x1817161514131211),
		.incarnation = 0x1c1b1a19,
		.procedure = 0x201f1e1d,
		.message_bytes = 0x24232221,
		.packet_number = 0x28272625,
		.data_bytes = 0x2c2b2a29,
		.packet_bytes = 0x302f2e2d,
	};
	const uint64_t cookie = UINT64_C(0x3837363534333231);
	const struct pgr_line line = pgr_line_of(head);
	uint8_t packet[PACKET_BYTES], at[sizeof(line)];
	struct pgr_header back;

	CHECK(pgr_packet_write(&head, cookie, NULL, NULL, packet) == 56);
	memcpy(at, &line, sizeof(line));
	for (unsigned int i = 0; i < 56; i++)
		if (!CHECK(packet[i] == i + 1 && (i >= sizeof(at) || at[i] == i + 1)))
			printf("# byte %u\n", i);
	memcpy(&back, packet, sizeof(back));
	pgr_le_header(&back, &back);
	CHECK(!memcmp(&back, &head, sizeof(head)));
}

/* The check under a key, of a packet with a cookie and 5 bytes of data. */
static void test_check(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters",
			     right[] = {0x53, 0x7f, 0xa0, 0x4d, 0x3a, 0xe5, 0x2b, 0x2f};
	static const struct pgr_header head = {
		.type = PGR_CALL,
		.version = PGR_VERSION,
		.slot = 5,
		.credits = 0x0807,
		.client = CLIENT,
		.sequence = 9,
		.incarnation = INCARNATION,
		.procedure = ECHO,
		.message_bytes = 5,
		.data_bytes = 5,
		.packet_bytes = DATA_BYTES,
	};
	struct pgr_packet read;
	uint8_t packet[PACKET_BYTES];
	size_t bytes;

	t.key = key;
	bytes = make(&head, COOKIE, "abcde", packet);
	CHECK(bytes == 48 + 8 + 8 + 5 && !memcmp(packet + 56, right, sizeof(right)));
	CHECK(pgr_packet_read(packet, bytes, key, &read) && read.cookie == COOKIE &&
	      read.head.client == CLIENT && !memcmp(read.data, "abcde", 5));
}

/* pgr_packets_of for all that may be asked. */
static void test_packets_of(void)
{
	CHECK(pgr_packets_of(0, 0) == 1 && pgr_packets_of(0, 10) == 1);
	CHECK(pgr_packets_of(10, 10) == 1 && pgr_packets_of(11, 10) == 2 && pgr_packets_of(20, 10) == 2);
	CHECK(pgr_packets_of(UINT32_MAX, 1) == UINT32_MAX && pgr_packets_of(UINT32_MAX, UINT32_MAX) == 1);
	/* No number of packets of no bytes makes a message; it is no division by zero either. */
	CHECK(pgr_packets_of(1, 0) > PGR_PACKETS_MAX);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{"server: first contact", test_first_contact},
		{"server: epochs of cookies", test_cookie_epochs},
		{"server: first contact with a key", test_first_contact_keyed},
		{"server: the table of clients is full", test_table_full},
		{"server: a client at a new address", test_new_address},
		{"server: calls of one packet: past, in order, again, future", test_server_single},
		{"server: a procedure that takes long", test_server_executing},
		{"server: calls of several packets", test_server_parts},
		{"server: results of several packets", test_server_long_result},
		{"server: rejections", test_server_rejects},
		{"server: the pool is full", test_pool_full},
		{"server: a flood of strangers leaves no state", test_flood_unknown},
		{"server: a flood of known clients stays in the pool", test_flood_known},
		{"server: a restarted one executes no old call", test_server_restarted},
		{"server: what it forgets, and when", test_server_forgets},
		{"server: a token is consumed once", test_tokens},
		{"server: unlike byte order", test_server_byte_order},
		{"server: corrupt packets", test_server_corrupt},
		{"server: packets cut short or too long", test_server_truncated},
		{"server: hostile packets", test_server_hostile},
		{"server: the last of a delegated call", test_delegated_last},
		{"server: malformed delegated calls", test_delegated_malformed},
		{"server: passes a call on", test_delegated_on},
		{"server: between two others", test_delegated_through},
		{"client: first contact", test_client_first_contact},
		{"client: results of one packet", test_client_results},
		{"client: lost packets, round-trip times, giving up", test_client_lost},
		{"client: the first round-trip time", test_client_first_sample},
		{"client: a procedure that takes long", test_client_alive},
		{"client: a call that others overtake", test_client_overtaken},
		{"client: rejections", test_client_rejects},
		{"client: a busy server", test_client_busy},
		{"client: a restarted server", test_client_restarted},
		{"client: calls of several packets, credits", test_client_parts},
		{"client: a lost burst, lying reports", test_client_lost_parts},
		{"client: late words make it begin again", test_client_begins_again},
		{"client: results of several packets", test_client_long_result},
		{"client: messages over the limit", test_client_too_large},
		{"client: unlike byte order", test_client_byte_order},
		{"client: delegated results", test_client_delegated},
		{"client: a binding that ends", test_client_unbind},
		{"client: a binding that ends within", test_client_unbind_within},
		{"client: corrupt packets", test_client_corrupt},
		{"client: hostile packets", test_client_hostile},
		{"a wire that loses nothing: server", test_reliable_server},
		{"a wire that loses nothing: what is no packet", test_reliable_hostile},
		{"a wire that loses nothing: client", test_reliable_client},
		{"a wire that loses nothing: calls passed on", test_reliable_delegating},
		{"a wire that loses nothing: unlike byte order", test_reliable_byte_order},
		{"a call is passed on to a dead server", test_delegated_to_the_dead},
		{"the bytes of a header", test_layout},
		{"the bytes of a check", test_check},
		{"the number of packets", test_packets_of},
	};
	const unsigned int count = sizeof(tests) / sizeof(tests[0]);
	int status = 0;

	printf("TAP version 13\n1..%u\n", count);
	for (unsigned int i = 0; i < count; i++) {
		memset(&t, 0, sizeof(t));
		for (size_t j = 0; j < sizeof(pattern); j++)
			pattern[j] = (uint8_t)(j * 7 + (j >> 8) * 31 + 1);
		net_reset(i, PACKET_BYTES);
		t.good = true;
		tests[i].run();
		if (t.pgr)
			close_endpoint();
		printf("%s %u - %s\n", t.good ? "ok" : "not ok", i + 1, tests[i].name);
		fflush(stdout);
		status |= !t.good;
	}
	net_reset(1, PACKET_BYTES);
	return status;
}
