/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol by hand: one endpoint, and no network but the test. What the endpoint would hear is put before
 * it, packet by packet; what it says is caught, looked at and swallowed, so that a test sees all of it in
 * t.seen. Each test is a function that opens the endpoint as it needs it; protocol.c runs them one by one,
 * with a `t` of zeros before each, and closes what they leave open.
 */
#ifndef PGR_TESTS_HAND_H
#define PGR_TESTS_HAND_H

#include <stdio.h>
#include <stdlib.h>

#include "../support/net.h"

/* What the endpoint serves. */
enum {
	/* answers with its arguments */
	ECHO = 1,
	/* keeps the token */
	LATER = 2,
	/* answers with LONG_BYTES */
	LONG = 3,
	/* fails with FAIL_CODE */
	FAIL = 4,
	/* passes the call on, to the peer that the endpoint is bound to */
	PASS = 5,
	/* echo, with a signature */
	TYPED = 6,
	/* nothing is served under this number */
	NONE = 99,
};

/* Addresses: of the endpoint, of the peer that it is bound to, of others. */
enum { OWN = 7, FAR = 40, OTHER = 41, THIRD = 42 };

enum {
	/* of the largest packet */
	PACKET_BYTES = 512,
	/* of data in a full packet of a long message */
	DATA_BYTES = PACKET_BYTES - PGR_HEADER_BYTES - PGR_EXTENSIONS_BYTES,
	/* the result of LONG: packets, and bytes */
	LONG_PACKETS = 20,
	LONG_BYTES = LONG_PACKETS * DATA_BYTES - 100,
	/* packets that `t` holds; a test that catches more ends the program */
	SEEN_MAX = 4096,
	FAIL_CODE = -70,
	/* that packets by hand grant */
	CREDITS = 32,
	/* the slot in which make_known calls; packets by hand are in slot 5 if nothing else is said */
	KNOWN_SLOT = 62,
	/* of the server that is played by hand */
	INCARNATION = 0x1234567,
	/* how long it remembers a silent client */
	MEMORY_MS = 40000,
};
#define CLIENT    UINT64_C(0x1122334455667788)
#define COOKIE    UINT64_C(0xc00c1e00c00c1e11)
#define MS        UINT64_C(1000000)
#define SECOND    UINT64_C(1000000000)
#define SIGNATURE "hw2bd"

/* A packet that the endpoint sent. */
struct seen {
	struct pgr_to to;
	struct pgr_packet packet;
	/* it is for one of another version, or with another key; only its header was read */
	bool refusal;
	size_t bytes;
	uint8_t raw[PACKET_BYTES];
};

/* All that a test sees and says; zeros when it begins. */
struct test {
	/* every check held */
	bool good;
	struct pgr *pgr;
	const uint8_t *key;
	/* the wire says that it loses nothing; set before open_endpoint */
	bool reliable;
	/* the endpoint's binding, to FAR */
	struct pgr_peer *peer;
	struct seen seen[SEEN_MAX];
	unsigned int seen_count;
	/* of the packet that is being sent */
	struct pgr_to to;

	/* served: calls executed, results that the wire has taken or the client has acknowledged */
	unsigned int executed, sent;
	/* the last call went by fast.h */
	bool short_way;
	/* of the last call */
	size_t args_bytes;
	uint8_t args[2 * LONG_BYTES];
	struct pgr_token token;
	/* the cookies that the clients played here were given */
	struct {
		uint64_t client, cookie;
		uint32_t from;
	} cookies[64];
	unsigned int cookies_count;

	/* called: how often a call ended, and how the last one did */
	unsigned int done;
	int code;
	/* a result without a buffer of the caller's is in `result`, one with in `out` */
	size_t result_bytes;
	uint8_t result[2 * LONG_BYTES], out[2 * LONG_BYTES];
	struct pgr_stats stats;
};
extern struct test t;
/* What messages are made of. */
extern uint8_t pattern[2 * LONG_BYTES];
/* Of TYPED. */
extern const struct pgr_signature signature;

/* The tests of a file, in order, up to one without a name. */
struct protocol_test {
	const char *name;
	void (*run)(void);
};
/* All files with tests, in the order in which they run. */
/* clang-format off */
#define PROTOCOL_FILES(X) \
	X(server_contact) X(server_slot) X(server_long) X(server_rejects) X(server_memory) \
	X(server_restart) X(server_tokens) X(server_unlike) X(server_hostile) X(server_passed_on) \
	X(client_contact) X(client_memory) X(client_lost) X(client_rejects) X(client_parts) X(client_long) \
	X(client_unlike) X(client_delegated) X(client_unbind) X(client_hasty) X(client_hostile) \
	X(reliable) X(alike) X(two) X(three) X(sizes) X(versions) X(bytes)
/* clang-format on */
#define DECLARE(file) extern const struct protocol_test protocol_##file[];
PROTOCOL_FILES(DECLARE)
#undef DECLARE

/* Says where and what, if it does not hold; the test goes on. Returns whether it holds. */
bool check(bool holds, const char *file, int line, const char *what);
#define CHECK(what) check((what), __FILE__, __LINE__, #what)

/* ---- the endpoint and what is around it ---- */

struct pgr_to address(uint32_t number);
bool is_at(const struct pgr_to *to, uint32_t number);
/* A binding to the endpoint with this number, of an endpoint that a test opens itself. */
struct pgr_peer *bind_to(struct pgr *pgr, uint32_t number);
/* A slot of the binding; where it has none now, one that is as the next one will be. */
const struct pgr_slot *slot_of(const struct pgr_peer *peer, unsigned int number);
/* Opens t.pgr, with all procedures and a binding to FAR. NULL: a configuration of zeros. */
void open_endpoint(const struct pgr_config *with);
void close_endpoint(void);
/* Time passes, in steps in which nothing is missed. */
void pass(uint64_t ns);
/* Of the endpoint, at this moment. */
const struct pgr_stats *stats(void);
/* The handlers of ECHO and PASS, for endpoints that a test opens itself. */
void on_echo(void *arg, const struct pgr_request *request);
void on_pass(void *arg, const struct pgr_request *request);

/* ---- packets by hand ---- */

/* The endpoint hears these bytes; what it said before is kept. */
void put_raw(uint32_t from, const void *packet, size_t bytes);
/* The packet as it is on the wire, under t.key; returns its bytes. */
size_t make(const struct pgr_header *head, uint64_t cookie, const void *data, uint8_t *packet);
/*
 * The endpoint hears this, and what it said before is forgotten. Without a cookie (0) the first call of a slot
 * has the one that the client was given, if any, as clients do it. put: from FAR.
 */
void put_from(uint32_t from, const struct pgr_header *head, uint64_t cookie, const void *data);
void put(const struct pgr_header *head, const void *data);
/* What the endpoint said since, if that was one packet of this type; else NULL. */
const struct pgr_header *one(enum pgr_type type);
bool one_reject(enum pgr_reject reason);
bool silent(void);
uint64_t cookie_in(const struct pgr_header *head);
/* Makes `head` that of packet `number` of a message of `bytes`. */
void part(struct pgr_header *head, uint32_t bytes, uint32_t number);
/* Headers of CLIENT in slot 5: of the first packet of a call, and of a packet without data. */
struct pgr_header call_of(uint64_t sequence, uint32_t procedure, uint32_t bytes);
struct pgr_header bare_of(enum pgr_type type, uint64_t sequence);
/*
 * A client makes itself known: a challenge, an empty call in a slot that is not used otherwise, its
 * acknowledgement. make_known: CLIENT at FAR.
 */
void make_known_as(uint64_t client, uint32_t from);
void make_known(void);
/* CLIENT calls with bytes of the pattern: in one packet, or with packet `number` of several. */
void put_call(uint64_t sequence, uint32_t procedure, uint32_t bytes, uint8_t flags);
void put_part(uint64_t sequence, uint32_t procedure, uint32_t bytes, uint32_t number, uint8_t flags);
/* A packet of CLIENT without data. */
void put_bare(enum pgr_type type, uint64_t sequence, uint32_t packet_number);

#endif
