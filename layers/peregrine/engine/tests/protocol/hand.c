/* SPDX-License-Identifier: BSD-3-Clause */
/* See hand.h. */
#include "hand.h"

struct test t;
uint8_t pattern[2 * LONG_BYTES];

bool check(bool holds, const char *file, int line, const char *what)
{
	if (!holds) {
		const char *name = strrchr(file, '/');

		printf("# %s:%d: %s\n", name ? name + 1 : file, line, what);
		t.good = false;
	}
	return holds;
}

/* ---- the endpoint and what is around it ---- */

struct pgr_to address(uint32_t number)
{
	struct pgr_to to = {{0}};

	memcpy(to.bytes, &number, sizeof(number));
	return to;
}

bool is_at(const struct pgr_to *to, uint32_t number)
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
	seen->refusal = !pgr_packet_read(seen->raw, bytes, t.key, &seen->packet);
	if (seen->refusal)
		CHECK(pgr_packet_fault(seen->raw, bytes, t.key, &seen->packet.head) != PGR_FAULT_JUNK &&
		      seen->packet.head.type == PGR_REJECT);
	else
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

void on_echo(void *arg, const struct pgr_request *request)
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

void on_pass(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {(void *)(uintptr_t)request->args, request->args_bytes};

	(void)arg;
	note(request);
	CHECK(pgr_delegate(t.peer, &request->token, ECHO, &iov, 1) == PGR_OK);
}

const struct pgr_signature signature = {SIGNATURE, SIGNATURE};

struct pgr_peer *bind_to(struct pgr *pgr, uint32_t number)
{
	const struct pgr_to to = address(number);
	struct pgr_peer *peer = NULL;

	if (pgr_bind(pgr, to.bytes, sizeof(to.bytes), &peer) != PGR_OK)
		abort();
	return peer;
}

void open_endpoint(const struct pgr_config *with)
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
	CHECK(pgr_delegations_from(t.pgr, far.bytes, sizeof(far.bytes), 1) == PGR_OK);
	net_watch(catch_packet, NULL);
}

void close_endpoint(void)
{
	pgr_close(t.pgr);
	t.pgr = NULL;
}

void pass(uint64_t ns)
{
	while (ns) {
		const uint64_t step_ns = ns < MS / 2 ? ns : MS / 2;

		net_pass_time(step_ns);
		pgr_poll(t.pgr);
		ns -= step_ns;
	}
}

const struct pgr_stats *stats(void)
{
	t.stats.bytes = sizeof(t.stats);
	pgr_stats(t.pgr, &t.stats);
	return &t.stats;
}

/* ---- packets by hand ---- */

void put_raw(uint32_t from, const void *packet, size_t bytes)
{
	const struct pgr_to at = address(from);

	net_inject(t.pgr, &at, packet, bytes);
	pgr_poll(t.pgr);
}

size_t make(const struct pgr_header *head, uint64_t cookie, const void *data, uint8_t *packet)
{
	const size_t bytes = pgr_packet_write(head, cookie, t.key, data, packet);

	if (data && head->data_bytes)
		memcpy(packet + bytes, data, head->data_bytes);
	return bytes + head->data_bytes;
}

const struct pgr_slot *slot_of(const struct pgr_peer *peer, unsigned int number)
{
	static struct pgr_slot fresh;

	fresh.number = (uint8_t)number;
	fresh.sequence = peer->sequence;
	return peer->slots[number] ? peer->slots[number] : &fresh;
}

/* As clients do: the first call of a slot has the cookie that the client was given, if any. */
static uint64_t own_cookie(uint32_t from, const struct pgr_header *head)
{
	const struct pgr_client *client = pgr_client_of(t.pgr, head->client);

	if (head->type != PGR_CALL || (client && client->slots[head->slot % PGR_SLOTS].sequence))
		return 0;
	for (unsigned int i = t.cookies_count; i-- > 0;)
		if (t.cookies[i].client == head->client && t.cookies[i].from == from)
			return t.cookies[i].cookie;
	return 0;
}

void put_from(uint32_t from, const struct pgr_header *head, uint64_t cookie, const void *data)
{
	uint8_t packet[PACKET_BYTES];

	if (!cookie)
		cookie = own_cookie(from, head);
	t.seen_count = 0;
	put_raw(from, packet, make(head, cookie, data, packet));
}

void put(const struct pgr_header *head, const void *data)
{
	put_from(FAR, head, 0, data);
}

const struct pgr_header *one(enum pgr_type type)
{
	return t.seen_count == 1 && t.seen[0].packet.head.type == type ? &t.seen[0].packet.head : NULL;
}

bool silent(void)
{
	return t.seen_count == 0;
}

bool one_reject(enum pgr_reject reason)
{
	return one(PGR_REJECT) && t.seen[0].packet.head.procedure == reason;
}

uint64_t cookie_in(const struct pgr_header *head)
{
	return (uint64_t)head->packet_number << 32 | head->message_bytes;
}

void part(struct pgr_header *head, uint32_t bytes, uint32_t number)
{
	const uint32_t at = number * DATA_BYTES;

	head->message_bytes = bytes;
	head->packet_bytes = DATA_BYTES;
	head->packet_number = number;
	head->data_bytes = bytes - at < DATA_BYTES ? bytes - at : DATA_BYTES;
}

struct pgr_header call_of(uint64_t sequence, uint32_t procedure, uint32_t bytes)
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

struct pgr_header bare_of(enum pgr_type type, uint64_t sequence)
{
	return (struct pgr_header){
		.type = (uint8_t)type,
		.flags = type == PGR_PROBE ? PGR_FLAG_ASK : PGR_FLAG_OF_RESULT,
		.version = PGR_VERSION,
		.slot = 5,
		.client = CLIENT,
		.sequence = sequence,
		.incarnation = t.pgr->incarnation,
		.packet_bytes = type == PGR_ACK || type == PGR_NACK ? DATA_BYTES : 0,
	};
}

void make_known_as(uint64_t client, uint32_t from)
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

void make_known(void)
{
	make_known_as(CLIENT, FAR);
}

void put_call(uint64_t sequence, uint32_t procedure, uint32_t bytes, uint8_t flags)
{
	struct pgr_header head = call_of(sequence, procedure, bytes);

	head.flags = flags;
	put(&head, pattern);
}

void put_part(uint64_t sequence, uint32_t procedure, uint32_t bytes, uint32_t number, uint8_t flags)
{
	struct pgr_header head = call_of(sequence, procedure, bytes);

	part(&head, bytes, number);
	head.flags = flags;
	put(&head, pattern + (size_t)number * DATA_BYTES);
}

void put_bare(enum pgr_type type, uint64_t sequence, uint32_t packet_number)
{
	struct pgr_header head = bare_of(type, sequence);

	head.packet_number = packet_number;
	put(&head, NULL);
}
