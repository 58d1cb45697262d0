/* SPDX-License-Identifier: BSD-3-Clause */
/* A server meets a client it does not know: challenge and cookie, epochs, a key, a full table, a new address. */
#include "hand.h"

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
	/* A packet without a check is no packet: refused, not even challenged. */
	t.key = NULL;
	put(&call, NULL);
	CHECK(one_reject(PGR_REJECT_NOT_AUTHORISED) && stats()->packets_dropped == 1);
	close_endpoint();
	/* Nor is one with a check to an endpoint without a key. */
	open_endpoint(NULL);
	t.seen_count = 0;
	put_raw(FAR, packet, bytes);
	CHECK(one_reject(PGR_REJECT_NOT_AUTHORISED) && stats()->packets_dropped == 1);
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

/* What the program was asked, and what it says. */
struct guest {
	unsigned int asked;
	uint64_t client;
	uint8_t address[PGR_ADDRESS_BYTES];
	void *before;
	bool refused;
};

static int on_contact(void *arg, uint64_t client, const void *at, void **client_data_inout)
{
	struct guest *guest = arg;

	guest->asked++;
	guest->client = client;
	memcpy(guest->address, at, sizeof(guest->address));
	guest->before = *client_data_inout;
	*client_data_inout = guest;
	return guest->refused;
}

/* The program is asked about who has proved where he is, and about nobody else. */
static void test_contact(void)
{
	const struct pgr_to far = address(FAR), other = address(OTHER);
	struct guest guest = {.refused = true};
	struct pgr_header call;
	uint64_t cookie;

	open_endpoint(NULL);
	pgr_on_contact(t.pgr, on_contact, &guest);
	call = call_of(1, ECHO, 10);
	put_from(FAR, &call, 0, pattern);
	if (!CHECK(one(PGR_CHALLENGE) && guest.asked == 0))
		return;
	cookie = cookie_in(&t.seen[0].packet.head);
	put_from(OTHER, &call, cookie, pattern);
	CHECK(one(PGR_CHALLENGE) && guest.asked == 0);
	for (unsigned int i = 1; i < 3; i++) {
		put_from(FAR, &call, cookie, pattern);
		CHECK(one_reject(PGR_REJECT_NOT_AUTHORISED) && guest.asked == i && t.executed == 0 &&
		      stats()->clients == 0);
	}
	CHECK(guest.client == CLIENT && !memcmp(guest.address, far.bytes, sizeof(far.bytes)) &&
	      !guest.before);
	/* welcome, and not asked about again */
	guest.refused = false;
	put_from(FAR, &call, cookie, pattern);
	CHECK(one(PGR_RESULT) && guest.asked == 3 && t.executed == 1 && t.pgr->recent->data == &guest);
	call = call_of(2, ECHO, 10);
	put_from(FAR, &call, 0, pattern);
	CHECK(one(PGR_RESULT) && guest.asked == 3 && t.executed == 2);
	/* but at another address, where he may be refused; what is known of him stays */
	for (unsigned int refused = 2; refused--;) {
		guest.refused = refused;
		call = call_of(3, ECHO, 10);
		put_from(OTHER, &call, 0, pattern);
		if (!CHECK(one(PGR_CHALLENGE) != NULL))
			return;
		put_from(OTHER, &call, cookie_in(&t.seen[0].packet.head), pattern);
		CHECK(refused ? one_reject(PGR_REJECT_NOT_AUTHORISED) : one(PGR_RESULT) != NULL);
		CHECK(guest.asked == 5 - refused && guest.before == &guest && t.executed == 3 - refused &&
		      !memcmp(guest.address, other.bytes, sizeof(other.bytes)) && stats()->clients == 1);
	}
	/* and when he had been forgotten */
	pass(60 * SECOND);
	CHECK(stats()->clients == 0);
	pgr_on_contact(t.pgr, NULL, NULL);
	make_known();
	CHECK(guest.asked == 5 && stats()->clients == 1 && !t.pgr->recent->data);
}

const struct protocol_test protocol_server_contact[] = {
	{"server: first contact", test_first_contact},
	{"server: epochs of cookies", test_cookie_epochs},
	{"server: first contact with a key", test_first_contact_keyed},
	{"server: the table of clients is full", test_table_full},
	{"server: a client at a new address", test_new_address},
	{"server: the program is asked who is welcome", test_contact},
	{NULL, NULL},
};
