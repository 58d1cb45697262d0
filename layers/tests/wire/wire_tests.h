/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of a wire (wire/wire.h): one program a substrate, tests/unit/wire_*.c. */
#ifndef CADGE_TESTS_WIRE_H
#define CADGE_TESTS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"
#include "tests/ranks/ranks.h"

enum { KEPT_MAX = 64 };

/* ---- an end of the wire (end.c) ---- */

struct end;
struct end_peer {
	struct cadge_link *link;
	bool up, down;
	uint64_t packets; /* that came in, of this life */
	void *kept[KEPT_MAX];
	size_t kept_bytes[KEPT_MAX];
	unsigned int kept_count;
};

struct end {
	struct rank *rank;
	struct cadge_wire *wire;
	const struct cadge_wire_facts *facts;
	struct end_peer peer[RANKS_MAX]; /* by the rank's number */
	/* What a test does with packets; NULL: they are counted. */
	enum cadge_keep (*packet)(struct end *end, uint32_t peer, void *data, size_t bytes);
	uint64_t number; /* for the test's use */
	unsigned int ended, failed;
	uint64_t token; /* of what ended last */
	int code;
};

#define PACKETS    16u
#define KEPT       16u
#define OPERATIONS 8u

/* Opens with these features, PACKETS, KEPT and OPERATIONS. Where the wire refuses block mode the test is skipped. */
void end_open(struct end *end, struct rank *rank, uint32_t features);
/* The same, and nobody looks at rights and bounds before an operation leaves. */
void end_open_trusting(struct end *end, struct rank *rank, uint32_t features);
void end_close(struct end *end);
/* Exchanges addresses with rank `other` and connects it as peer `as`; end_up waits for `up`. */
void end_connect(struct end *end, unsigned int other, uint32_t as);
void end_up(struct end *end, uint32_t peer);
/* The three above, for two ranks that are peers of each other. */
void end_pair(struct end *end, struct rank *rank, uint32_t features);
/* Meets as meet does, looking meanwhile: what this end has sent may still have to leave. */
void end_barrier(struct end *end, unsigned int first, unsigned int count);
/* Hears one message beside the wire, and drops it, looking meanwhile. */
void end_receive(struct end *end, unsigned int from);
/* One look; fails where the context is broken. */
int end_poll_once(struct end *end);
/* Looks until `*value` is at least `wanted`; fails after ten seconds, naming `what`. */
void end_await(struct end *end, const uint64_t *value, uint64_t wanted, const char *what);
void end_await_bool(struct end *end, const bool *value, const char *what);
/* Takes and sends a packet filled with `seed`, looking meanwhile. */
void end_send(struct end *end, uint32_t peer, size_t bytes, uint32_t seed);
/* Ends what returned `code`, DONE or QUEUED; what returned BUSY is an error. */
void end_finish(struct end *end, int code, const char *what);
/* The same, but gives up after so long: false. */
bool end_finishes(struct end *end, int code, unsigned int ms);

/* Exposes [base, base + bytes) and says the key to rank `to`; attaches what rank `from` has said. */
struct cadge_region *end_expose(struct end *end, void *base, size_t bytes, uint32_t rights, unsigned int to);
struct cadge_remote *end_attach(struct end *end, unsigned int from);
/* While it is BUSY, looks and tries again. */
int end_put(struct end *end, const void *local, size_t bytes, const struct cadge_remote *remote,
	    uint64_t offset_bytes, unsigned int peer);
int end_quiet(struct end *end, unsigned int peer);

/* ---- the tests ---- */

void test_order_and_once(struct rank *rank);
void test_take_drop_send(struct rank *rank);
void test_held_sent_again(struct rank *rank);
void test_up_means_at_once(struct rank *rank);
void test_all_kept_and_one_more(struct rank *rank);
void test_sleeps_and_wakes(struct rank *rank);
void test_peer_dies(struct rank *rank);
void test_new_life_after_death(struct rank *rank);
void test_lives_do_not_mix(struct rank *rank);
void test_put_quiet_packet(struct rank *rank);
void test_puts_in_order(struct rank *rank);
void test_rights_and_bounds(struct rank *rank);
void test_refused_at_every_length(struct rank *rank);
void test_device_refuses(struct rank *rank);
void test_reach_proved(struct rank *rank);
void test_swaps_and_adds(struct rank *rank);
void test_memory_goes_with_close(struct rank *rank);

#endif
