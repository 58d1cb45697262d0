/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts with a bridge between them that drops what is longer than 1,300 bytes, and says nothing; and a route that claims
 * to be narrow, and is not. Calls and results of all lengths arrive, and nothing is cut up on its way. TAP on standard
 * output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/echo.h"

enum { NARROW_BYTES = 1300, SECONDS = 60, CALLS = 40 };

struct path {
	const char *name, *wire;
	/* what a packet may have on the bridge, or on the route; 0: all */
	unsigned int bridge_bytes, route_bytes;
	/* config.packet_bytes_max; 0: the wire's */
	uint32_t packet_bytes_max;
	/* bindings that have to go over to small packets */
	uint64_t shrunk;
};

static int open_end(struct pair *pair, const struct path *path, bool client, struct pgr **pgr)
{
	const struct pgr_config config = {
		.wire = path->wire,
		.block = 1,
		/* of one end, so that the other has to be told */
		.packet_bytes_max = client ? 0 : path->packet_bytes_max,
	};

	return pair_open(pair, config, client, pgr);
}

static int run_server(struct pair *pair, void *arg)
{
	struct pgr *pgr;
	const int result = open_end(pair, arg, false, &pgr);

	return result == PAIR_PASSED ? echo_serve(pair, pgr, true) : result;
}

/* IP packets that this host has cut up; UINT64_MAX: the kernel does not say. */
static unsigned long long fragments(void)
{
	unsigned long long made = ~0ull, value[32];
	char line[1024], names[1024] = "";
	FILE *file = fopen("/proc/net/snmp", "re");

	while (file && fgets(line, sizeof(line), file)) {
		char *rest = line, *word;
		size_t count = 0;

		if (strncmp(line, "Ip: ", 4) != 0)
			continue;
		if (!names[0]) {
			memcpy(names, line, sizeof(names));
			continue;
		}
		while ((word = strsep(&rest, " \n")) && count < 32)
			value[count++] = strtoull(word, NULL, 10);
		rest = names;
		for (size_t i = 0; i < count && (word = strsep(&rest, " \n")); i++)
			if (strcmp(word, "FragCreates") == 0)
				made = value[i];
	}
	if (file)
		fclose(file);
	return made;
}

static int run_client(struct pair *pair, void *arg)
{
	/* the first is alone, so that the second, of one packet that does not fit, is the one that meets it */
	static const uint32_t few[] = {8}, sizes[] = {1400, 8, 4000, 100000, 1200, 300000};
	const struct echo_calls first = {"a first call", few, 1, 1, 1};
	const struct echo_calls calls = {"calls of all lengths", sizes, 6, CALLS, 4};
	const struct path *path = arg;
	struct pgr_stats stats = {.bytes = sizeof(stats)};
	struct pgr_peer *peer;
	struct pgr *pgr;
	int result = open_end(pair, path, true, &pgr);

	if (result != PAIR_PASSED)
		return result;
	if (!pair_await(pair))
		return PAIR_FAILED;
	if (path->route_bytes &&
	    !pair_ip("route replace " PAIR_SERVER_ADDRESS "/32 dev " PAIR_CLIENT_DEVICE " mtu %u",
		     path->route_bytes))
		return pair_report(pair, PAIR_SKIPPED, "no route with a limit of its own");
	pgr_bind(pgr, pair->address, sizeof(pair->address), &peer);
	result = echo_call(pair, pgr, peer, true, &first);
	if (result == PAIR_PASSED)
		result = echo_call(pair, pgr, peer, true, &calls);
	pgr_stats(pgr, &stats);
	if (result == PAIR_PASSED && stats.bindings_shrunk != path->shrunk)
		result = pair_report(pair, PAIR_FAILED, "%llu bindings went over to small packets, not %llu",
				     (unsigned long long)stats.bindings_shrunk,
				     (unsigned long long)path->shrunk);
	if (result == PAIR_PASSED && fragments() != 0)
		result = pair_report(pair, PAIR_FAILED, "%llu fragments were made", fragments());
	pgr_close(pgr);
	return result;
}

int main(void)
{
	static struct path paths[] = {
		{"udp, a narrow bridge", "udp", NARROW_BYTES, 0, 0, 1},
		{"ip, a narrow bridge", "ip", NARROW_BYTES, 0, 0, 1},
		{"xdp, a narrow bridge", "xdp", NARROW_BYTES, 0, 0, 1},
		{"udp, a server that says its limit", "udp", NARROW_BYTES, 0, 1264, 0},
		{"ip, a server that says its limit", "ip", NARROW_BYTES, 0, 1264, 0},
		{"udp, a route that is wider than it says", "udp", 0, NARROW_BYTES, 0, 0},
		{"ip, a route that is wider than it says", "ip", 0, NARROW_BYTES, 0, 0},
	};
	const unsigned int count = sizeof(paths) / sizeof(paths[0]);
	int status = 0;

	printf("TAP version 13\n1..%u\n", count);
	for (unsigned int i = 0; i < count; i++) {
		struct path *path = &paths[i];
		const int result = path->bridge_bytes ? pair_run_narrow(path->bridge_bytes, SECONDS,
									run_server, run_client, path)
						      : pair_run(true, SECONDS, run_server, run_client, path);

		printf("%s %u - %s%s%s\n", result == PAIR_FAILED ? "not ok" : "ok", i + 1, path->name,
		       result == PAIR_SKIPPED ? " # SKIP " : "", result == PAIR_SKIPPED ? pair_why() : "");
		if (result == PAIR_FAILED)
			printf("# %s\n", pair_why());
		fflush(stdout);
		status |= result == PAIR_FAILED;
	}
	return status;
}
