/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * So many null calls between two endpoints of one process, for who counts instructions (see `budget`).
 *
 *	pgr-budget CALLS [WIRE]		shm
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../pgr.h"

enum { NULL_CALL = 1 };

static void on_call(void *arg, const struct pgr_request *request)
{
	(void)arg;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

static bool done;

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)result, (void)result_bytes;
	if (code != PGR_OK)
		exit(1);
	done = true;
}

int main(int argc, char **argv)
{
	const struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = argc > 2 ? argv[2] : "shm",
		.address = "127.0.0.1",
	};
	const long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t address_bytes = sizeof(address);
	struct pgr *server, *client;
	struct pgr_peer *peer;

	if (pgr_open(&config, &server) != PGR_OK || pgr_open(&config, &client) != PGR_OK ||
	    pgr_serve(server, NULL_CALL, NULL, on_call, NULL) != PGR_OK ||
	    pgr_address(server, address, &address_bytes) != PGR_OK ||
	    pgr_bind(client, address, address_bytes, &peer) != PGR_OK)
		return 1;
	for (long i = 0; i < calls; i++) {
		done = false;
		if (pgr_call(peer, NULL_CALL, NULL, NULL, 0, NULL, 0, 0, on_done, NULL) != PGR_QUEUED)
			return 1;
		while (!done) {
			pgr_poll(server);
			pgr_poll(client);
		}
	}
	pgr_close(client);
	pgr_close(server);
	return 0;
}
