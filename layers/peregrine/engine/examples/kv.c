/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A key-value server and its client; and a front that passes calls on to a server, which answers the clients itself.
 *
 *	pgr-kv serve WIRE ADDRESS PORT [FRONT]    serves until it is killed; prints its address. Port 0: any
 *	pgr-kv front WIRE ADDRESS PORT SERVER     likewise; the server has to know it as its FRONT
 *	pgr-kv put WIRE ADDRESS SERVER KEY VALUE
 *	pgr-kv get WIRE ADDRESS SERVER KEY        prints the value; exit status 1: there is none
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pgr.h"

enum {
	PUT = 1,
	GET = 2,
	NO_SUCH_KEY = PGR_E_PROCEDURE_OWN - 1,
	BUCKETS = 1024,
	KEY_BYTES = 64,
	VALUE_BYTES = 1 << 20
};

struct entry {
	struct entry *next;
	char key[KEY_BYTES];
	size_t bytes;
	unsigned char value[];
};
static struct entry *buckets[BUCKETS];

static struct entry **place_of(const char *key)
{
	unsigned int hash = 5381;
	struct entry **at;

	for (const char *c = key; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (at = &buckets[hash % BUCKETS]; *at && strcmp((*at)->key, key) != 0;)
		at = &(*at)->next;
	return at;
}

/* A key at the beginning of the arguments: KEY_BYTES, ended by a zero. */
static const char *key_of(const struct pgr_request *request)
{
	const char *key = request->args;

	return request->args_bytes >= KEY_BYTES && key[KEY_BYTES - 1] == '\0' ? key : NULL;
}

static void on_put(void *arg, const struct pgr_request *request)
{
	const char *key = key_of(request);
	struct entry **at, *entry;

	(void)arg;
	if (!key) {
		pgr_fail(request->pgr, &request->token, PGR_E_PROCEDURE_OWN);
		return;
	}
	entry = malloc(sizeof(*entry) + request->args_bytes);
	if (!entry)
		abort();
	at = place_of(key);
	entry->next = *at ? (*at)->next : NULL;
	memcpy(entry->key, key, KEY_BYTES);
	entry->bytes = request->args_bytes - KEY_BYTES;
	memcpy(entry->value, key + KEY_BYTES, entry->bytes);
	free(*at);
	*at = entry;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

static void sent(void *arg, int code)
{
	(void)code;
	free(arg);
}

static void on_get(void *arg, const struct pgr_request *request)
{
	const char *key = key_of(request);
	const struct entry *entry = key ? *place_of(key) : NULL;
	struct pgr_iov result;

	(void)arg;
	if (!entry) {
		pgr_fail(request->pgr, &request->token, NO_SUCH_KEY);
		return;
	}
	/* A long result is lent until it has arrived, and the entry may be replaced meanwhile: so a copy. */
	result = (struct pgr_iov){malloc(entry->bytes + 1), entry->bytes};
	if (!result.base)
		abort();
	memcpy(result.base, entry->value, entry->bytes);
	if (pgr_reply(request->pgr, &request->token, &result, 1, 0, sent, result.base) != PGR_QUEUED)
		free(result.base);
}

/* The server's answer does not come by here. */
static void on_any(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov in = {(void *)(uintptr_t)request->args, request->args_bytes};

	if (pgr_delegate(arg, &request->token, request->procedure, &in, 1) != PGR_OK)
		pgr_fail(request->pgr, &request->token, PGR_E_PROCEDURE_OWN);
}

static struct pgr *open_or_exit(char **argv, unsigned int port)
{
	char error[200] = "";
	const struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = argv[2],
		.address = argv[3],
		.port_first = (uint16_t)port,
		.port_last = (uint16_t)port,
		.block = 1,
		.error = error,
		.error_bytes = sizeof(error),
	};
	struct pgr *pgr;

	if (pgr_open(&config, &pgr) == PGR_OK)
		return pgr;
	fprintf(stderr, "pgr-kv: %s\n", error);
	exit(2);
}

static struct pgr_peer *bind_or_exit(struct pgr *pgr, const char *server)
{
	unsigned char address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct pgr_peer *peer;
	int code = pgr_resolve(pgr, server, address, &bytes);

	if (code == PGR_OK)
		code = pgr_bind(pgr, address, bytes, &peer);
	if (code == PGR_OK)
		return peer;
	fprintf(stderr, "pgr-kv: %s: %s\n", server, pgr_code_name(code));
	exit(2);
}

static void trust_or_exit(struct pgr *pgr, const char *front)
{
	unsigned char address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	int code = pgr_resolve(pgr, front, address, &bytes);

	if (code == PGR_OK)
		code = pgr_delegations_from(pgr, address, bytes, 1);
	if (code == PGR_OK)
		return;
	fprintf(stderr, "pgr-kv: %s: %s\n", front, pgr_code_name(code));
	exit(2);
}

static void serve(struct pgr *pgr)
{
	unsigned char address[PGR_ADDRESS_BYTES];
	char text[PGR_ADDRESS_TEXT_BYTES];
	size_t bytes = sizeof(address);

	pgr_address(pgr, address, &bytes);
	pgr_address_text(pgr, address, bytes, text, sizeof(text));
	printf("%s\n", text);
	fflush(stdout);
	for (;;)
		if (pgr_poll(pgr) == 0)
			pgr_wait(pgr, UINT64_MAX);
}

static int ask(struct pgr *pgr, char **argv, int argc)
{
	static unsigned char value[VALUE_BYTES];
	struct pgr_peer *peer = bind_or_exit(pgr, argv[4]);
	char key[KEY_BYTES] = "";
	struct pgr_iov in[2] = {{key, sizeof(key)}, {NULL, 0}}, out = {value, sizeof(value)};
	size_t bytes = 0;
	int code;

	snprintf(key, sizeof(key), "%s", argv[5]);
	if (argc == 7)
		in[1] = (struct pgr_iov){argv[6], strlen(argv[6])};
	code = pgr_call_and_wait(peer, argc == 7 ? PUT : GET, NULL, in, argc == 7 ? 2 : 1, &out, 1, 0,
				 &bytes);
	if (code == NO_SUCH_KEY)
		return 1;
	if (code != PGR_OK) {
		fprintf(stderr, "pgr-kv: %s\n", pgr_code_name(code));
		return 2;
	}
	if (argc == 6)
		printf("%.*s\n", (int)bytes, (const char *)value);
	return 0;
}

int main(int argc, char **argv)
{
	struct pgr *pgr;
	int status;

	if ((argc == 5 || argc == 6) && strcmp(argv[1], "serve") == 0) {
		pgr = open_or_exit(argv, (unsigned int)atoi(argv[4]));
		pgr_serve(pgr, PUT, NULL, on_put, NULL);
		pgr_serve(pgr, GET, NULL, on_get, NULL);
		if (argc == 6)
			trust_or_exit(pgr, argv[5]);
		serve(pgr);
	}
	if (argc == 6 && strcmp(argv[1], "front") == 0) {
		pgr = open_or_exit(argv, (unsigned int)atoi(argv[4]));
		pgr_serve(pgr, PGR_ANY_PROCEDURE, NULL, on_any, bind_or_exit(pgr, argv[5]));
		serve(pgr);
	}
	if (!(argc == 7 && strcmp(argv[1], "put") == 0) && !(argc == 6 && strcmp(argv[1], "get") == 0)) {
		fprintf(stderr, "usage: pgr-kv serve WIRE ADDRESS PORT [FRONT] | front WIRE ADDRESS PORT "
				"SERVER | put WIRE ADDRESS SERVER KEY VALUE | "
				"get WIRE ADDRESS SERVER KEY\n");
		return 2;
	}
	pgr = open_or_exit(argv, 0);
	status = ask(pgr, argv, argc);
	pgr_close(pgr);
	return status;
}
