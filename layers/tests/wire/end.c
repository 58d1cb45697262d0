/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cadge/check.h"
#include "tests/wire/wire_tests.h"

#define PATIENCE_NS UINT64_C(10000000000)

static void on_up(void *arg, uint32_t peer)
{
	struct end *end = arg;

	EXPECT(end->rank, !end->peer[peer].up, "peer %u came up twice", peer);
	end->peer[peer].up = true;
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct end *end = arg;

	EXPECT(end->rank, !end->peer[peer].down && code < 0, "peer %u went down twice, or with code %d", peer,
	       code);
	end->peer[peer].down = true;
}

static enum cadge_keep on_packet(void *arg, uint32_t peer, void *data, size_t bytes)
{
	struct end *end = arg;

	EXPECT(end->rank, end->peer[peer].up && !end->peer[peer].down, "a packet of peer %u, which is not up",
	       peer);
	EXPECT(end->rank, bytes && bytes <= end->facts->packet_bytes_max, "a packet of %zu bytes", bytes);
	end->peer[peer].packets++;
	return end->packet ? end->packet(end, peer, data, bytes) : CADGE_TAKEN;
}

static void on_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	struct end *end = arg;

	(void)peer;
	end->ended++;
	end->failed += code < 0;
	end->token = token;
	end->code = code;
}

static void open_as(struct end *end, struct rank *rank, uint32_t features, bool trusting)
{
	static const struct cadge_wire_calls calls = {
		.up = on_up, .down = on_down, .packet = on_packet, .ended = on_ended};
	const struct cadge_wire_needs needs = {
		.features = features,
		.packet_bytes = UINT32_MAX,
		.packets = PACKETS,
		.held = KEPT,
		.operations = OPERATIONS,
		.trusting = trusting,
		.calls = &calls,
		.arg = end,
	};
	struct cadge_open_args args = rank_open_args(rank, PACKETS);
	int code;

	args.region_bytes_max = 4 << 20;
	memset(end, 0, sizeof(*end));
	end->rank = rank;
	code = cadge_wire_open(&args, &needs, &end->wire);
	if (code == CADGE_E_UNSUPPORTED && *args.error)
		rank_skip(rank, "%s", args.error);
	EXPECT(rank, code == CADGE_DONE, "open: %s: %s", cadge_code_name(code), args.error);
	end->facts = cadge_wire_facts(end->wire);
	EXPECT(rank, end->facts->packet_bytes_max >= 1024, "packets of %u bytes",
	       end->facts->packet_bytes_max);
}

void end_open(struct end *end, struct rank *rank, uint32_t features)
{
	open_as(end, rank, features, false);
}

void end_open_trusting(struct end *end, struct rank *rank, uint32_t features)
{
	open_as(end, rank, features, true);
}

void end_close(struct end *end)
{
	const uint64_t begin_ns = clock_ns();

	cadge_wire_close(end->wire);
	EXPECT(end->rank, clock_ns() - begin_ns < UINT64_C(3000000000), "close took %llu ms",
	       (unsigned long long)((clock_ns() - begin_ns) / 1000000));
	end->wire = NULL;
}

void end_connect(struct end *end, unsigned int other, uint32_t as)
{
	uint8_t ours[2048], theirs[2048];
	struct cadge_blob_out out = {.at = ours, .room_bytes = sizeof(ours), .ok = true};
	struct cadge_blob_in in = {.at = theirs, .ok = true};
	int code = cadge_wire_address(end->wire, as, &out);

	EXPECT(end->rank, code == CADGE_DONE, "address: %s", cadge_code_name(code));
	say(end->rank, other, ours, out.used_bytes);
	in.left_bytes = hear(end->rank, other, theirs, sizeof(theirs));
	end->peer[as] = (struct end_peer){.up = false};
	code = cadge_wire_connect(end->wire, as, &in, &end->peer[as].link);
	EXPECT(end->rank, code == CADGE_DONE && !in.left_bytes, "connect: %s", cadge_code_name(code));
	EXPECT(end->rank, !cadge_wire_take(end->peer[as].link), "a packet could be taken before `up`");
}

void end_up(struct end *end, uint32_t peer)
{
	end_await_bool(end, &end->peer[peer].up, "up");
}

void end_pair(struct end *end, struct rank *rank, uint32_t features)
{
	const unsigned int other = 1 - rank->number;

	end_open(end, rank, features);
	end_connect(end, other, other);
	end_up(end, other);
}

void end_receive(struct end *end, unsigned int from)
{
	const uint64_t until_ns = clock_ns() + PATIENCE_NS;

	while (!hears(end->rank, from)) {
		end_poll_once(end);
		EXPECT(end->rank, clock_ns() < until_ns, "rank %u does not come", from);
	}
}

void end_barrier(struct end *end, unsigned int first, unsigned int count)
{
	for (unsigned int i = first; i < first + count; i++)
		if (i != end->rank->number)
			say(end->rank, i, "met", 3);
	for (unsigned int i = first; i < first + count; i++)
		if (i != end->rank->number)
			end_receive(end, i);
}

int end_poll_once(struct end *end)
{
	int events = cadge_wire_progress(end->wire, 1);

	EXPECT(end->rank, events >= 0, "progress: %s (%s)", cadge_code_name(events),
	       cadge_wire_why(end->wire));
	give_way(events);
	return events;
}

void end_await(struct end *end, const uint64_t *value, uint64_t wanted, const char *what)
{
	const uint64_t until_ns = clock_ns() + PATIENCE_NS;

	while (*value < wanted) {
		end_poll_once(end);
		EXPECT(end->rank, clock_ns() < until_ns, "waited in vain for %s: %llu of %llu", what,
		       (unsigned long long)*value, (unsigned long long)wanted);
	}
}

void end_await_bool(struct end *end, const bool *value, const char *what)
{
	const uint64_t until_ns = clock_ns() + PATIENCE_NS;

	while (!*value) {
		end_poll_once(end);
		EXPECT(end->rank, clock_ns() < until_ns, "waited in vain for %s", what);
	}
}

void end_send(struct end *end, uint32_t peer, size_t bytes, uint32_t seed)
{
	const uint64_t until_ns = clock_ns() + PATIENCE_NS;
	struct cadge_link *link = end->peer[peer].link;
	uint8_t *packet;
	int code = CADGE_BUSY;

	while (!(packet = cadge_wire_take(link))) {
		end_poll_once(end);
		EXPECT(end->rank, clock_ns() < until_ns, "no packet becomes free");
	}
	EXPECT(end->rank, (uintptr_t)packet % 64 == 0, "a packet at %p", (void *)packet);
	fill(packet, bytes, seed);
	while ((code = cadge_wire_send(link, packet, bytes)) == CADGE_BUSY) {
		end_poll_once(end);
		EXPECT(end->rank, clock_ns() < until_ns, "send stays BUSY");
	}
	EXPECT(end->rank, code == CADGE_DONE, "send of %zu bytes: %s", bytes, cadge_code_name(code));
}

bool end_finishes(struct end *end, int code, unsigned int ms)
{
	const uint64_t until_ns = clock_ns() + ms * UINT64_C(1000000);
	const unsigned int ended = end->ended;

	EXPECT(end->rank, code == CADGE_DONE || code == CADGE_QUEUED, "an operation: %s",
	       cadge_code_name(code));
	if (code == CADGE_DONE)
		return true;
	while (end->ended == ended && clock_ns() < until_ns)
		end_poll_once(end);
	if (end->ended == ended)
		return false;
	EXPECT(end->rank, end->code == CADGE_DONE, "an operation ended with %s", cadge_code_name(end->code));
	return true;
}

void end_finish(struct end *end, int code, const char *what)
{
	EXPECT(end->rank, end_finishes(end, code, PATIENCE_NS / 1000000), "%s does not end", what);
}

/* ---- remote memory ---- */

/* Exposes [base, base + bytes) and says the key to rank `to`. */
struct cadge_region *end_expose(struct end *end, void *base, size_t bytes, uint32_t rights, unsigned int to)
{
	uint8_t key[2048];
	struct cadge_blob_out out = {.at = key, .room_bytes = sizeof(key), .ok = true};
	struct cadge_region *region;
	int code = cadge_wire_expose(end->wire, base, bytes, rights, &out, &region);

	EXPECT(end->rank, code == CADGE_DONE, "expose: %s", cadge_code_name(code));
	say(end->rank, to, key, out.used_bytes);
	return region;
}

struct cadge_remote *end_attach(struct end *end, unsigned int from)
{
	uint8_t key[2048];
	struct cadge_blob_in in = {
		.at = key, .left_bytes = hear(end->rank, from, key, sizeof(key)), .ok = true};
	struct cadge_blob_in cut = {.at = key, .left_bytes = in.left_bytes - 1, .ok = true};
	struct cadge_remote *remote;
	int code;

	EXPECT(end->rank, cadge_wire_attach(end->peer[from].link, &cut, &remote) == CADGE_E_ARGUMENT,
	       "a key that is cut short was taken");
	code = cadge_wire_attach(end->peer[from].link, &in, &remote);
	EXPECT(end->rank, code == CADGE_DONE && !in.left_bytes, "attach: %s", cadge_code_name(code));
	return remote;
}

int end_put(struct end *end, const void *local, size_t bytes, const struct cadge_remote *remote,
	    uint64_t offset_bytes, unsigned int peer)
{
	const uint64_t until_ns = clock_ns() + UINT64_C(10000000000);
	int code;

	while ((code = cadge_wire_put(end->peer[peer].link, local, bytes, remote, offset_bytes, 7)) ==
	       CADGE_BUSY) {
		end_poll_once(end);
		EXPECT(end->rank, clock_ns() < until_ns, "put stays BUSY");
	}
	return code;
}

int end_quiet(struct end *end, unsigned int peer)
{
	const uint64_t until_ns = clock_ns() + UINT64_C(10000000000);
	int code;

	while ((code = cadge_wire_quiet(end->peer[peer].link, 8)) == CADGE_BUSY) {
		end_poll_once(end);
		EXPECT(end->rank, clock_ns() < until_ns, "quiet stays BUSY");
	}
	return code;
}
