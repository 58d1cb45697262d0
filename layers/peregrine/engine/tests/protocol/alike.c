/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast.h decides nothing that the long way would decide otherwise: the same packets and calls are put before two
 * endpoints, of which one may take the short way and the other may not, and what they say and hold is compared after
 * each. Identities and cookies are drawn at random and left out.
 */
#include "caller.h"

enum { STEPS = 4000, CLIENT_SLOTS = 16, SAID_MAX = 16 };

/* All that may be seen of an endpoint after a step. */
struct look {
	unsigned int executed, done, said;
	int code;
	size_t args_bytes, result_bytes;
	struct {
		struct pgr_header head;
		struct pgr_to to;
		uint64_t data;
	} words[SAID_MAX];
	uint64_t free, introduced, queued;
	uint64_t sequences[CLIENT_SLOTS];
	bool works[CLIENT_SLOTS];
	uint64_t silent_ns;
	uint32_t idle_periods;
	struct pgr_stats stats;
};
static struct look looks[STEPS];
static uint64_t chance;
static unsigned int short_ways;

static uint32_t draw(uint32_t below)
{
	chance ^= chance << 13; /* as net_random, which other things use as well */
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (uint32_t)((chance >> 11) % below);
}

static uint64_t sum_of(const void *data, size_t bytes)
{
	uint64_t sum = bytes;

	for (size_t i = 0; i < bytes; i++)
		sum = sum * UINT64_C(1099511628211) ^ ((const uint8_t *)data)[i];
	return sum;
}

/* An incarnation without the chance in it: ours, the wrong one that a step claims, another. */
static uint32_t plain(uint32_t incarnation)
{
	return incarnation == t.pgr->incarnation         ? 1
	       : incarnation == (t.pgr->incarnation ^ 1) ? 2
							 : incarnation;
}

static struct look look(void)
{
	const struct pgr_client *client = pgr_client_of(t.pgr, CLIENT);
	struct look now;

	memset(&now, 0, sizeof(now)); /* compared as bytes */
	now.executed = t.executed;
	now.done = t.done;
	now.said = t.seen_count;
	now.code = t.code;
	now.args_bytes = t.args_bytes;
	now.result_bytes = t.result_bytes;
	for (unsigned int i = 0; i < t.seen_count && i < SAID_MAX; i++) {
		struct pgr_header head = t.seen[i].packet.head;

		head.client = head.client == t.peer->client ? 1 : head.client;
		head.incarnation = plain(head.incarnation);
		if (head.type == PGR_CHALLENGE) {
			head.message_bytes = head.packet_number = 0;
			head.procedure = plain(head.procedure);
		}
		now.words[i].head = head;
		now.words[i].to = t.seen[i].to;
		now.words[i].data = sum_of(t.seen[i].packet.data, head.data_bytes);
	}
	now.free = t.peer->free;
	now.introduced = t.peer->introduced;
	now.queued = t.peer->queued;
	for (unsigned int i = 0; client && i < CLIENT_SLOTS; i++) {
		now.sequences[i] = client->slots[i].sequence;
		now.works[i] = client->slots[i].work != NULL;
	}
	if (client) {
		now.silent_ns = net_now_ns() - client->last_packet_ns;
		now.idle_periods = t.pgr->period - client->active;
	}
	now.stats = *stats();
	return now;
}

static void client_report(uint64_t sequences[CLIENT_SLOTS])
{
	static const uint32_t procedures[] = {ECHO, ECHO, ECHO, ECHO, ECHO, ECHO, ECHO, LATER, FAIL, NONE},
			      sizes[] = {0, 1, 8, 100, 400};
	static const int steps[] = {1, 1, 1, 1, 1, 1, 0, -1, 2};
	const uint32_t slot = draw(CLIENT_SLOTS);
	struct pgr_header head = call_of(1, procedures[draw(10)], sizes[draw(5)]);

	head.slot = (uint16_t)slot;
	head.sequence = sequences[slot] + (uint64_t)steps[draw(9)];
	head.sequence = head.sequence ? head.sequence : 1;
	head.retransmissions = (uint8_t)(draw(4) ? 0 : draw(3));
	head.credits = (uint16_t)(draw(4) ? CREDITS : draw(64));
	head.flags = (uint8_t)(PGR_OWN_ORDER ^ (draw(8) ? 0u : draw(2) ? PGR_FLAG_ASK : PGR_FLAG_BIG_ENDIAN));
	head.incarnation ^= draw(30) == 0;
	if (draw(10) == 0) {
		head.type = draw(2) ? PGR_PROBE : PGR_ACK;
		head.flags = head.type == PGR_ACK ? PGR_FLAG_OF_RESULT : PGR_FLAG_ASK;
		head.message_bytes = head.data_bytes = 0;
	}
	if (draw(sequences[slot] ? 12 : 2)) {
		put_from(draw(30) ? FAR : OTHER, &head, 0, pattern);
	} else { /* without the cookie that a slot has to show once */
		uint8_t packet[PACKET_BYTES];

		put_raw(FAR, packet, make(&head, 0, pattern, packet));
	}
	if (head.sequence > sequences[slot])
		sequences[slot] = head.sequence;
}

/* A result of the call that waits in the lowest slot, or of none. */
static void server_report(void)
{
	struct pgr_header head = {.type = PGR_RESULT,
				  .flags = PGR_OWN_ORDER,
				  .version = PGR_VERSION,
				  .slot = (uint16_t)(~t.peer->free ? __builtin_ctzll(~t.peer->free) : 0),
				  .credits = CREDITS,
				  .client = t.peer->client,
				  .incarnation = INCARNATION,
				  .procedure = ECHO};
	const uint32_t sizes[] = {0, 8, 20, 100};

	head.sequence = slot_of(t.peer, head.slot)->sequence;
	part(&head, sizes[draw(4)], 0);
	switch (draw(12)) {
	case 0: head.sequence += draw(2) ? 1 : UINT64_MAX; break;
	case 1: head.slot = (uint16_t)((head.slot + 1) % PGR_SLOTS); break;
	case 2: head.incarnation ^= 1; break;
	case 3: head.flags ^= PGR_FLAG_BIG_ENDIAN; break;
	case 4: head.retransmissions = 1; break;
	case 5: head.flags |= PGR_FLAG_ASK; break;
	default: break;
	}
	put_from(draw(20) ? FAR : OTHER, &head, 0, pattern);
}

static void tell(unsigned int step, const struct look *fast, const struct look *slow)
{
	const uint64_t *const words[2] = {(const uint64_t *)&fast->stats, (const uint64_t *)&slow->stats};

	printf("# step %u: executed %u and %u, said %u and %u, done %u and %u\n", step, fast->executed,
	       slow->executed, fast->said, slow->said, fast->done, slow->done);
	printf("# silent for %llu and %llu ns, without work for %u and %u periods\n",
	       (unsigned long long)fast->silent_ns, (unsigned long long)slow->silent_ns, fast->idle_periods,
	       slow->idle_periods);
	for (size_t i = 0; i < sizeof(fast->stats) / sizeof(uint64_t); i++)
		if (words[0][i] != words[1][i])
			printf("# count %zu: %llu and %llu\n", i, (unsigned long long)words[0][i],
			       (unsigned long long)words[1][i]);
	for (unsigned int i = 0; i < fast->said && i < SAID_MAX; i++) {
		const uint8_t *const heads[2] = {(const uint8_t *)&fast->words[i].head,
						 (const uint8_t *)&slow->words[i].head};

		for (size_t byte = 0; byte < sizeof(fast->words[i].head); byte++)
			if (heads[0][byte] != heads[1][byte])
				printf("# packet %u, byte %zu: %u and %u\n", i, byte, heads[0][byte],
				       heads[1][byte]);
	}
}

static void run_steps(bool fast)
{
	uint64_t sequences[CLIENT_SLOTS] = {0};

	chance = 0x1993;
	t.reliable = true;
	net_pass_time(5 * SECOND - net_now_ns() % (5 * SECOND) +
		      MS); /* cookies age in both at the same steps */
	open_endpoint(NULL);
	t.pgr->fast = fast;
	make_known();
	learn_server();
	for (unsigned int i = 0; i < STEPS; i++) {
		const struct pgr_iov iov = {pattern, draw(200)};

		t.seen_count = 0;
		t.short_way = false;
		switch (draw(8)) {
		case 0:
		case 1:
			if (~t.peer->free != UINT64_MAX)
				call(draw(300), draw(2) * 50);
			break;
		case 2:
		case 3: server_report(); break;
		case 4: pgr_reply(t.pgr, &t.token, &iov, 1, 0, NULL, NULL); break;
		case 5: pass(draw(3) * MS); break;
		default: client_report(sequences); break;
		}
		short_ways += fast && t.short_way;
		if (fast) {
			looks[i] = look();
		} else {
			const struct look now = look();

			if (!CHECK(memcmp(&now, &looks[i], sizeof(now)) == 0)) {
				tell(i, &looks[i], &now);
				break;
			}
		}
	}
	close_endpoint();
	net_reset(1, PACKET_BYTES);
}

static void test_alike(void)
{
	bool good;

	run_steps(true);
	CHECK(short_ways > STEPS / 32);
	good = t.good;
	memset(&t, 0, sizeof(t));
	t.good = good;
	run_steps(false);
}

const struct protocol_test protocol_alike[] = {
	{"the short way does what the long one does", test_alike},
	{NULL, NULL},
};
