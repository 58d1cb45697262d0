/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * So many bindings between two endpoints of one process, on the network of the tests, whose time passes as it is told. For who
 * counts instructions (see `bindings`).
 *
 *	pgr-bindings bind COUNT [TIMES]		makes COUNT bindings, and ends them and makes them again TIMES times
 *	pgr-bindings client COUNT [POLLS]	polls an endpoint with COUNT idle bindings POLLS times, a millisecond each
 *	pgr-bindings server COUNT [POLLS]	the same of one that knows COUNT idle clients
 */
#include <stdio.h>
#include <stdlib.h>

#include "../tests/support/net.h"

enum { NULL_CALL = 1, AT_ONCE = 32 };
#define MS UINT64_C(1000000)

static struct pgr *server, *client;

static void on_call(void *arg, const struct pgr_request *request)
{
	(void)arg;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)result, (void)result_bytes;
	if (code != PGR_OK)
		exit(1);
}

static void bind_all(struct pgr_peer **peers, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (pgr_bind(client, server->wire->own.bytes, PGR_ADDRESS_BYTES, &peers[i]) != PGR_OK)
			exit(1);
}

static void unbind_all(struct pgr_peer *const *peers, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		pgr_unbind(peers[i]);
	pgr_poll(client);
}

/* Until all that they make is over, and they are idle. */
static void call_all(struct pgr_peer *const *peers, unsigned int count)
{
	struct pgr *const ends[] = {server, client};

	for (unsigned int i = 0; i < count; i++) {
		pgr_call(peers[i], NULL_CALL, NULL, NULL, 0, NULL, 0, 0, on_done, NULL);
		for (unsigned int j = 0; i % AT_ONCE == 0 && j < 8; j++)
			net_step(ends, 2);
	}
	for (const uint64_t until_ns = net_now_ns() + 100 * MS; net_now_ns() < until_ns;)
		net_step(ends, 2);
}

static void poll_idle(struct pgr *pgr, long polls)
{
	for (long i = 0; i < polls; i++) {
		net_pass_time(MS);
		pgr_poll(pgr);
		if (pgr_next_due(pgr) < net_now_ns()) /* as who waits asks */
			exit(1);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const unsigned int count = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 1;
	const long times = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	const struct pgr_config config = {.peers_max = count, .clients_max = 4 * count};
	struct pgr_peer **peers = calloc(count, sizeof(*peers));

	net_reset(1, 512);
	if (!peers || pgr_open_on(&pgr_wire_net, &config, &server) != PGR_OK ||
	    pgr_open_on(&pgr_wire_net, &config, &client) != PGR_OK ||
	    pgr_serve(server, NULL_CALL, NULL, on_call, NULL) != PGR_OK)
		return 1;
	bind_all(peers, count);
	if (strcmp(what, "bind") == 0) {
		for (long i = 0; i < times; i++) {
			unbind_all(peers, count);
			bind_all(peers, count);
		}
	} else {
		call_all(peers, count);
		poll_idle(strcmp(what, "server") == 0 ? server : client, times);
	}
	if (server->clients_count != (strcmp(what, "bind") == 0 ? 0 : count))
		return 1;
	pgr_close(client);
	pgr_close(server);
	free(peers);
	return 0;
}
