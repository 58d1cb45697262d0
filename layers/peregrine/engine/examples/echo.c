/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest use of the engine: one process that serves and calls itself.
 *
 *	pgr-echo [WIRE [ADDRESS [CALLS]]]      udp 127.0.0.1 10
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pgr.h"

#define ECHO 1u

/* The arguments are lent until the handler returns; a short result is copied before pgr_reply returns. */
static void echo(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov result = {(void *)(uintptr_t)request->args, request->args_bytes};

	(void)arg;
	pgr_reply(request->pgr, &request->token, &result, 1, 0, NULL, NULL);
}

static struct pgr *open_or_exit(const char *wire, const char *address)
{
	char error[200] = "";
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = wire,
					  .address = address,
					  .error = error,
					  .error_bytes = sizeof(error)};
	struct pgr *pgr;
	const int code = pgr_open(&config, &pgr);

	if (code == PGR_OK)
		return pgr;
	fprintf(stderr, "pgr-echo: %s (%s)\n", error, pgr_code_name(code));
	exit(1);
}

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)result;
	if (code == PGR_OK)
		printf("%zu bytes came back\n", result_bytes);
	else
		printf("failed: %s\n", pgr_code_name(code));
	*(int *)arg = code;
}

int main(int argc, char **argv)
{
	const char *wire = argc > 1 ? argv[1] : "udp", *at = argc > 2 ? argv[2] : "127.0.0.1";
	struct pgr *server = open_or_exit(wire, at), *client = open_or_exit(wire, at);
	char address[PGR_ADDRESS_BYTES], text[64], answer[64];
	size_t address_bytes = sizeof(address);
	struct pgr_peer *peer;
	int status = 0;

	pgr_serve(server, ECHO, NULL, echo, NULL);
	pgr_address(server, address, &address_bytes); /* normally it travels to the client by other means */
	if (pgr_bind(client, address, address_bytes, &peer) != PGR_OK)
		return 1;
	for (int i = 0; i < (argc > 3 ? atoi(argv[3]) : 10); i++) {
		const struct pgr_iov in = {text, (size_t)snprintf(text, sizeof(text), "call %d", i)};
		const struct pgr_iov out = {answer, sizeof(answer)};
		int code = PGR_QUEUED;

		pgr_call(peer, ECHO, NULL, &in, 1, &out, 1, 0, on_done, &code);
		while (code == PGR_QUEUED) {
			pgr_poll(server);
			pgr_poll(client);
		}
		status |= code != PGR_OK || memcmp(text, answer, in.bytes) != 0;
	}
	pgr_close(client);
	pgr_close(server);
	return status;
}
