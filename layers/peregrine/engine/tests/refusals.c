/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an endpoint refuses, and with which code; and what a request says of the memory that its arguments lie in. Both ends are
 * in one process. TAP on standard output.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../core/peer.h"
#include "../wires/datagram.h"
#include "support/alone.h"

enum { ECHO = 1, LONG_BYTES = 300000 };

static char error[256];

static int try_open(const char *wire, const char *address, uint32_t off, struct pgr **pgr_out)
{
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = wire,
					  .address = address,
					  .off = off,
					  .peers_max = 3,
					  .give_up_ns = UINT64_C(20000000000),
					  .error = error,
					  .error_bytes = sizeof(error)};

	error[0] = '\0';
	return pgr_open(&config, pgr_out);
}

static struct pgr *open_end(const char *wire, const char *address, uint32_t off)
{
	struct pgr *pgr = NULL;

	if (try_open(wire, address, off, &pgr) != PGR_OK) {
		say("%s: %s", wire, error);
		exit(FAILED);
	}
	return pgr;
}

static int bind_to(struct pgr *pgr, const struct pgr *to, struct pgr_peer **peer_out)
{
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);

	pgr_address(to, address, &bytes);
	return pgr_bind(pgr, address, bytes, peer_out);
}

static void on_done(void *arg, int code, const void *result, size_t bytes)
{
	(void)result, (void)bytes;
	*(int *)arg = code;
}

/* What the call ends with; both ends are polled, `server` may be NULL. PGR_QUEUED: with nothing, for so long. */
static int call(struct pgr *server, struct pgr_peer *peer, const void *args, size_t bytes, uint64_t within_ns)
{
	const uint64_t begin_ns = now_ns();
	int outcome = PGR_QUEUED, code;

	code = pgr_call(peer, ECHO, NULL, &(struct pgr_iov){(void *)(uintptr_t)args, bytes}, 1, NULL, 0, 0,
			on_done, &outcome);
	if (code != PGR_QUEUED)
		return code;
	while (outcome == PGR_QUEUED && now_ns() - begin_ns < within_ns) {
		if (server)
			pgr_poll(server);
		pgr_poll(peer->pgr);
	}
	return outcome;
}

/* ---- where arguments lie ---- */

struct seen {
	uint32_t calls, shared,
		mapped; /* said to be shared; others than this process have them mapped, or may */
};

/* Whether the page of this address is of a shared mapping, as the kernel shows it. */
static bool is_shared(const void *at)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long begin, last;
	char rights[8], line[512];
	bool shared = false;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &begin, &last, rights) == 3 && (uintptr_t)at >= begin &&
		    (uintptr_t)at < last)
			shared = rights[3] == 's';
	if (maps)
		fclose(maps);
	return shared;
}

static void on_look(void *arg, const struct pgr_request *request)
{
	struct seen *seen = arg;

	seen->calls++;
	seen->shared += request->shared;
	seen->mapped += is_shared(request->args);
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

static int where(const char *wire, uint32_t off)
{
	struct pgr *server = open_end(wire, "127.0.0.1", off), *client = open_end(wire, "127.0.0.1", off);
	const size_t single = pgr_packet_bytes(client);
	const size_t sizes[] = {8, 8, 8, single, single + 1, LONG_BYTES};
	uint8_t *own = calloc(1, LONG_BYTES), *lent = pgr_alloc(client, LONG_BYTES);
	struct seen seen;
	struct pgr_peer *peer;
	int code = FAILED;

	pgr_serve(server, ECHO, NULL, on_look, &seen);
	if (bind_to(client, server, &peer) == PGR_OK)
		code = PASSED;
	for (unsigned int i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]) && code == PASSED; i++) {
		const size_t bytes = sizes[i / 2];

		seen = (struct seen){0};
		code = call(server, peer, i % 2 ? lent : own, bytes, UINT64_C(10000000000));
		if (code != PGR_OK || seen.calls != 1)
			code = say("%s, %zu bytes: %s", wire, bytes, pgr_code_name(code));
		else if (seen.shared != seen.mapped)
			code = say("%s, off %u, %zu bytes: shared is %u where it is %u", wire, off, bytes,
				   seen.shared, seen.mapped);
	}
	pgr_close(client);
	pgr_close(server);
	free(own);
	return code;
}

static int where_on_shm(void)
{
	return where("shm", 0) || where("shm", PGR_OFF_IN_PLACE) || where("shm", PGR_OFF_ALL);
}

static int where_on_udp(void)
{
	return where("udp", 0) || where("udp", PGR_OFF_ALL);
}

/* ---- a limit of files ---- */

static bool limit_files(rlim_t bytes)
{
	return setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}) == 0;
}

static rlim_t inbox_bytes(void)
{
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr *pgr = open_end("shm", NULL, 0);
	off_t all;
	uint32_t fd;

	pgr_address(pgr, address, &bytes);
	memcpy(&fd, address + 4, sizeof(fd));
	all = lseek((int)fd, 0, SEEK_END);
	pgr_close(pgr);
	return (rlim_t)all;
}

static int file_limit(void)
{
	const rlim_t most = inbox_bytes();
	struct pgr *pgr = NULL;
	int code;

	signal(SIGXFSZ, SIG_DFL);
	if (!limit_files(most) || try_open("shm", NULL, 0, &pgr) != PGR_OK)
		return say("at the limit: %s", error);
	pgr_close(pgr);
	if (!limit_files(most - 1))
		return FAILED;
	code = try_open("shm", NULL, 0, &pgr);
	if (code != PGR_E_WIRE || !strstr(error, "ulimit -f"))
		return say("below it: %s, '%s'", pgr_code_name(code), error);
	return limit_files(0) && try_open("shm", NULL, 0, &pgr) == PGR_E_WIRE ? PASSED : FAILED;
}

/* Memory that nobody else may open is memory all the same. */
static int file_limit_of_memory(void)
{
	struct pgr *server = open_end("shm", NULL, 0), *client = open_end("shm", NULL, 0);
	struct pgr_stats stats = {.bytes = sizeof(stats)};
	struct seen seen = {0};
	struct pgr_peer *peer;
	uint8_t *memory;
	int code;

	signal(SIGXFSZ, SIG_DFL);
	pgr_serve(server, ECHO, NULL, on_look, &seen);
	if (bind_to(client, server, &peer) != PGR_OK || !limit_files(100000) ||
	    !(memory = pgr_alloc(client, LONG_BYTES)))
		return say("no memory");
	memset(memory, 1, LONG_BYTES);
	code = call(server, peer, memory, LONG_BYTES, UINT64_C(10000000000));
	pgr_stats(client, &stats);
	if (code != PGR_OK || stats.references)
		return say("%s, %u of it lent", pgr_code_name(code), (unsigned int)stats.references);
	limit_files(LONG_BYTES + 8192);
	memory = pgr_alloc(client, LONG_BYTES);
	code = call(server, peer, memory, LONG_BYTES, UINT64_C(10000000000));
	pgr_stats(client, &stats);
	pgr_close(client);
	pgr_close(server);
	return code == PGR_OK && stats.references == 1 ? PASSED : say("within the limit it is not lent");
}

/* ---- addresses ---- */

/* Whoever can be bound to can pass calls on, and nobody else. */
static int bind_at(struct pgr *pgr, const uint8_t *address, size_t bytes)
{
	struct pgr_peer *peer;
	const int code = pgr_bind(pgr, address, bytes, &peer);

	if (code == PGR_OK) {
		pgr_unbind(peer);
		pgr_poll(pgr);
	}
	for (uint32_t allow = 0; allow < 2; allow++)
		if (pgr_delegations_from(pgr, address, bytes, allow) != code)
			return PGR_E_WIRE;
	return code;
}

static int bind_text(struct pgr *pgr, const char *text)
{
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	const int code = pgr_resolve(pgr, text, address, &bytes);

	return code == PGR_OK ? bind_at(pgr, address, bytes) : code;
}

static int addresses(const char *own, const char *const *wrong, const char *const *right)
{
	struct pgr *pgr = NULL;
	int result = PASSED;

	if (try_open("udp", own, 0, &pgr) != PGR_OK)
		return SKIPPED;
	for (; *wrong && result == PASSED; wrong++)
		if (bind_text(pgr, *wrong) != PGR_E_ARGUMENT)
			result = say("%s was not refused", *wrong);
	for (; *right && result == PASSED; right++)
		if (bind_text(pgr, *right) != PGR_OK)
			result = say("%s was refused", *right);
	pgr_close(pgr);
	return result;
}

static int addresses_v4(void)
{
	static const char *const wrong[] = {"0.0.0.0:7",         "255.255.255.255:7", "224.0.0.1:7",
					    "239.255.255.255:7", "127.0.0.1:0",       NULL};
	static const char *const right[] = {"127.0.0.1:7", "0.0.0.1:7", "223.255.255.255:7",
					    "240.0.0.1:65535", NULL};

	return addresses("127.0.0.1", wrong, right);
}

static int addresses_v6(void)
{
	static const char *const wrong[] = {"[::]:7", "[ff02::1]:7", "[::ffff:127.0.0.1]:7", "[::1]:0", NULL};
	static const char *const right[] = {"[::1]:7", "[fd00::1]:65535", NULL};

	return addresses("::1", wrong, right);
}

/* The address of a server that listens everywhere names no host. */
static int address_of_all(void)
{
	struct pgr *server = open_end("udp", "0.0.0.0", 0), *client = open_end("udp", "127.0.0.1", 0);
	struct pgr_peer *peer;
	const int code = bind_to(client, server, &peer);

	pgr_close(client);
	pgr_close(server);
	return code == PGR_E_ARGUMENT ? PASSED : say("0.0.0.0: %s", pgr_code_name(code));
}

static int addresses_ip(void)
{
	struct pgr *pgr = NULL;
	uint8_t address[8] = {127, 0, 0, 1, 1, 2, 3, 4};
	int codes[4];

	if (try_open("ip", "127.0.0.1", 0, &pgr) == PGR_E_PERMISSION)
		return SKIPPED;
	codes[0] = bind_at(pgr, address, sizeof(address));
	memset(address + 4, 0, 4);
	codes[1] = bind_at(pgr, address, sizeof(address));
	memcpy(address, (uint8_t[8]){0, 0, 0, 0, 1, 2, 3, 4}, 8);
	codes[2] = bind_at(pgr, address, sizeof(address));
	address[0] = 224;
	codes[3] = bind_at(pgr, address, sizeof(address));
	pgr_close(pgr);
	return codes[0] == PGR_OK && codes[1] == PGR_E_ARGUMENT && codes[2] == PGR_E_ARGUMENT &&
			       codes[3] == PGR_E_ARGUMENT
		       ? PASSED
		       : say("%d %d %d %d", codes[0], codes[1], codes[2], codes[3]);
}

/* ---- as many as there may be, and sizes ---- */

static int full(void)
{
	struct pgr *server = open_end("udp", "127.0.0.1", 0), *client = open_end("udp", "127.0.0.1", 0);
	struct pgr_peer *peers[4];
	int codes[5], last = PGR_OK;

	for (unsigned int i = 0; i < 4; i++)
		codes[i] = bind_to(client, server, &peers[i]);
	pgr_unbind(peers[1]);
	codes[4] = bind_to(client, server, &peers[1]);
	if (codes[2] != PGR_OK || codes[3] != PGR_E_FULL || codes[4] != PGR_OK)
		return say("bindings: %d, %d, then %d", codes[2], codes[3], codes[4]);
	for (uint32_t i = 0; i < PGR_PROCEDURES_MAX && last == PGR_OK; i++)
		last = pgr_serve(server, i, NULL, on_look, NULL);
	codes[0] = pgr_serve(server, PGR_PROCEDURES_MAX, NULL, on_look, NULL);
	codes[1] = pgr_serve(server, 5, NULL, on_look, NULL);
	pgr_close(client);
	pgr_close(server);
	return last == PGR_OK && codes[0] == PGR_E_FULL && codes[1] == PGR_E_ARGUMENT
		       ? PASSED
		       : say("procedures: %d, %d, one that is taken: %d", last, codes[0], codes[1]);
}

static int sizes_of_counts(void)
{
	struct pgr *server = open_end("udp", "127.0.0.1", 0), *client = open_end("udp", "127.0.0.1", 0);
	struct pgr_peer_stats of_peer, peer_before;
	struct pgr_stats stats, before;
	struct pgr_peer *peer = NULL;
	bool ok = bind_to(client, server, &peer) == PGR_OK;

	memset(&stats, 0x5a, sizeof(stats));
	memset(&of_peer, 0x5a, sizeof(of_peer));
	for (size_t bytes = 0; bytes <= sizeof(size_t); bytes += sizeof(size_t)) {
		stats.bytes = of_peer.bytes = bytes;
		before = stats;
		peer_before = of_peer;
		ok &= pgr_stats(client, &stats) == PGR_E_ARGUMENT &&
		      memcmp(&stats, &before, sizeof(stats)) == 0;
		ok &= pgr_peer_stats(peer, &of_peer) == PGR_E_ARGUMENT &&
		      memcmp(&of_peer, &peer_before, sizeof(of_peer)) == 0;
	}
	stats.bytes = offsetof(struct pgr_stats, packets_received); /* of an older program */
	ok &= pgr_stats(client, &stats) == PGR_OK && stats.packets_sent == 0 &&
	      stats.packets_received == UINT64_C(0x5a5a5a5a5a5a5a5a);
	of_peer.bytes = sizeof(of_peer);
	ok &= pgr_peer_stats(peer, &of_peer) == PGR_OK && of_peer.silent_ns == UINT64_MAX;
	pgr_close(client);
	pgr_close(server);
	return ok ? PASSED : FAILED;
}

int main(void)
{
	static const struct alone_test tests[] = {
		{"where arguments lie, on shm", where_on_shm},
		{"where arguments lie, on udp", where_on_udp},
		{"ulimit -f below an inbox", file_limit},
		{"ulimit -f below memory that is asked for", file_limit_of_memory},
		{"addresses that are no host's", addresses_v4},
		{"the same of IPv6", addresses_v6},
		{"the address of who listens everywhere", address_of_all},
		{"addresses on ip", addresses_ip},
		{"as many as there may be", full},
		{"counts without their size", sizes_of_counts},
	};
	return alone_run(&(struct alone){.seconds = 30, .skip = "it is not to be had here"}, tests,
			 sizeof(tests) / sizeof(tests[0]));
}
