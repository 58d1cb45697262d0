/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many bindings, and many clients: what each costs in memory, that nothing walks the idle ones, and that the tables stay
 * right while bindings come and go. What it costs in instructions: bench/bindings.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../wires/shm_ring.h"
#include "support/net.h"

enum { ECHO = 1, MANY = 65536, FEW = 1000 };
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* Where a sanitizer is the allocator. */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static struct {
	struct pgr *server, *client;
	struct pgr_peer *peers[MANY];
	unsigned int executed, done, failed;
	uint16_t credits;
} t;
static bool good = true;

static bool check(bool holds, int line, const char *what)
{
	if (!holds)
		printf("# line %d: %s\n", line, what);
	good &= holds;
	return holds;
}
#define CHECK(what) check((what), __LINE__, #what)

static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
						       : mallinfo2().uordblks;
}

static void on_echo(void *arg, const struct pgr_request *request)
{
	(void)arg;
	t.executed++;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)result, (void)result_bytes;
	t.done++;
	t.failed += code != PGR_OK;
}

static void begin(uint32_t peers_max)
{
	const struct pgr_config config = {.peers_max = peers_max, .clients_max = 2 * MANY};

	net_reset(1, 512);
	memset(&t, 0, sizeof(t));
	if (pgr_open_on(&pgr_wire_net, &config, &t.server) != PGR_OK ||
	    pgr_open_on(&pgr_wire_net, &config, &t.client) != PGR_OK ||
	    pgr_serve(t.server, ECHO, NULL, on_echo, NULL) != PGR_OK)
		abort();
}

static void end(void)
{
	pgr_close(t.client);
	pgr_close(t.server);
}

static bool bind_one(struct pgr_peer **peer_out)
{
	return pgr_bind(t.client, t.server->wire->own.bytes, PGR_ADDRESS_BYTES, peer_out) == PGR_OK;
}

static bool call(struct pgr_peer *peer)
{
	return pgr_call(peer, ECHO, NULL, NULL, 0, NULL, 0, 0, on_done, NULL) == PGR_QUEUED;
}

static void live(uint64_t ns)
{
	struct pgr *const ends[] = {t.server, t.client};
	const uint64_t until_ns = net_now_ns() + ns;

	while (net_now_ns() < until_ns)
		net_step(ends, 2);
}

/* Each of the first `count` makes a call, some of them at a time; all of them have ended then. */
static void call_all(unsigned int count)
{
	const unsigned int before = t.done;

	for (unsigned int i = 0; i < count; i++) {
		CHECK(call(t.peers[i]));
		if (i % 32 == 31)
			live(MS);
	}
	for (unsigned int i = 0; i < 1000 && t.done < before + count; i++)
		live(MS);
	CHECK(t.done == before + count && !t.failed);
}

static void many(void)
{
	size_t before;

	begin(MANY);
	before = allocated();
	for (unsigned int i = 0; i < MANY; i++)
		if (!CHECK(bind_one(&t.peers[i])))
			return;
	printf("# a new binding: %zu bytes\n", (allocated() - before) / MANY);
	CHECK((allocated() - before) / MANY + (t.client->peers_mask + 1) * sizeof(void *) / MANY <= 1024);
	CHECK(t.client->peers_count == MANY && t.client->busy_count == 0);
	CHECK(!bind_one(&t.peers[0]));
	end();
}

/* One that is used costs more, until it is idle again. Then its calls go on where they were. */
static void idle(void)
{
	size_t before;

	begin(FEW);
	before = allocated();
	for (unsigned int i = 0; i < FEW; i++)
		CHECK(bind_one(&t.peers[i]));
	before = allocated() - before;
	for (unsigned int round = 1; round <= 3; round++) {
		const size_t at_rest = allocated() - before;

		for (unsigned int i = 0; i < 5; i++)
			CHECK(call(t.peers[7]));
		CHECK(t.client->busy_count == 1 && !t.peers[8]->slots[0] && t.peers[7]->slots[4]);
		live(SECOND);
		CHECK(t.done == 5 * round + FEW * (round - 1) && t.client->busy_count == 0 &&
		      !t.peers[7]->slots[0]);
		call_all(FEW);
		live(SECOND);
		CHECK(t.client->busy_count == 0);
		/* the server's, and buffers, but no slots */
		CHECK(round == 1 || allocated() - before <= at_rest + 65536);
	}
	CHECK(t.executed == 3 * (FEW + 5) && t.peers[7]->sequence > t.peers[8]->sequence);
	CHECK(t.server->clients_count == FEW && t.server->stats.duplicates == 0);
	end();
}

static bool count_credits(void *arg, uint8_t *packet, size_t bytes)
{
	struct pgr_header head;

	(void)arg, (void)bytes;
	memcpy(&head, packet, sizeof(head));
	if (head.type == PGR_CALL)
		t.credits = pgr_le16(head.credits);
	return true;
}

/* Those that are idle have no part in the window, nor in what time is for. */
static void few_busy(void)
{
	begin(FEW);
	for (unsigned int i = 0; i < FEW; i++)
		CHECK(bind_one(&t.peers[i]));
	net_watch(count_credits, NULL);
	CHECK(call(t.peers[3]) && t.credits == t.client->wire->window_packets);
	CHECK(call(t.peers[4]) && t.credits == t.client->wire->window_packets / 2);
	net_cut(t.server, true);
	CHECK(t.client->busy_count == 2 && pgr_next_due(t.client) < net_now_ns() + 20 * MS);
	live(5 * SECOND);
	CHECK(t.client->busy_count == 2 && t.done == 0);
	pgr_unbind(t.peers[4]);
	pgr_unbind(t.peers[4]);
	pgr_unbind(t.peers[5]);
	CHECK(t.client->peers_count == FEW - 2);
	live(6 * SECOND);
	CHECK(t.done == 2 && t.failed == 2 && t.client->busy_count == 0 && t.client->peers_count == FEW - 2);
	end();
}

/* The table as a list would have it: each open binding is found, and nothing else is there. */
static void table_is_right(const struct pgr_peer *gone)
{
	uint32_t entered = 0;

	for (uint64_t i = 0; i <= t.client->peers_mask; i++)
		entered += t.client->by_hash[i] != NULL;
	CHECK(entered == t.client->peers_count);
	for (unsigned int i = 0; i < FEW; i++)
		if (t.peers[i])
			CHECK(pgr_peer_of(t.client, t.peers[i]->client) == t.peers[i]);
	CHECK(!gone || !pgr_peer_of(t.client, gone->client));
}

/* Bindings come and go, in a table that is almost full, so that those who collide go around its end. */
static void come_and_go(void)
{
	begin(60);
	t.client->peers_mask = 63; /* of the 127 that it has */
	for (unsigned int i = 0; good && i < 20000; i++) {
		const unsigned int which = net_random(60);
		struct pgr_peer *gone = NULL;

		if (t.peers[which]) {
			gone = t.peers[which];
			t.peers[which] = NULL;
			pgr_unbind(gone);
		} else {
			CHECK(bind_one(&t.peers[which]));
		}
		table_is_right(gone);
		if (i % 8 == 0)
			pgr_poll(t.client);
	}
	for (unsigned int i = 0; i < 60; i++)
		if (t.peers[i])
			CHECK(call(t.peers[i]));
	live(SECOND);
	CHECK(t.done == t.client->peers_count && !t.failed);
	end();
}

/* Clients choose their identifiers. Nobody makes them all lie in one list. */
static void like_identifiers(void)
{
	unsigned int longest = 0, known = 0;

	begin(FEW);
	for (unsigned int i = 0; i < FEW; i++) {
		CHECK(bind_one(&t.peers[i]));
		t.peers[i]->client = (uint64_t)(i + 1) << 32;
	}
	memset(t.client->by_hash, 0, (t.client->peers_mask + 1) * sizeof(void *));
	for (unsigned int i = 0; i < FEW; i++) { /* where they are found by the low bits, as they are */
		uint64_t at = 0;

		while (t.client->by_hash[at])
			at++;
		t.client->by_hash[at] = t.peers[i];
	}
	call_all(FEW);
	for (uint64_t i = 0; i <= t.server->clients_mask; i++) {
		unsigned int length = 0;

		for (const struct pgr_client *client = t.server->buckets[i]; client; client = client->next)
			length++;
		known += length;
		longest = length > longest ? length : longest;
	}
	CHECK(known == FEW && longest <= 8);
	end();
}

/* In order of their silence, and forgotten in that order. */
static void silent(void)
{
	begin(FEW);
	for (unsigned int i = 0; i < FEW; i++)
		CHECK(bind_one(&t.peers[i]));
	call_all(FEW);
	live(30 * SECOND);
	call_all(10);
	for (unsigned int round = 0; round < 2; round++) {
		uint64_t last_ns = 0;
		uint32_t count = 0;

		for (const struct pgr_client *client = t.server->silent.first; client;
		     client = client->behind[PGR_OF_ALL]) {
			CHECK(client->last_packet_ns + PGR_REQUEUE_NS >= last_ns &&
			      client->queued_ns <= client->last_packet_ns);
			last_ns = client->last_packet_ns;
			count++;
		}
		CHECK(count == t.server->clients_count && count == (round ? 10 : FEW));
		live(15 * SECOND);
	}
	live(30 * SECOND);
	CHECK(t.server->clients_count == 0 && !t.server->silent.first && !t.server->silent.last);
	CHECK(pgr_drain(t.server) == 0 &&
	      t.server->stats.pool_bytes == t.server->works_count * sizeof(struct pgr_work));
	end();
}

/* Who may pass calls on: as many as are named, each of them, and nobody else. */
static void delegators(void)
{
	static bool named[FEW];

	begin(FEW);
	memset(named, 0, sizeof(named));
	for (unsigned int i = 0; i < 20 * FEW && good; i++) {
		const uint32_t which = net_random(FEW), allow = net_random(3) != 0;
		struct pgr_to to = {{0}};

		memcpy(to.bytes, &which, sizeof(which));
		CHECK(pgr_delegations_from(t.server, to.bytes, PGR_ADDRESS_BYTES, allow) == PGR_OK);
		named[which] = allow;
		CHECK(pgr_may_delegate(t.server, &to) == (allow != 0));
	}
	for (uint32_t i = 0, count = 0; i <= FEW; i++) {
		struct pgr_to to = {{0}};

		memcpy(to.bytes, &i, sizeof(i));
		CHECK(pgr_may_delegate(t.server, &to) == (i < FEW && named[i]));
		count += i < FEW && named[i];
		CHECK(i < FEW || count == t.server->delegators_count);
	}
	end();
}

/* ---- calls that were passed on ---- */

enum { PASS = 2, ONWARD = FEW / PGR_SLOTS + 1 };

static struct {
	struct pgr *front;
	struct pgr_peer *onward[ONWARD];
	unsigned int passed;
	bool lose_results;
} d;

static void on_pass(void *arg, const struct pgr_request *request)
{
	(void)arg;
	CHECK(pgr_delegate(d.onward[d.passed++ % ONWARD], &request->token, ECHO, NULL, 0) == PGR_OK);
}

static bool lose_results(void *arg, uint8_t *packet, size_t bytes)
{
	(void)arg, (void)bytes;
	return !d.lose_results || packet[0] != PGR_RESULT || !(packet[1] & PGR_FLAG_DELEGATED);
}

static void live_with_front(uint64_t ns)
{
	struct pgr *const ends[] = {t.server, t.client, d.front};
	const uint64_t until_ns = net_now_ns() + ns;

	while (net_now_ns() < until_ns)
		net_step(ends, 3);
}

/* How many results of calls that were passed on wait for their clients' word; the longest list that one is looked for in. */
static unsigned int awaiting_word(unsigned int *longest_out)
{
	unsigned int known = 0;

	*longest_out = 0;
	for (uint32_t i = 0; i < t.server->works_room; i++) {
		unsigned int length = 0;

		for (const struct pgr_work *work = t.server->delegated[i]; work; work = work->next_delegated)
			length++;
		known += length;
		*longest_out = length > *longest_out ? length : *longest_out;
	}
	return known;
}

/* Results of calls that were passed on: each client's word finds the one that it speaks of in a short list. */
static void passed_on(void)
{
	const struct pgr_config config = {.peers_max = ONWARD, .clients_max = 2 * FEW};
	unsigned int longest;

	begin(FEW);
	memset(&d, 0, sizeof(d));
	d.lose_results = true;
	net_watch(lose_results, NULL);
	CHECK(pgr_open_on(&pgr_wire_net, &config, &d.front) == PGR_OK &&
	      pgr_serve(d.front, PASS, NULL, on_pass, NULL) == PGR_OK &&
	      pgr_delegations_from(t.server, d.front->wire->own.bytes, PGR_ADDRESS_BYTES, 1) == PGR_OK);
	d.front->wire->window_packets = t.server->wire->window_packets = 4 * FEW; /* else 64 are under way */
	for (unsigned int i = 0; i < ONWARD; i++)
		CHECK(pgr_bind(d.front, t.server->wire->own.bytes, PGR_ADDRESS_BYTES, &d.onward[i]) ==
		      PGR_OK);
	for (unsigned int i = 0; i < FEW; i++) {
		CHECK(pgr_bind(t.client, d.front->wire->own.bytes, PGR_ADDRESS_BYTES, &t.peers[i]) == PGR_OK);
		CHECK(pgr_call(t.peers[i], PASS, NULL, NULL, 0, NULL, 0, 0, on_done, NULL) == PGR_QUEUED);
		if (i % 8 == 7)
			live_with_front(MS);
	}
	live_with_front(100 * MS);
	CHECK(t.executed == FEW && t.done == 0);
	CHECK(awaiting_word(&longest) == FEW && longest <= 8);
	d.lose_results = false;
	live_with_front(2 * SECOND);
	CHECK(t.done == FEW && t.failed == 0 && t.executed == FEW);
	CHECK(awaiting_word(&longest) == 0);
	net_watch(NULL, NULL);
	pgr_close(d.front);
	end();
}

/* Rings to many servers lie in lists that are short; of those who have closed theirs, few are kept mapped. */
static void rings(void)
{
	enum { SERVERS = 48 };
	const struct pgr_config config = {.bytes = sizeof(config), .wire = "shm"};
	struct pgr *servers[SERVERS], *client;
	unsigned int longest = 0, known = 0, mapped = 0;
	const struct shm *shm;

	if (!CHECK(pgr_open(&config, &client) == PGR_OK))
		return;
	shm = (const struct shm *)client->wire;
	for (unsigned int i = 0; i < SERVERS; i++) {
		if (!CHECK(pgr_open(&config, &servers[i]) == PGR_OK &&
			   pgr_bind(client, servers[i]->wire->own.bytes, PGR_ADDRESS_BYTES, &t.peers[i]) ==
				   PGR_OK))
			return;
		if (i)
			pgr_close(servers[i - 1]);
	}
	for (unsigned int i = 0; i < LISTS; i++) {
		unsigned int length = 0;

		for (const struct outgoing *out = shm->out[i]; out; out = out->next) {
			mapped += out->inbox != NULL;
			length++;
		}
		known += length;
		longest = length > longest ? length : longest;
	}
	CHECK(known == SERVERS && longest <= 8 && mapped <= 3);
	pgr_close(client);
	pgr_close(servers[SERVERS - 1]);
}

/* The largest numbers that fit into the configuration: memory is for those who come. */
static void largest(void)
{
	const struct pgr_config config = {.peers_max = UINT32_MAX, .clients_max = UINT32_MAX};
	int code;

	net_reset(1, 512);
	alarm(60); /* a power of two that is never reached */
	code = pgr_open_on(&pgr_wire_net, &config, &t.client);
	CHECK(code == PGR_OK || code == PGR_E_MEMORY);
	if (code == PGR_OK) {
		net_pass_time(SECOND);
		pgr_poll(t.client);
		pgr_close(t.client);
	}
	alarm(0);
}

int main(void)
{
	static const struct {
		const char *what;
		void (*run)(void);
	} tests[] = {
		{"65,536 bindings of 1 KiB at most", many},
		{"an idle binding has no slots, and goes on where it was", idle},
		{"a few of many are busy", few_busy},
		{"bindings come and go", come_and_go},
		{"identifiers that are alike", like_identifiers},
		{"clients in the order of their silence", silent},
		{"who may pass calls on", delegators},
		{"results of calls that were passed on", passed_on},
		{"rings to many servers", rings},
		{"the largest numbers of bindings and clients", largest},
	};
	const unsigned int count = sizeof(tests) / sizeof(tests[0]);
	unsigned int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%u\n", count);
	for (unsigned int i = 0; i < count; i++) {
		good = true;
		tests[i].run();
		failed += !good;
		printf("%sok %u - %s\n", good ? "" : "not ", i + 1, tests[i].what);
	}
	return failed != 0;
}
