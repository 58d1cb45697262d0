/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host says that nobody has a port: the calls of which it speaks end with that reason, at once and in a poll; no other call
 * does, whoever says what. TAP on standard output.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../core/peer.h"
#include "../core/slot.h"
#include "../wires/datagram.h"
#include "support/alone.h"

enum { ECHO = 1, CALLS = 300, LONG_BYTES = 200000 };
/* far below the give-up time, far beyond what a busy machine takes */
#define SOON_NS    UINT64_C(8000000000)
#define GIVE_UP_NS UINT64_C(30000000000)
/* beyond what a busy machine keeps an answer waiting: what is repeated was lost */
#define RTO_MIN_NS UINT64_C(200000000)

static struct pgr *open_end(const char *address, const uint8_t *key)
{
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = "udp",
					  .address = address,
					  .block = 1,
					  .give_up_ns = GIVE_UP_NS,
					  .rto_min_ns = RTO_MIN_NS,
					  .key = key};
	struct pgr *pgr;

	if (pgr_open(&config, &pgr) != PGR_OK)
		exit(SKIPPED);
	return pgr;
}

static struct pgr_peer *bind_to(struct pgr *pgr, const struct pgr *to)
{
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peer;

	pgr_address(to, address, &bytes);
	if (pgr_bind(pgr, address, bytes, &peer) != PGR_OK)
		exit(FAILED);
	return peer;
}

static void on_done(void *arg, int code, const void *result, size_t bytes)
{
	(void)result, (void)bytes;
	*(int *)arg = code;
}

static bool silent; /* the server executes, and answers nothing */

static void on_echo(void *arg, const struct pgr_request *request)
{
	(void)arg;
	if (!silent)
		pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

static void begin(struct pgr_peer *peer, const void *args, size_t bytes, int *outcome)
{
	*outcome = pgr_call(peer, ECHO, NULL, &(struct pgr_iov){(void *)(uintptr_t)args, bytes}, 1, NULL, 0,
			    0, on_done, outcome);
}

/* Polls both, NULL for none, until the call has ended or time has passed; returns what it ended with, PGR_QUEUED: it has not. */
static int finish(struct pgr *client, struct pgr *server, const int *outcome, uint64_t within_ns)
{
	const uint64_t begin_ns = now_ns();

	while (*outcome == PGR_QUEUED && now_ns() - begin_ns < within_ns) {
		if (server)
			pgr_poll(server);
		pgr_poll(client);
	}
	return *outcome;
}

static int nobody(const char *host)
{
	struct pgr *server = open_end(host, NULL), *client = open_end(host, NULL);
	struct pgr_peer *peer = bind_to(client, server);
	char why[128], expected[128], text[PGR_ADDRESS_TEXT_BYTES];
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	uint64_t due_ns;
	int code, fds[PGR_FDS];

	pgr_address(server, address, &bytes);
	pgr_address_text(client, address, bytes, text, sizeof(text));
	snprintf(expected, sizeof(expected), "%s: %s", text, strerror(ECONNREFUSED));
	pgr_close(server);
	for (unsigned int i = 0; i < 3; i++) {
		const uint64_t begin_ns = now_ns();

		code = pgr_call_and_wait(peer, ECHO, NULL, NULL, 0, NULL, 0, 0, NULL);
		if (code != PGR_E_NOBODY || now_ns() - begin_ns > SOON_NS)
			return say("%s after %.3f s", pgr_code_name(code),
				   (double)(now_ns() - begin_ns) / 1e9);
	}
	pgr_why(client, why, sizeof(why));
	if (strcmp(why, expected) != 0)
		return say("'%s', not '%s'", why, expected);
	/* nothing is left that would wake who waits */
	pgr_poll(client);
	if (pgr_watch(client, fds, &due_ns) != PGR_OK ||
	    poll(&(struct pollfd){.fd = fds[0], .events = POLLIN}, 1, 0) != 0)
		return say("the socket still tells of errors");
	pgr_close(client);
	return PASSED;
}

static int nobody_v4(void)
{
	return nobody("127.0.0.1");
}

static int nobody_v6(void)
{
	return nobody("::1");
}

/* A server that had the call, and ends; through the socket of its own too, which it gets after many packets. */
static int ended(unsigned int calls_before)
{
	struct pgr *server = open_end("127.0.0.1", NULL), *client = open_end("127.0.0.1", NULL);
	struct pgr_peer *peer = bind_to(client, server);
	int outcome = PGR_OK, code;

	silent = false;
	pgr_serve(server, ECHO, NULL, on_echo, NULL);
	for (unsigned int i = 0; i < calls_before && outcome == PGR_OK; i++) {
		begin(peer, NULL, 0, &outcome);
		finish(client, server, &outcome, SOON_NS);
	}
	if (outcome != PGR_OK ||
	    (((struct pgr_datagram *)client->wire)->direct.fd >= 0) != (calls_before > 100))
		return say("%u calls before: %s, or another socket than meant", calls_before,
			   pgr_code_name(outcome));
	silent = true;
	begin(peer, NULL, 0, &outcome);
	finish(client, server, &outcome, UINT64_C(50000000));
	pgr_close(server);
	if (outcome != PGR_QUEUED)
		return say("it ended before its server: %s", pgr_code_name(outcome));
	code = finish(client, NULL, &outcome, SOON_NS);
	pgr_close(client);
	return code == PGR_E_RESTARTED ? PASSED
				       : say("after %u calls: %s", calls_before, pgr_code_name(code));
}

static int ended_server(void)
{
	return ended(1) || ended(CALLS);
}

/* `done` runs in a poll alone, though it is another call that meets the error. */
static int in_a_poll(void)
{
	struct pgr *server = open_end("127.0.0.1", NULL), *client = open_end("127.0.0.1", NULL);
	struct pgr_peer *peer = bind_to(client, server);
	int outcomes[8];

	pgr_close(server);
	for (unsigned int i = 0; i < 8; i++) {
		begin(peer, NULL, 0, &outcomes[i]);
		poll(NULL, 0, 2);
	}
	for (unsigned int i = 0; i < 8; i++)
		if (outcomes[i] != PGR_QUEUED)
			return say("call %u ended outside a poll: %s", i, pgr_code_name(outcomes[i]));
	for (unsigned int i = 0; i < 8; i++)
		if (finish(client, NULL, &outcomes[i], SOON_NS) != PGR_E_NOBODY)
			return say("call %u: %s", i, pgr_code_name(outcomes[i]));
	pgr_close(client);
	return PASSED;
}

/* What is said of one server costs another one no packet, and bursts go on as large datagrams. */
static int beside_another(void)
{
	struct pgr *server = open_end("127.0.0.1", NULL), *none = open_end("127.0.0.1", NULL),
		   *client = open_end("127.0.0.1", NULL);
	struct pgr_datagram *datagram = (struct pgr_datagram *)client->wire;
	struct pgr_peer *peer = bind_to(client, server), *lost = bind_to(client, none);
	struct pgr_stats stats = {.bytes = sizeof(stats)};
	const bool segments = datagram->segments;
	uint8_t *args = calloc(1, LONG_BYTES);
	int outcome, refused = PGR_OK, failed = 0;

	pgr_close(none);
	pgr_serve(server, ECHO, NULL, on_echo, NULL);
	for (unsigned int i = 0; i < CALLS; i++) {
		if (refused != PGR_QUEUED)
			begin(lost, NULL, 0, &refused);
		begin(peer, args, i % 16 ? 100 : LONG_BYTES, &outcome);
		failed += finish(client, server, &outcome, SOON_NS) != PGR_OK;
	}
	pgr_stats(client, &stats);
	if (failed || stats.calls_failed < 10)
		return say("%d calls failed beside %u that were refused", failed,
			   (unsigned int)stats.calls_failed);
	if (stats.retransmissions > stats.calls_failed / 8)
		return say("%u packets were lost beside %u calls that were refused",
			   (unsigned int)stats.retransmissions, (unsigned int)stats.calls_failed);
	if (datagram->segments != segments)
		return say("bursts are cut up here from now on");
	pgr_close(client);
	pgr_close(server);
	free(args);
	return PASSED;
}

/* ---- what anybody can make up ---- */

struct word {
	struct {
		struct icmphdr icmp;
		struct iphdr ip;
		struct udphdr udp;
	} head;
	uint8_t quoted[PGR_HEADER_BYTES];
};

static uint16_t sum_of(const void *at, size_t bytes)
{
	const uint8_t *byte = at;
	uint32_t sum = 0;

	for (size_t i = 0; i < bytes; i++)
		sum += (uint32_t)byte[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Says with this code that a packet from `client` to `server` was not taken, and quotes so many bytes behind UDP's header. */
static bool say_of(const struct pgr *client, const struct pgr *server, uint8_t code,
		   const struct pgr_header *head, size_t bytes)
{
	const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct word word = {.head = {.icmp = {.type = ICMP_DEST_UNREACH, .code = code},
				     .ip = {.version = 4,
					    .ihl = 5,
					    .ttl = 64,
					    .protocol = IPPROTO_UDP,
					    .tot_len = htons(sizeof(struct iphdr) + sizeof(struct udphdr) +
							     sizeof(*head))},
				     .udp = {.len = htons(sizeof(struct udphdr) + sizeof(*head))}}};
	const size_t all = sizeof(word.head) + bytes;
	struct pgr_header on_wire;
	bool sent;

	if (raw < 0)
		exit(SKIPPED);
	memcpy(&word.head.ip.saddr, client->wire->own.bytes, 4);
	memcpy(&word.head.udp.source, client->wire->own.bytes + 4, 2);
	memcpy(&word.head.ip.daddr, server->wire->own.bytes, 4);
	memcpy(&word.head.udp.dest, server->wire->own.bytes + 4, 2);
	word.head.ip.check = sum_of(&word.head.ip, sizeof(word.head.ip));
	pgr_le_header(&on_wire, head);
	memcpy(word.quoted, &on_wire, sizeof(word.quoted));
	word.head.icmp.checksum = sum_of(&word, all);
	sent = sendto(raw, &word, all, 0, (const struct sockaddr *)&to, sizeof(to)) == (ssize_t)all;
	close(raw);
	return sent;
}

static int made_up(const uint8_t *key)
{
	struct pgr *server = open_end("127.0.0.1", key), *client = open_end("127.0.0.1", key);
	struct pgr_peer *peer = bind_to(client, server);
	struct pgr_header right, wrong[8];
	const struct {
		const char *what;
		uint8_t code;
		size_t bytes;
	} cases[8] = {
		{"another client", ICMP_PORT_UNREACH, sizeof(right)},
		{"an earlier call", ICMP_PORT_UNREACH, sizeof(right)},
		{"another slot", ICMP_PORT_UNREACH, sizeof(right)},
		{"no slot", ICMP_PORT_UNREACH, sizeof(right)},
		{"another claim", ICMP_PORT_UNREACH, sizeof(right)},
		{"a result", ICMP_PORT_UNREACH, sizeof(right)},
		{"the UDP header alone", ICMP_PORT_UNREACH, 0},
		{"a host that cannot be reached now", ICMP_HOST_UNREACH, sizeof(right)},
	};
	int outcome, code;

	silent = false;
	pgr_serve(server, ECHO, NULL, on_echo, NULL);
	begin(peer, NULL, 0, &outcome);
	if (finish(client, server, &outcome, SOON_NS) != PGR_OK)
		return say("first contact: %s", pgr_code_name(outcome));
	for (unsigned int i = 0; i <= 8; i++) {
		const struct pgr_slot *slot = peer->slots[0];

		begin(peer, NULL, 0, &outcome);
		right = (struct pgr_header){.type = PGR_CALL,
					    .version = PGR_VERSION,
					    .slot = slot->number,
					    .client = peer->client,
					    .sequence = slot->sequence,
					    .incarnation = slot->claimed};
		for (unsigned int k = 0; k < 8; k++)
			wrong[k] = right;
		wrong[0].client ^= 1, wrong[1].sequence--, wrong[2].slot++, wrong[3].slot = 1000,
									    wrong[4].incarnation ^= 1;
		wrong[5].type = PGR_RESULT;
		if (!say_of(client, server, i < 8 ? cases[i].code : ICMP_PORT_UNREACH,
			    i < 8 ? &wrong[i] : &right, i < 8 ? cases[i].bytes : sizeof(right)))
			return say("nothing can be said");
		finish(client, NULL, &outcome, UINT64_C(30000000));
		if (i < 8 && outcome != PGR_QUEUED)
			return say("%s: %s", cases[i].what, pgr_code_name(outcome));
		code = finish(client, server, &outcome, SOON_NS);
		if (code != (i < 8 ? PGR_OK : PGR_E_RESTARTED))
			return say("%s: then %s", i < 8 ? cases[i].what : "the call itself",
				   pgr_code_name(code));
	}
	pgr_close(client);
	pgr_close(server);
	return PASSED;
}

static int made_up_of_all(void)
{
	static const uint8_t key[PGR_KEY_BYTES] = {3};

	return made_up(NULL) || made_up(key);
}

int main(void)
{
	static const struct alone_test tests[] = {
		{"nobody has the port", nobody_v4},
		{"the same on IPv6", nobody_v6},
		{"a server that had the call ends", ended_server},
		{"a call ends in a poll", in_a_poll},
		{"calls to another server", beside_another},
		{"words that somebody makes up", made_up_of_all},
	};
	return alone_run(&(struct alone){.seconds = 60, .skip = "it is not to be had here"}, tests,
			 sizeof(tests) / sizeof(tests[0]));
}
