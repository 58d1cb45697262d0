/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same calls over every wire, between two processes that poll or sleep, on one host and on two: every
 * byte comes back right. And what each wire says when it is not to be had. TAP on standard output.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../wires/datagram.h"
#include "support/echo.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

enum { SECONDS = 40, NOBODY = 65534 };

struct wire_case {
	const char *wire, *client_wire; /* the latter NULL: the same */
	const char *attach;
	bool hosts, block, keyed, v6;
};

/* ---- opening ---- */

static int open_end(struct pair *pair, const struct wire_case *one, bool client, struct pgr **pgr_out)
{
	static const uint8_t key[PGR_KEY_BYTES] = {1, 2, 3};
	char error[256] = "";
	const struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = client && one->client_wire ? one->client_wire : one->wire,
		.device = !one->hosts ? NULL
			  : client    ? PAIR_CLIENT_DEVICE
				      : PAIR_SERVER_DEVICE,
		.address = !one->hosts ? one->v6 ? "::1" : "127.0.0.1"
			   : client    ? one->v6 ? PAIR_CLIENT_ADDRESS_V6 : PAIR_CLIENT_ADDRESS
			   : one->v6   ? PAIR_SERVER_ADDRESS_V6
				       : PAIR_SERVER_ADDRESS,
		.xdp_attach = one->attach,
		.block = one->block,
		.key = one->keyed ? key : NULL,
		.error = error,
		.error_bytes = sizeof(error),
	};
	const int code = pgr_open(&config, pgr_out);

	if (code == PGR_OK)
		return PAIR_PASSED;
	return pair_report(pair, code == PGR_E_PERMISSION ? PAIR_SKIPPED : PAIR_FAILED, "%s: %s",
			   pgr_code_name(code), error);
}

/* ---- calls ---- */

/* Packets to the server's number that no endpoint sent: too short, of no sense, fragments, with options. */
static int send_strange(struct pair *pair)
{
	const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, PGR_IP_PROTOCOL);
	const int own = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	const uint8_t nops[4] = {1, 1, 1, 1};
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct {
		struct iphdr ip;
		uint8_t data[200];
	} packet;
	bool sent = raw >= 0 && own >= 0;

	memcpy(&to.sin_addr, pair->address, 4);
	memset(packet.data, 0xa5, sizeof(packet.data));
	memcpy(packet.data, pair->address + PGR_AT_NUMBER, 4);
	for (unsigned int options = 0; options < 2 && sent; options++) {
		for (size_t bytes = 0; bytes <= 64 && sent; bytes += bytes < 12 ? 1 : 7)
			sent = sendto(raw, packet.data, bytes, 0, (const struct sockaddr *)&to, sizeof(to)) >=
			       0;
		setsockopt(raw, IPPROTO_IP, IP_OPTIONS, nops, sizeof(nops));
	}
	packet.ip = (struct iphdr){.version = 4,
				   .ihl = 5,
				   .ttl = 64,
				   .protocol = PGR_IP_PROTOCOL,
				   .id = 7,
				   .frag_off = htons(IP_MF),
				   .daddr = to.sin_addr.s_addr};
	if (sent) /* the first of two fragments; the second never comes */
		sent = sendto(own, &packet, sizeof(packet.ip) + 64, 0, (const struct sockaddr *)&to,
			      sizeof(to)) >= 0;
	if (raw >= 0)
		close(raw);
	if (own >= 0)
		close(own);
	return sent ? PAIR_PASSED
		    : pair_report(pair, PAIR_FAILED, "sending what is malformed: %s", strerror(errno));
}

static void done(void *arg, int code, const void *result, size_t bytes)
{
	int *outcome = arg;

	(void)result;
	(void)bytes;
	*outcome = code;
}

/* What was held back leaves at a flush: nobody polls here, so nothing is repeated. */
static int flush(struct pair *pair, struct pgr *pgr, struct pgr_peer *peer)
{
	const uint32_t executed = pair->executed;
	unsigned int tries = 5000;
	int outcome = PGR_QUEUED;

	pgr_call(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, PGR_MORE, done, &outcome);
	pgr_flush(pgr);
	while (pair->executed == executed && tries--)
		usleep(1000);
	if (pair->executed == executed)
		return pair_report(pair, PAIR_FAILED, "a flush did not send what was held back");
	while (outcome == PGR_QUEUED)
		pgr_poll(pgr);
	return outcome == PGR_OK
		       ? PAIR_PASSED
		       : pair_report(pair, PAIR_FAILED, "a flushed call: %s", pgr_code_name(outcome));
}

static int run_server(struct pair *pair, void *arg)
{
	const struct wire_case *one = arg;
	struct pgr *pgr;
	const int result = open_end(pair, one, false, &pgr);

	return result == PAIR_PASSED ? echo_serve(pair, pgr, one->block) : result;
}

static int run_client(struct pair *pair, void *arg)
{
	static const uint32_t none[] = {0}, eight[] = {8}, kib[] = {1024}, big[] = {4u << 20},
			      mixed[] = {0, 8, 1024, 20000, 1500, 64, 0};
	const struct wire_case *one = arg;
	const struct echo_calls calls[] = {
		{"null calls", none, 1, 200, 1},
		{"calls of 8 bytes", eight, 1, 200, 1},
		{"calls of 1 KiB", kib, 1, 200, 1},
		{"calls of 4 MiB", big, 1, 3, 1},
		{"64 null calls at once", none, 1, 2000, 64},
		{"64 calls of many lengths at once", mixed, 7, 1000, 64},
		{"4 calls of 4 MiB at once", big, 1, 4, 4},
	};
	const char *wire = one->client_wire ? one->client_wire : one->wire;
	struct pgr_stats stats = {.bytes = sizeof(stats)};
	struct pgr_peer *peer;
	struct pgr *pgr;
	int result = open_end(pair, one, true, &pgr);

	if (result != PAIR_PASSED)
		return result;
	/* ip knows no hardware addresses: of one on xdp it takes what comes before */
	if (!pair_await(pair) ||
	    pgr_bind(pgr, pair->address, one->client_wire ? PGR_AT_NUMBER + 4 : sizeof(pair->address),
		     &peer) != PGR_OK) {
		pgr_close(pgr);
		return PAIR_FAILED;
	}
	if (strcmp(wire, "ip") == 0 || strcmp(wire, "xdp") == 0)
		result = send_strange(pair);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]) && result == PAIR_PASSED; i++)
		result = echo_call(pair, pgr, peer, one->block, &calls[i]);
	if (result == PAIR_PASSED)
		result = flush(pair, pgr, peer);
	pgr_stats(pgr, &stats);
	if (result == PAIR_PASSED && one->keyed && stats.packets_dropped)
		result = pair_report(pair, PAIR_FAILED, "%llu packets of an honest server were refused",
				     (unsigned long long)stats.packets_dropped);
	pgr_close(pgr);
	return result;
}

/* ---- several endpoints in one place ---- */

static void reply_nothing(void *arg, const struct pgr_request *request)
{
	(void)arg;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

/* Three endpoints on one address: each gets its own packets only, with options in IP's header too. */
static int share_an_address(struct pair *pair, void *arg)
{
	struct wire_case one = {.wire = "ip"};
	struct pgr *ends[3] = {NULL}, *idle;
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peers[2];
	static const uint8_t options[4] = {1, 1, 1, 1}; /* of no effect */
	int outcome, result = PAIR_PASSED, strangers = 0;

	(void)arg;
	for (unsigned int i = 0; i < 3 && result == PAIR_PASSED; i++)
		result = open_end(pair, &one, i != 0, &ends[i]);
	if (result == PAIR_PASSED) {
		pgr_serve(ends[0], ECHO_PROCEDURE, NULL, reply_nothing, NULL);
		pgr_address(ends[0], address, &bytes);
		pgr_bind(ends[1], address, bytes, &peers[0]);
		pgr_bind(ends[2], address, bytes, &peers[1]);
	}
	for (unsigned int i = 0; i < 100 && result == PAIR_PASSED; i++) {
		if (i == 50)
			setsockopt(((struct pgr_datagram *)ends[1]->wire)->fd, IPPROTO_IP, IP_OPTIONS,
				   options, sizeof(options));
		outcome = PGR_QUEUED;
		pgr_call(peers[i % 2], ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, done, &outcome);
		while (outcome == PGR_QUEUED) {
			pgr_poll(ends[0]);
			pgr_poll(ends[1 + i % 2]);
		}
		idle = ends[2 - i % 2];
		strangers += idle->wire->ops->receive(idle->wire);
		if (outcome != PGR_OK)
			result = pair_report(pair, PAIR_FAILED, "call %u: %s", i, pgr_code_name(outcome));
	}
	if (strangers)
		result = pair_report(pair, PAIR_FAILED, "%d packets for another endpoint", strangers);
	for (unsigned int i = 0; i < 3; i++)
		pgr_close(ends[i]);
	return result;
}

/* A client that never pauses does not keep another one out. */
static int come_late(struct pair *pair, void *arg)
{
	const struct wire_case one = {.wire = arg};
	struct pgr *ends[3] = {NULL};
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peers[2];
	int busy = PGR_OK, late = PGR_QUEUED, result = PAIR_PASSED;

	for (unsigned int i = 0; i < 3 && result == PAIR_PASSED; i++)
		result = open_end(pair, &one, i != 0, &ends[i]);
	if (result == PAIR_PASSED) {
		pgr_serve(ends[0], ECHO_PROCEDURE, NULL, reply_nothing, NULL);
		pgr_address(ends[0], address, &bytes);
		pgr_bind(ends[1], address, bytes, &peers[0]);
		busy = PGR_QUEUED;
		pgr_call(peers[0], ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, done, &busy);
		for (unsigned int i = 0; i < 100000 && busy == PGR_QUEUED; i++) {
			pgr_poll(ends[0]);
			pgr_poll(ends[1]);
		}
		pgr_bind(ends[2], address, bytes, &peers[1]); /* not before: shm has found the first now */
		pgr_call(peers[1], ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, done, &late);
	}
	for (unsigned int i = 0; i < 100000 && late == PGR_QUEUED && result == PAIR_PASSED; i++) {
		if (busy == PGR_OK) {
			busy = PGR_QUEUED;
			pgr_call(peers[0], ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, done, &busy);
		}
		pgr_poll(ends[0]);
		pgr_poll(ends[1]);
		pgr_poll(ends[2]);
	}
	if (result == PAIR_PASSED && late != PGR_OK)
		result = pair_report(pair, PAIR_FAILED, "the second client: %s", pgr_code_name(late));
	for (unsigned int i = 0; i < 3; i++)
		pgr_close(ends[i]);
	return result;
}

/* A call and its end; the server, where there is one, is polled meanwhile. */
static int call_once(struct pgr_peer *peer, struct pgr *client, struct pgr *server)
{
	int outcome = PGR_QUEUED;

	if (pgr_call(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, done, &outcome) < 0)
		return PGR_E_ARGUMENT;
	while (outcome == PGR_QUEUED) {
		if (server)
			pgr_poll(server);
		pgr_poll(client);
	}
	return outcome;
}

/* The address of an endpoint on udp, as sockets know it. */
static union pgr_name name_of(const struct pgr *pgr)
{
	const struct pgr_datagram *datagram = (const struct pgr_datagram *)pgr->wire;
	union pgr_name name;

	datagram->address(datagram, &pgr->wire->own, &name, NULL);
	return name;
}

static bool port_is_free(const union pgr_name *at)
{
	const int fd = socket(at->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_free;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	is_free = bind(fd, &at->any, pgr_name_bytes(at)) == 0;
	close(fd);
	return is_free;
}

/* A stranger sends what is no packet, and some that look like one. */
static bool send_junk(const union pgr_name *at)
{
	const int fd = socket(at->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t junk[200] = {1, 0, PGR_VERSION};
	bool sent = fd >= 0;

	for (size_t bytes = 0; sent && bytes < sizeof(junk); bytes += 8)
		sent = sendto(fd, junk, bytes, 0, &at->any, pgr_name_bytes(at)) == (ssize_t)bytes;
	if (fd >= 0)
		close(fd);
	return sent;
}

/*
 * Two ends that hear of nobody else get a socket that is connected. Others are heard all the same, the port
 * stays theirs, nothing is lost on the way there and back, and an end that is gone is missed.
 */
static int alone_for_a_while(struct pair *pair, void *arg)
{
	const struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = "udp",
		.address = arg,
		.rto_min_ns = 200000000, /* so that a busy machine alone repeats nothing */
		.give_up_ns = 1000000000,
	};
	struct pgr *ends[3] = {NULL};
	const struct pgr_datagram *server, *client;
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peers[3];
	union pgr_name name;
	struct pgr_stats stats = {.bytes = sizeof(stats)};
	int code = PGR_OK, result = PAIR_PASSED;

	for (unsigned int i = 0; i < 3; i++)
		if (pgr_open(&config, &ends[i]) != PGR_OK)
			return pair_report(pair, PAIR_FAILED, "an endpoint on udp");
	server = (const struct pgr_datagram *)ends[0]->wire;
	client = (const struct pgr_datagram *)ends[1]->wire;
	pgr_serve(ends[0], ECHO_PROCEDURE, NULL, reply_nothing, NULL);
	pgr_address(ends[0], address, &bytes);
	name = name_of(ends[0]);
	for (unsigned int i = 1; i < 3; i++)
		pgr_bind(ends[i], address, bytes, &peers[i]);
	for (unsigned int round = 0; round < 3 && result == PAIR_PASSED; round++) {
		for (unsigned int i = 0; i < 200 && code == PGR_OK; i++)
			code = call_once(peers[1], ends[1], ends[0]);
		if (server->direct.fd < 0 || client->direct.fd < 0)
			result = pair_report(pair, PAIR_FAILED, "after 200 calls no socket was connected");
		else if (port_is_free(&name))
			result = pair_report(pair, PAIR_FAILED, "anybody may have the port");
		if (!send_junk(&name))
			result = pair_report(pair, PAIR_FAILED, "junk could not be sent");
		for (unsigned int i = 0; i < 300 && code == PGR_OK; i++)
			code = call_once(peers[1], ends[1], ends[0]);
		if (result == PAIR_PASSED && code == PGR_OK && server->direct.fd < 0)
			result = pair_report(pair, PAIR_FAILED,
					     "junk of a stranger closed the connected socket");
		for (unsigned int i = 0; i < 20 && code == PGR_OK; i++)
			code = call_once(peers[1 + i % 2], ends[1 + i % 2], ends[0]);
		if (result == PAIR_PASSED && code == PGR_OK && server->direct.fd >= 0)
			result = pair_report(pair, PAIR_FAILED,
					     "a socket stays connected while two clients call");
	}
	for (unsigned int i = 1; i < 3 && result == PAIR_PASSED; i++) {
		pgr_stats(ends[i], &stats);
		if (stats.retransmissions)
			result = pair_report(pair, PAIR_FAILED, "client %u repeated %llu packets", i,
					     (unsigned long long)stats.retransmissions);
	}
	if (result == PAIR_PASSED && code != PGR_OK)
		result = pair_report(pair, PAIR_FAILED, "a call: %s", pgr_code_name(code));
	pgr_close(ends[0]);
	if (result == PAIR_PASSED && !port_is_free(&name))
		result = pair_report(pair, PAIR_FAILED, "the port of an end that was closed is taken");
	if (result == PAIR_PASSED) {
		code = call_once(peers[1], ends[1], NULL);
		if (code != PGR_E_RESTARTED) /* its host says so */
			result = pair_report(pair, PAIR_FAILED, "a call to an end that was closed: %s",
					     pgr_code_name(code));
	}
	pgr_close(ends[1]);
	pgr_close(ends[2]);
	return result;
}

/* What pgr_resolve makes of a text; PGR_OK: *same_out tells whether it is that address. */
static int resolved(const struct pgr *pgr, const char *text, const uint8_t *address, bool *same_out)
{
	uint8_t got[PGR_ADDRESS_BYTES] = {0};
	size_t bytes = sizeof(got);
	const int code = pgr_resolve(pgr, text, got, &bytes);

	*same_out = code == PGR_OK && bytes == sizeof(got) && memcmp(got, address, sizeof(got)) == 0;
	return code;
}

/* An address of an endpoint, as text and back; on udp also by name, and what is no address. */
static int texts(struct pair *pair, void *arg)
{
	static const char *const wrong[] = {
		"",       "localhost", "localhost:", ":80",  "127.0.0.1:x", "127.0.0.1:65536",
		"::1:80", "[::1]",     "[::1]80",    "[:80", "[]:80"};
	const char *wire = arg ? "udp" : "shm";
	const struct pgr_config config = {.bytes = sizeof(config), .wire = wire, .address = arg};
	char text[PGR_ADDRESS_TEXT_BYTES], begin[32];
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr *pgr = NULL;
	int result = PAIR_PASSED;
	bool same;

	if (pgr_open(&config, &pgr) != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "an endpoint on %s", wire);
	pgr_address(pgr, address, &bytes);
	if (pgr_address_text(pgr, address, bytes, text, sizeof(text)) != PGR_OK ||
	    resolved(pgr, text, address, &same) != PGR_OK || !same)
		result = pair_report(pair, PAIR_FAILED, "%s is not understood, or another", text);
	snprintf(begin, sizeof(begin),
		 strcmp(arg ? arg : "", "::1") ? "%s:" : "[%s]:", arg ? (char *)arg : "");
	if (arg && strncmp(text, begin, strlen(begin)) != 0)
		result = pair_report(pair, PAIR_FAILED, "%s does not begin with %s", text, begin);
	if (arg) {
		char by_name[64];

		/* a machine may know no such name */
		snprintf(by_name, sizeof(by_name), "localhost%s", strrchr(text, ':'));
		if (resolved(pgr, by_name, address, &same) == PGR_OK && !same &&
		    strcmp(arg, "127.0.0.1") == 0)
			result = pair_report(pair, PAIR_FAILED, "%s is another than %s", by_name, text);
		if (resolved(pgr, "no-such-name.invalid:80", address, &same) != PGR_E_WIRE)
			result = pair_report(pair, PAIR_FAILED, "a name that nobody has was found");
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]) && result == PAIR_PASSED; i++)
		if (resolved(pgr, wrong[i], address, &same) != PGR_E_ARGUMENT)
			result = pair_report(pair, PAIR_FAILED, "'%s' was taken for an address", wrong[i]);
	bytes = 8;
	if (pgr_resolve(pgr, text, address, &bytes) != PGR_E_TOO_LARGE)
		result = pair_report(pair, PAIR_FAILED, "8 bytes are no room for an address");
	pgr_close(pgr);
	return result;
}

/* Right after a poll that found nothing to do there is nothing to do, even where something is overdue since the last tick. */
static int polls_for_nothing(struct pair *pair, void *arg)
{
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = arg,
					  .address = "127.0.0.1",
					  .block = 1,
					  .rto_min_ns = 2000000000}; /* a tick each 0.5 s */
	uint64_t due_ns = 0;
	struct pgr *server = NULL, *pgr = NULL;
	int fds[PGR_FDS], outcome = PGR_QUEUED, result = PAIR_PASSED;
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peer;
	int code = pgr_open(&config, &server);

	if (code == PGR_OK)
		code = pgr_open(&config, &pgr);
	if (code != PGR_OK) {
		pgr_close(server);
		return pair_report(pair, code == PGR_E_PERMISSION ? PAIR_SKIPPED : PAIR_FAILED, "%s",
				   pgr_code_name(code));
	}
	pgr_poll(pgr);
	if (pgr_watch(pgr, fds, &due_ns) != PGR_OK || due_ns > UINT64_C(500000000))
		result = pair_report(pair, PAIR_FAILED, "after it was opened");
	pgr_address(server, address, &bytes);
	pgr_bind(pgr, address, bytes, &peer);
	pgr_call(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, done, &outcome);
	pgr_deadline(peer, &outcome, 1000000);
	usleep(5000);
	pgr_poll(pgr);
	if (result == PAIR_PASSED && outcome == PGR_QUEUED && pgr_watch(pgr, fds, &due_ns) != PGR_OK)
		result = pair_report(pair, PAIR_FAILED, "with a call that is overdue");
	while (outcome == PGR_QUEUED) {
		pgr_wait(pgr, UINT64_C(10000000000));
		pgr_poll(pgr);
	}
	if (result == PAIR_PASSED && outcome != PGR_E_DEADLINE)
		result = pair_report(pair, PAIR_FAILED, "the call: %s", pgr_code_name(outcome));
	pgr_close(pgr);
	pgr_close(server);
	return result;
}

static void keep(void *arg, const struct pgr_request *request)
{
	(void)arg, (void)request;
}

static volatile sig_atomic_t closing;

static void close_now(int signal)
{
	(void)signal;
	closing = 1;
}

/*
 * A server that executes no call and is killed, or closes its endpoint and lives on: its client knows at once. The inbox cannot
 * be cut short meanwhile.
 */
static int dies_at_once(struct pair *pair, void *arg)
{
	const bool block = arg && strcmp(arg, "block") == 0, closes = arg && strcmp(arg, "closes") == 0;
	const struct pgr_config config = {.bytes = sizeof(config), .wire = "shm", .block = block};
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	int ends[2], outcome = PGR_QUEUED, result = PAIR_PASSED, number;
	struct timespec begun, ended;
	struct pgr_peer *peer;
	struct pgr *pgr;
	uint32_t owner;
	char path[64];
	pid_t child;

	if (pipe(ends) || (child = fork()) < 0)
		return pair_report(pair, PAIR_FAILED, "no child");
	if (!child) {
		if (pgr_open(&config, &pgr) != PGR_OK ||
		    pgr_serve(pgr, ECHO_PROCEDURE, NULL, keep, NULL) != PGR_OK ||
		    pgr_address(pgr, address, &bytes) != PGR_OK ||
		    write(ends[1], address, sizeof(address)) != sizeof(address))
			_exit(1);
		signal(SIGUSR1, close_now);
		while (!closing)
			pgr_poll(pgr);
		pgr_close(pgr);
		for (;;)
			pause();
	}
	if (read(ends[0], address, sizeof(address)) != sizeof(address) || pgr_open(&config, &pgr) != PGR_OK ||
	    pgr_bind(pgr, address, sizeof(address), &peer) != PGR_OK) {
		kill(child, SIGKILL);
		return pair_report(pair, PAIR_FAILED, "no binding to the child");
	}
	memcpy(&owner, address, sizeof(owner));
	memcpy(&number, address + 4, sizeof(number));
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", owner, number);
	number = open(path, O_RDWR | O_CLOEXEC);
	if (number < 0 || ftruncate(number, 0) == 0 || errno != EPERM)
		result = pair_report(pair, PAIR_FAILED, "a client can make the server's inbox shorter");
	close(number);
	pgr_call(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, done, &outcome);
	for (unsigned int i = 0; i < 200; i++) {
		struct timespec nap = {.tv_nsec = 1000000};

		pgr_poll(pgr);
		nanosleep(&nap, NULL);
	}
	if (outcome != PGR_QUEUED)
		result = pair_report(pair, PAIR_FAILED, "the call did not wait: %s", pgr_code_name(outcome));
	/* it is not waited for: a server's end is not its client's to see to */
	kill(child, closes ? SIGUSR1 : SIGKILL);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		if (block)
			pgr_wait(pgr, UINT64_C(10000000000));
		pgr_poll(pgr);
		clock_gettime(CLOCK_MONOTONIC, &ended);
	} while (outcome == PGR_QUEUED && ended.tv_sec - begun.tv_sec < 9);
	if (result == PAIR_PASSED && (outcome != PGR_E_RESTARTED || ended.tv_sec - begun.tv_sec > 3))
		result = pair_report(pair, PAIR_FAILED, "a call to a server that has ended: %s after %ld s",
				     pgr_code_name(outcome), (long)(ended.tv_sec - begun.tv_sec));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	pgr_close(pgr);
	return result;
}

/* Descriptors, and stretches of memory that are mapped. */
static unsigned int entries_of(const char *path, bool folder)
{
	unsigned int count = 0;
	DIR *names = folder ? opendir(path) : NULL;
	FILE *lines = folder ? NULL : fopen(path, "re");

	for (int c; lines && (c = getc(lines)) != EOF;)
		count += c == '\n';
	while (names && readdir(names))
		count++;
	if (names)
		closedir(names);
	if (lines)
		fclose(lines);
	return count;
}

/* Servers that are killed, one after the other: who calls them keeps nothing of those that are gone. */
static int come_and_go(struct pair *pair, void *arg)
{
	enum { SERVERS = 24, FEW = 8 };
	const struct pgr_config config = {.bytes = sizeof(config), .wire = "shm", .block = arg != NULL};
	unsigned int descriptors = 0, maps = 0, more, mapped;
	int result = PAIR_PASSED, ends[2];
	struct pgr *pgr;

	if (pipe(ends) || pgr_open(&config, &pgr) != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "it cannot be opened");
	for (unsigned int i = 0; i < SERVERS && result == PAIR_PASSED; i++) {
		uint8_t address[PGR_ADDRESS_BYTES];
		size_t bytes = sizeof(address);
		struct pgr_peer *peer;
		const pid_t child = fork();

		if (!child) {
			if (pgr_open(&config, &pgr) != PGR_OK ||
			    pgr_serve(pgr, ECHO_PROCEDURE, NULL, reply_nothing, NULL) != PGR_OK ||
			    pgr_address(pgr, address, &bytes) != PGR_OK ||
			    write(ends[1], address, sizeof(address)) != sizeof(address))
				_exit(1);
			for (;;)
				pgr_poll(pgr);
		}
		if (read(ends[0], address, sizeof(address)) != sizeof(address) ||
		    pgr_bind(pgr, address, sizeof(address), &peer) != PGR_OK)
			result = pair_report(pair, PAIR_FAILED, "no binding to server %u", i);
		else if (call_once(peer, pgr, NULL) != PGR_OK)
			result = pair_report(pair, PAIR_FAILED, "server %u does not answer", i);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		if (result == PAIR_PASSED)
			pgr_unbind(peer);
		pgr_poll(pgr);
		if (i != FEW)
			continue;
		descriptors = entries_of("/proc/self/fd", true);
		maps = entries_of("/proc/self/maps", false);
	}
	more = entries_of("/proc/self/fd", true);
	mapped = entries_of("/proc/self/maps", false);
	if (result == PAIR_PASSED && (more > descriptors + 2 || mapped > maps + 4))
		result = pair_report(pair, PAIR_FAILED,
				     "%u descriptors after %d servers, %u after %d; %u maps, and %u",
				     descriptors, FEW, more, SERVERS, maps, mapped);
	pgr_close(pgr);
	close(ends[0]);
	close(ends[1]);
	return result;
}

/* Nobody has this number, or this port: of which the host says so. */
static int call_nobody(struct pair *pair, void *arg)
{
	uint8_t address[PGR_ADDRESS_BYTES] = {127, 0, 0, 1, 255, 255, 255, 255};
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = arg,
					  .address = "127.0.0.1",
					  .block = 1,
					  .give_up_ns = 300000000};
	struct pgr_peer *peer;
	struct pgr *pgr;
	int code = pgr_open(&config, &pgr);

	if (code != PGR_OK)
		return pair_report(pair, code == PGR_E_PERMISSION ? PAIR_SKIPPED : PAIR_FAILED, "%s",
				   pgr_code_name(code));
	pgr_bind(pgr, address, sizeof(address), &peer);
	code = pgr_call_and_wait(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, NULL);
	pgr_close(pgr);
	return code == (strcmp(arg, "udp") == 0 ? PGR_E_NOBODY : PGR_E_GIVE_UP)
		       ? PAIR_PASSED
		       : pair_report(pair, PAIR_FAILED, "a call to nobody: %s", pgr_code_name(code));
}

static void on_end(void *arg, int code, const void *result, size_t bytes)
{
	(void)result, (void)bytes;
	*(int *)arg = code;
}

/* A server that is there and does nothing: a deadline wakes who sleeps, and a cancelled call ends in one poll. */
static int overdue(struct pair *pair, void *arg)
{
	const struct pgr_config config = {
		.bytes = sizeof(config), .wire = arg, .address = "127.0.0.1", .block = 1};
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t address_bytes = sizeof(address);
	struct pgr *pgr = NULL, *idle = NULL;
	struct timespec begun, ended;
	struct pgr_peer *peer;
	int code = pgr_open(&config, &pgr), outcome = PGR_QUEUED;
	long took_ms;

	if (code == PGR_OK)
		code = pgr_open(&config, &idle);
	if (code != PGR_OK) {
		pgr_close(pgr);
		return pair_report(pair, code == PGR_E_PERMISSION ? PAIR_SKIPPED : PAIR_FAILED, "%s",
				   pgr_code_name(code));
	}
	pgr_address(idle, address, &address_bytes);
	pgr_bind(pgr, address, address_bytes, &peer);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	code = pgr_call_and_wait(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 60000000, NULL);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	took_ms = (ended.tv_sec - begun.tv_sec) * 1000 + (ended.tv_nsec - begun.tv_nsec) / 1000000;
	if (pgr_call(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, on_end, &outcome) == PGR_QUEUED &&
	    pgr_cancel(peer, &outcome) == 1 && outcome == PGR_QUEUED)
		pgr_poll(pgr);
	pgr_close(pgr);
	pgr_close(idle);
	if (code != PGR_E_DEADLINE || took_ms < 60 || took_ms > 3000) /* by itself it takes 10 s */
		return pair_report(pair, PAIR_FAILED, "a deadline of 60 ms: %s after %ld ms",
				   pgr_code_name(code), took_ms);
	return outcome == PGR_E_CANCELLED
		       ? PAIR_PASSED
		       : pair_report(pair, PAIR_FAILED, "a cancelled call: %s", pgr_code_name(outcome));
}

/* ---- long calls ---- */

static void reply_the_same(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov out = {arg, request->args_bytes};

	pgr_reply(request->pgr, &request->token, &out, 1, 0, NULL, NULL);
}

/* More packets than a receiver could report of at once, each way: a wire that loses nothing needs no reports. */
static int very_long(struct pair *pair, void *arg)
{
	const size_t bytes = (size_t)80 << 20;
	const struct pgr_config config = {
		.bytes = sizeof(config), .wire = arg, .address = "127.0.0.1", .message_bytes_max = bytes};
	uint8_t *const data = calloc(1, bytes), *const result = calloc(1, bytes), address[PGR_ADDRESS_BYTES];
	const struct pgr_iov in = {data, bytes}, out = {result, bytes};
	size_t address_bytes = sizeof(address);
	struct pgr *client = NULL, *server = NULL;
	struct pgr_stats stats = {.bytes = sizeof(stats)};
	struct pgr_peer *peer;
	int outcome = PGR_QUEUED;

	memset(data, 1, bytes);
	if (pgr_open(&config, &client) == PGR_OK && pgr_open(&config, &server) == PGR_OK) {
		const time_t end = time(NULL) + 5;

		pgr_serve(server, ECHO_PROCEDURE, NULL, reply_the_same, data);
		pgr_address(server, address, &address_bytes);
		pgr_bind(client, address, address_bytes, &peer);
		pgr_call(peer, ECHO_PROCEDURE, NULL, &in, 1, &out, 1, 0, on_end, &outcome);
		while (outcome == PGR_QUEUED && time(NULL) < end) {
			pgr_poll(client);
			pgr_poll(server);
		}
		pgr_stats(client, &stats);
	}
	if (outcome == PGR_OK && memcmp(data, result, bytes) != 0)
		outcome = PGR_E_WIRE;
	pgr_close(client);
	pgr_close(server);
	free(data);
	free(result);
	/* a client asks after half a second: once it may have been kept waiting, twice it is each way */
	return outcome == PGR_OK && stats.retransmissions < 2
		       ? PAIR_PASSED
		       : pair_report(pair, PAIR_FAILED, "80 MiB: %s, asked for %u times",
				     pgr_code_name(outcome), (unsigned int)stats.retransmissions);
}

/* Short calls one after another on a binding that carries a long one: they do not wait for all of it. */
static int beside_a_long_one(struct pair *pair, void *arg)
{
	enum { LONG_BYTES = 16 << 20, SHORT_LEAST = 25 };
	const struct pgr_config config = {.bytes = sizeof(config), .wire = arg, .address = "127.0.0.1"};
	uint8_t *const data = calloc(1, LONG_BYTES), address[PGR_ADDRESS_BYTES];
	const struct pgr_iov in = {data, LONG_BYTES};
	size_t address_bytes = sizeof(address);
	struct pgr *client = NULL, *server = NULL;
	struct pgr_peer *peer;
	int outcome = PGR_E_WIRE, one = PGR_OK, count = 0;

	if (pgr_open(&config, &client) == PGR_OK && pgr_open(&config, &server) == PGR_OK) {
		pgr_serve(server, ECHO_PROCEDURE, NULL, reply_nothing, NULL);
		pgr_address(server, address, &address_bytes);
		pgr_bind(client, address, address_bytes, &peer);
		call_once(peer, client, server); /* they know each other */
		outcome = PGR_QUEUED;
		pgr_call(peer, ECHO_PROCEDURE, NULL, &in, 1, NULL, 0, 0, on_end, &outcome);
		while (outcome == PGR_QUEUED) {
			if (one == PGR_OK) {
				count++;
				one = PGR_QUEUED;
				pgr_call(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, on_end, &one);
			}
			pgr_poll(client);
			pgr_poll(server);
		}
	}
	pgr_close(client);
	pgr_close(server);
	free(data);
	if (outcome != PGR_OK || count < SHORT_LEAST)
		return pair_report(pair, PAIR_FAILED, "%d short calls of at least %d; the long one: %s",
				   count, SHORT_LEAST, pgr_code_name(outcome));
	return PAIR_PASSED;
}

/* Whether what an endpoint watches becomes readable within ms; -1: it is to be polled at once. */
static int told(struct pgr *pgr, int ms)
{
	struct pollfd ready[PGR_FDS];
	uint64_t due_ns;
	int fds[PGR_FDS], code = pgr_watch(pgr, fds, &due_ns);

	for (unsigned int i = 0; i < PGR_FDS; i++)
		ready[i] = (struct pollfd){.fd = code == PGR_OK ? fds[i] : -1, .events = POLLIN};
	return code == PGR_OK ? poll(ready, PGR_FDS, ms) : -1;
}

/* What an event loop watches wakes it for a call that comes before it watches and after, of a stranger's as of a friend's. */
static int tells_a_loop(struct pair *pair, void *arg)
{
	const struct pgr_config config = {
		.bytes = sizeof(config), .wire = arg, .address = "127.0.0.1", .block = 1};
	struct pgr *server = NULL, *clients[2] = {NULL};
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peers[2];
	int code = pgr_open(&config, &server), result = PAIR_PASSED;

	if (code != PGR_OK)
		return pair_report(pair, code == PGR_E_PERMISSION ? PAIR_SKIPPED : PAIR_FAILED, "%s",
				   pgr_code_name(code));
	pgr_serve(server, ECHO_PROCEDURE, NULL, reply_nothing, NULL);
	pgr_address(server, address, &bytes);
	for (unsigned int i = 0; i < 2; i++)
		if (pgr_open(&config, &clients[i]) != PGR_OK ||
		    pgr_bind(clients[i], address, bytes, &peers[i]) != PGR_OK)
			return pair_report(pair, PAIR_FAILED, "an endpoint on %s", (const char *)arg);
	for (unsigned int round = 0; round < 8 && result == PAIR_PASSED; round++) {
		struct pgr *const client = clients[round / 2 % 2];
		int outcome = PGR_QUEUED, before, after;

		/* what is left of the last call is done */
		for (unsigned int i = 0; i < 100000 && (before = told(server, 20)) != 0; i++)
			pgr_poll(server);
		if (before != 0)
			result = pair_report(pair, PAIR_FAILED, "round %u: woken without end", round);
		if (round % 2)
			pgr_poll(server); /* it is awake when the call comes */
		pgr_call(peers[round / 2 % 2], ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, done, &outcome);
		after = told(server, 2000);
		if (result == PAIR_PASSED && after == 0)
			result = pair_report(pair, PAIR_FAILED, "round %u: a call came and the loop slept",
					     round);
		for (unsigned int i = 0; i < 100000 && outcome == PGR_QUEUED; i++) {
			pgr_poll(server);
			pgr_poll(client);
		}
		if (result == PAIR_PASSED && outcome != PGR_OK)
			result =
				pair_report(pair, PAIR_FAILED, "round %u: %s", round, pgr_code_name(outcome));
	}
	pgr_close(server);
	pgr_close(clients[0]);
	pgr_close(clients[1]);
	return result;
}

/* Only lo is here, and it is down: the call is given up, and why is told. */
static int no_way_there(struct pair *pair, void *arg)
{
	const uint8_t address[PGR_ADDRESS_BYTES] = {10, 1, 1, 1, 0, 80};
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = "udp",
					  .address = "0.0.0.0",
					  .block = 1,
					  .give_up_ns = 300000000};
	char why[160] = "x";
	struct pgr_peer *peer;
	struct pgr *pgr;
	int code;

	(void)arg;
	if (pgr_open(&config, &pgr) != PGR_OK || pgr_bind(pgr, address, sizeof(address), &peer) != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "an endpoint on udp");
	pgr_why(pgr, why, sizeof(why));
	if (why[0])
		return pair_report(pair, PAIR_FAILED, "before the first packet: %s", why);
	code = pgr_call_and_wait(peer, ECHO_PROCEDURE, NULL, NULL, 0, NULL, 0, 0, NULL);
	pgr_why(pgr, why, sizeof(why));
	pgr_close(pgr);
	return code == PGR_E_GIVE_UP && strcmp(why, "10.1.1.1:80: Network is unreachable") == 0
		       ? PAIR_PASSED
		       : pair_report(pair, PAIR_FAILED, "%s; why: '%s'", pgr_code_name(code), why);
}

/* ---- refusals ---- */

/* Opening must fail with this code, and say a sentence with this word. */
static int refused(struct pair *pair, struct pgr_config config, int code, const char *word)
{
	char error[256] = "";
	struct pgr *pgr = NULL;
	int got;

	config.bytes = sizeof(config);
	config.error = error;
	config.error_bytes = sizeof(error);
	got = pgr_open(&config, &pgr);
	if (got == PGR_OK)
		pgr_close(pgr);
	if (got == PGR_E_PERMISSION && code != got)
		return pair_report(pair, PAIR_SKIPPED, "%s", error);
	if (got != code || !strstr(error, word))
		return pair_report(pair, PAIR_FAILED, "opening %s: %s, '%s', not %s", config.wire,
				   pgr_code_name(got), error, pgr_code_name(code));
	return PAIR_PASSED;
}

static int no_permission(struct pair *pair, void *arg)
{
	const struct pgr_config config = {.wire = arg, .device = "lo", .address = "127.0.0.1"};

	if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		return pair_report(pair, PAIR_SKIPPED, "cannot give up being root: %s", strerror(errno));
	_exit(refused(pair, config, PGR_E_PERMISSION,
		      "CAP_NET_RAW")); /* the sanitizer's own end needs more */
}

static int wrong_arguments(struct pair *pair, void *arg)
{
	const struct {
		struct pgr_config config;
		const char *word;
		int code;
	} wrong[] = {
		{{.wire = "udp"}, "IPv4", PGR_E_ARGUMENT},
		{{.wire = "ip", .address = "::1"}, "IPv4", PGR_E_ARGUMENT},
		{{.wire = "xdp", .address = "10.0.0.1"}, "device", PGR_E_ARGUMENT},
		{{.wire = "xdp", .device = "lo"}, "IPv4", PGR_E_ARGUMENT},
		{{.wire = "xdp", .device = "lo", .address = "10.0.0.1", .xdp_attach = "quick"},
		 "quick",
		 PGR_E_ARGUMENT},
		{{.wire = "xdp", .device = "no-such-one", .address = "10.0.0.1"}, "no interface", PGR_E_WIRE},
		{{.wire = "udp", .address = "192.0.2.1"}, "binding", PGR_E_WIRE},
		{{.wire = "pigeons"}, "pigeons", PGR_E_ARGUMENT},
	};

	(void)arg;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (refused(pair, wrong[i].config, wrong[i].code, wrong[i].word) != PAIR_PASSED)
			return PAIR_FAILED;
	return PAIR_PASSED;
}

static int not_our_address(struct pair *pair, void *arg)
{
	(void)arg;
	return refused(pair, (struct pgr_config){.wire = "ip", .address = "192.0.2.1"}, PGR_E_WIRE,
		       "binding");
}

static int device_is_down(struct pair *pair, void *arg)
{
	(void)arg;
	return refused(pair, (struct pgr_config){.wire = "xdp", .device = "lo", .address = "127.0.0.1"},
		       PGR_E_WIRE, "is down");
}

static int ports_are_taken(struct pair *pair, void *arg)
{
	struct pgr_config config = {.bytes = sizeof(config), .wire = "udp", .address = "127.0.0.1"};
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr *first;
	int result;

	(void)arg;
	if (pgr_open(&config, &first) != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "no port at all");
	pgr_address(first, address, &bytes);
	config.port_first = config.port_last = (uint16_t)(address[4] << 8 | address[5]);
	result = refused(pair, config, PGR_E_PORT, "no free UDP port");
	pgr_close(first);
	return result;
}

static int wait_for_client(struct pair *pair, void *arg)
{
	(void)arg;
	pair->ready = 1;
	while (!pair->stop)
		usleep(1000);
	return PAIR_PASSED;
}

/* One endpoint a queue; and one that was killed leaves nothing on the device. */
static int one_a_queue(struct pair *pair, void *arg)
{
	const struct wire_case one = {.wire = "xdp", .attach = arg, .hosts = true};
	struct pgr *pgr;
	int status = 0, result;
	const pid_t pid = fork();

	if (pid == 0) {
		result = open_end(pair, &one, true, &pgr);
		if (result == PAIR_PASSED)
			raise(SIGKILL);
		_exit(result);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	result = open_end(pair, &one, true, &pgr);
	if (result != PAIR_PASSED)
		return result;
	result = refused(pair,
			 (struct pgr_config){.wire = "xdp",
					     .device = PAIR_CLIENT_DEVICE,
					     .address = PAIR_CLIENT_ADDRESS,
					     .xdp_attach = arg},
			 PGR_E_WIRE, "queue 0");
	pgr_close(pgr);
	return result;
}

/* ---- the plan ---- */

static int number, failures;

static void outcome(int result, const char *name)
{
	number++;
	if (result == PAIR_SKIPPED) {
		printf("ok %d - %s # SKIP %s\n", number, name, pair_why());
	} else if (result == PAIR_PASSED) {
		printf("ok %d - %s\n", number, name);
	} else {
		failures++;
		printf("not ok %d - %s\n# %s\n", number, name, pair_why());
	}
	fflush(stdout);
}

/* AF_XDP is an option of the kernel. */
static bool kernel_has_v6(void)
{
	return access("/proc/net/if_inet6", F_OK) == 0;
}

static bool kernel_has_xdp(void)
{
	const int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != EAFNOSUPPORT;
}

int main(void)
{
	static const struct {
		const char *name;
		struct wire_case one;
	} wires[] = {
		{"shm, polling", {"shm", NULL, NULL, false, false, false, false}},
		{"shm, sleeping", {"shm", NULL, NULL, false, true, false, false}},
		{"udp on loopback, polling", {"udp", NULL, NULL, false, false, false, false}},
		{"udp on loopback, sleeping", {"udp", NULL, NULL, false, true, false, false}},
		{"udp between hosts, sleeping", {"udp", NULL, NULL, true, true, false, false}},
		{"udp between hosts, keyed", {"udp", NULL, NULL, true, false, true, false}},
		{"udp on loopback, IPv6, polling", {"udp", NULL, NULL, false, false, false, true}},
		{"udp between hosts, IPv6, sleeping", {"udp", NULL, NULL, true, true, false, true}},
		{"ip on loopback, polling", {"ip", NULL, NULL, false, false, false, false}},
		{"ip on loopback, sleeping", {"ip", NULL, NULL, false, true, false, false}},
		{"ip between hosts, sleeping", {"ip", NULL, NULL, true, true, false, false}},
		{"xdp between hosts, generic, polling", {"xdp", NULL, "generic", true, false, false, false}},
		{"xdp between hosts, generic, sleeping", {"xdp", NULL, "generic", true, true, false, false}},
		{"xdp between hosts, native, polling", {"xdp", NULL, "native", true, false, false, false}},
		{"xdp between hosts, native, sleeping", {"xdp", NULL, "native", true, true, false, false}},
		{"ip calls xdp: the same on the network", {"xdp", "ip", NULL, true, true, false, false}},
	};
	static const struct {
		const char *name;
		bool hosts;
		pair_side *server, *client;
		const char *arg;
	} others[] = {
		{"several endpoints share an address on ip", false, NULL, share_an_address, NULL},
		{"a busy client keeps no other out, on shm", false, NULL, come_late, "shm"},
		{"a busy client keeps no other out, on udp", false, NULL, come_late, "udp"},
		{"a busy client keeps no other out, on ip", false, NULL, come_late, "ip"},
		{"who is alone for a while gets a socket of its own, on udp", false, NULL, alone_for_a_while,
		 "127.0.0.1"},
		{"who is alone for a while gets a socket of its own, on udp, IPv6", false, NULL,
		 alone_for_a_while, "::1"},
		{"texts of addresses, on udp", false, NULL, texts, "127.0.0.1"},
		{"texts of addresses, on udp, IPv6", false, NULL, texts, "::1"},
		{"texts of addresses, on shm", false, NULL, texts, NULL},
		{"an event loop is told, on shm", false, NULL, tells_a_loop, "shm"},
		{"an event loop is told, on udp", false, NULL, tells_a_loop, "udp"},
		{"an event loop is told, on ip", false, NULL, tells_a_loop, "ip"},
		{"nobody is told to poll for nothing, on shm", false, NULL, polls_for_nothing, "shm"},
		{"nobody is told to poll for nothing, on udp", false, NULL, polls_for_nothing, "udp"},
		{"nobody is told to poll for nothing, on ip", false, NULL, polls_for_nothing, "ip"},
		{"a server that is killed is missed at once, on shm, polling", false, NULL, dies_at_once,
		 NULL},
		{"a server that is killed is missed at once, on shm, sleeping", false, NULL, dies_at_once,
		 "block"},
		{"a server that closes is missed at once, on shm", false, NULL, dies_at_once, "closes"},
		{"servers that come and go leave nothing, on shm, polling", false, NULL, come_and_go, NULL},
		{"servers that come and go leave nothing, on shm, sleeping", false, NULL, come_and_go,
		 "block"},
		{"a call to nobody ends, on udp", false, NULL, call_nobody, "udp"},
		{"a call to nobody ends, on ip", false, NULL, call_nobody, "ip"},
		{"deadlines and cancelled calls, on shm", false, NULL, overdue, "shm"},
		{"deadlines and cancelled calls, on udp", false, NULL, overdue, "udp"},
		{"deadlines and cancelled calls, on ip", false, NULL, overdue, "ip"},
		{"a call of 80 MiB, on shm", false, NULL, very_long, "shm"},
		{"short calls beside a long one, on udp", false, NULL, beside_a_long_one, "udp"},
		{"short calls beside a long one, on shm", false, NULL, beside_a_long_one, "shm"},
		{"why a packet cannot leave", true, NULL, no_way_there, NULL},
		{"wrong arguments are refused", false, NULL, wrong_arguments, NULL},
		{"udp ports that are all taken", false, NULL, ports_are_taken, NULL},
		{"ip on an address of another host", false, NULL, not_our_address, NULL},
		{"ip without permission", false, NULL, no_permission, "ip"},
		{"xdp without permission", false, NULL, no_permission, "xdp"},
		{"xdp on a device that is down", true, NULL, device_is_down, NULL},
		{"one xdp endpoint a queue, none after it was killed, generic", true, wait_for_client,
		 one_a_queue, "generic"},
		{"one xdp endpoint a queue, none after it was killed, native", true, wait_for_client,
		 one_a_queue, "native"},
	};
	const bool has_xdp = kernel_has_xdp(), has_v6 = kernel_has_v6();

	for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++) {
		struct wire_case one = wires[i].one;

		if (strcmp(one.wire, "xdp") == 0 && !has_xdp) {
			printf("ok %d - %s # SKIP this kernel has no AF_XDP\n", ++number, wires[i].name);
			continue;
		}
		if (one.v6 && !has_v6) {
			printf("ok %d - %s # SKIP no IPv6 here\n", ++number, wires[i].name);
			continue;
		}
		outcome(pair_run(one.hosts, SECONDS, run_server, run_client, &one), wires[i].name);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strstr(others[i].name, "xdp") && !has_xdp) {
			printf("ok %d - %s # SKIP this kernel has no AF_XDP\n", ++number, others[i].name);
			continue;
		}
		if (strstr(others[i].name, "IPv6") && !has_v6) {
			printf("ok %d - %s # SKIP no IPv6 here\n", ++number, others[i].name);
			continue;
		}
		outcome(pair_run(others[i].hosts, SECONDS, others[i].server, others[i].client,
				 (void *)(uintptr_t)others[i].arg),
			others[i].name);
	}
	printf("1..%d\n", number);
	return failures ? 1 : 0;
}
