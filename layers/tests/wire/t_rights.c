/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory: what is refused, by the initiator's library and by a device, and at every length. */
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "tests/wire/wire_tests.h"

#define PAGE_BYTES ((size_t)4096)

struct forbidden {
	uint64_t offset_bytes, bytes;
};

/* Below, at and above where a library may take another path. */
static const size_t all_lengths[] = {1,    7,    8,    9,     63,    64,    65,     4095,  4096,
				     4097, 8191, 8192, 65535, 65536, 65537, 131072, 150000};
enum { ALL_LENGTHS = sizeof(all_lengths) / sizeof(*all_lengths) };
#define GUARDED_BYTES ((size_t)150000)

static void expect_refused(struct end *end, int code, size_t bytes, const char *what)
{
	EXPECT(end->rank, code == CADGE_E_REFUSED, "%s of %zu bytes: %s", what, bytes, cadge_code_name(code));
}

static void try_every_length(struct end *end, const struct cadge_remote *all, const struct cadge_remote *read,
			     const struct cadge_remote *written, uint8_t *local)
{
	struct cadge_link *link = end->peer[1].link;

	for (unsigned int i = 0; i < ALL_LENGTHS; i++) {
		const size_t bytes = all_lengths[i], beyond = GUARDED_BYTES - bytes + 1;

		fill(local, GUARDED_BYTES, 8);
		expect_refused(end, cadge_wire_put(link, local, bytes, all, beyond, 1), bytes,
			       "a put outside");
		expect_refused(end, cadge_wire_put(link, local, bytes, read, 0, 1), bytes, "a put to read");
		expect_refused(end, cadge_wire_get(link, local, bytes, all, beyond, 1), bytes,
			       "a get outside");
		expect_refused(end, cadge_wire_get(link, local, bytes, written, 0, 1), bytes,
			       "a get to write");
		end_finish(end, end_quiet(end, 1), "quiet");
		EXPECT(end->rank, is_filled(local, GUARDED_BYTES, 8), "a refused get of %zu bytes wrote",
		       bytes);
		end_barrier(end, 0, 2); /* it looks */
		end_barrier(end, 0, 2);
		end_finish(end, end_put(end, local, bytes, written, 0, 1), "a put");
		end_finish(end, end_quiet(end, 1), "quiet");
		end_barrier(end, 0, 2);
		end_barrier(end, 0, 2);
	}
}

/* What is refused at each length leaves both memories as they were; the same that is allowed is there. */
void test_refused_at_every_length(struct rank *rank)
{
	static const uint32_t rights[] = {CADGE_MAY_ALL, CADGE_MAY_READ, CADGE_MAY_WRITE};
	struct cadge_remote *remote[3];
	uint8_t *base;
	struct end end;

	end_pair(&end, rank, CADGE_WIRE_REMOTE | CADGE_WIRE_ATOMICS);
	base = cadge_wire_alloc(end.wire, GUARDED_BYTES);
	EXPECT(rank, base, "no memory");
	for (unsigned int i = 0; i < 3; i++)
		if (rank->number == 1)
			end_expose(&end, base, GUARDED_BYTES, rights[i], 0);
		else
			remote[i] = end_attach(&end, 1);
	if (rank->number == 0)
		try_every_length(&end, remote[0], remote[1], remote[2], base);
	for (unsigned int i = 0; rank->number && i < ALL_LENGTHS; i++) {
		fill(base, GUARDED_BYTES, 5);
		end_barrier(&end, 0, 2);
		EXPECT(rank, is_filled(base, GUARDED_BYTES, 5), "%zu bytes were refused and written",
		       all_lengths[i]);
		end_barrier(&end, 0, 2);
		end_barrier(&end, 0, 2);
		EXPECT(rank, is_filled(base, all_lengths[i], 8), "%zu bytes that may be put are not there",
		       all_lengths[i]);
		end_barrier(&end, 0, 2);
	}
	end_barrier(&end, 0, 2);
	end_close(&end);
}

/* The page between two others is exposed; what is outside of it, or has no right, is refused, and nothing is written. */
void test_rights_and_bounds(struct rank *rank)
{
	static const struct forbidden outside[] = {
		{PAGE_BYTES, 1},     {PAGE_BYTES - 1, 2}, {0, PAGE_BYTES + 1},
		{UINT64_MAX - 3, 8}, {8, UINT64_MAX - 3},
	};
	static const uint32_t rights[] = {CADGE_MAY_ALL, CADGE_MAY_READ, CADGE_MAY_WRITE};
	struct cadge_remote *remote[3];
	uint8_t *base, local[3 * PAGE_BYTES];
	uint64_t before = 0;
	struct end end;

	end_pair(&end, rank, CADGE_WIRE_REMOTE | CADGE_WIRE_ATOMICS);
	base = cadge_wire_alloc(end.wire, 3 * PAGE_BYTES);
	EXPECT(rank, base, "no memory");
	if (rank->number == 1) {
		fill(base, 3 * PAGE_BYTES, 5);
		for (unsigned int i = 0; i < 3; i++)
			end_expose(&end, base + PAGE_BYTES, PAGE_BYTES, rights[i], 0);
		end_barrier(&end, 0, 2);
		fill(local, sizeof(local), 5);
		fill(local + PAGE_BYTES, 100, 6); /* the only put that was allowed */
		EXPECT(rank, memcmp(base, local, sizeof(local)) == 0,
		       "something was written that must not be");
		end_barrier(&end, 0, 2);
		end_close(&end);
		return;
	}
	for (unsigned int i = 0; i < 3; i++)
		remote[i] = end_attach(&end, 1);
	fill(local, sizeof(local), 7);
	for (unsigned int i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
		const struct forbidden *each = &outside[i];
		struct cadge_link *link = end.peer[1].link;

		EXPECT(rank,
		       cadge_wire_put(link, local, each->bytes, remote[0], each->offset_bytes, 1) ==
				       CADGE_E_REFUSED &&
			       cadge_wire_get(link, base, each->bytes, remote[0], each->offset_bytes, 1) ==
				       CADGE_E_REFUSED,
		       "%llu bytes at %llu of a page were not refused", (unsigned long long)each->bytes,
		       (unsigned long long)each->offset_bytes);
	}
	EXPECT(rank, cadge_wire_put(end.peer[1].link, local, 8, remote[1], 0, 1) == CADGE_E_REFUSED,
	       "a put to memory that may only be read was not refused");
	EXPECT(rank, cadge_wire_get(end.peer[1].link, base, 8, remote[2], 0, 1) == CADGE_E_REFUSED,
	       "a get from memory that may only be written was not refused");
	EXPECT(rank,
	       cadge_wire_fetch_add(end.peer[1].link, 1, &before, remote[2], 0, 1) == CADGE_E_REFUSED &&
		       cadge_wire_fetch_add(end.peer[1].link, 1, &before, remote[0], PAGE_BYTES, 1) ==
			       CADGE_E_REFUSED,
	       "an atomic operation without the right to, or outside, was not refused");
	EXPECT(rank, cadge_wire_fetch_add(end.peer[1].link, 1, &before, remote[0], 4, 1) == CADGE_E_ARGUMENT,
	       "a word that is not aligned was not refused");
	EXPECT(rank,
	       cadge_wire_reach(remote[1], CADGE_MAY_WRITE) == CADGE_PROGRESS_NONE &&
		       cadge_wire_reach(remote[1], CADGE_MAY_READ) != CADGE_PROGRESS_NONE,
	       "reach knows nothing of rights");
	fill(local, 100, 6);
	end_finish(&end, end_put(&end, local, 100, remote[2], 0, 1), "a put");
	end_finish(&end, end_quiet(&end, 1), "quiet");
	end_finish(&end, cadge_wire_get(end.peer[1].link, base, 100, remote[1], 0, 1), "a get");
	EXPECT(rank, is_filled(base, 100, 6), "what was put differs");
	end_barrier(&end, 0, 2);
	end_barrier(&end, 0, 2);
	end_close(&end);
}

struct refused {
	const char *what;
	uint32_t guard; /* which of the device's it takes */
	uint32_t rights;
	uint64_t offset_bytes;
};

/* The initiator's side: what left although it is not allowed ends with an error. */
static void put_is_refused(struct end *end, const struct cadge_remote *remote, const struct refused *refused)
{
	const uint64_t until_ns = clock_ns() + UINT64_C(20000000000);
	uint8_t local[64];
	int code;

	fill(local, sizeof(local), 7);
	code = end_put(end, local, sizeof(local), remote, refused->offset_bytes, 1);
	EXPECT(end->rank, code == CADGE_QUEUED, "a put %s: %s", refused->what, cadge_code_name(code));
	while (!end->ended) {
		end_poll_once(end);
		EXPECT(end->rank, clock_ns() < until_ns, "a put %s does not end", refused->what);
	}
	EXPECT(end->rank, end->failed == 1 && end->token == 7, "a put %s ended as if it had been allowed",
	       refused->what);
	/* 10 is IBV_WC_REM_ACCESS_ERR: what the device of the target answered. */
	EXPECT(end->rank, strstr(cadge_wire_why(end->wire), "provider's error 10"),
	       "a put %s failed, and not for access: %s", refused->what, cadge_wire_why(end->wire));
}

/*
 * Where the device guards, it does so without the initiator's library, which checks nothing here: one life for each try, since a
 * refusal ends the connection.
 */
void test_device_refuses(struct rank *rank)
{
	static const struct refused tries[] = {
		{"behind what is exposed", CADGE_WIRE_GUARDS_BOUNDS, CADGE_MAY_ALL, PAGE_BYTES},
		{"across the end of what is exposed", CADGE_WIRE_GUARDS_BOUNDS, CADGE_MAY_ALL,
		 PAGE_BYTES - 8},
		{"to what may only be read", CADGE_WIRE_GUARDS_RIGHTS, CADGE_MAY_READ, 0},
	};
	const unsigned int other = 1 - rank->number;

	for (unsigned int i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		uint8_t *base, as_before[3 * PAGE_BYTES];
		struct end end;

		end_open_trusting(&end, rank, CADGE_WIRE_REMOTE);
		if (!end.facts->device_guards)
			rank_skip(rank, "no device guards memory here");
		if (!(end.facts->device_guards & tries[i].guard)) {
			end_close(&end);
			continue;
		}
		end_connect(&end, other, other);
		end_up(&end, other);
		base = cadge_wire_alloc(end.wire, 3 * PAGE_BYTES);
		EXPECT(rank, base, "no memory");
		fill(base, 3 * PAGE_BYTES, 5);
		fill(as_before, sizeof(as_before), 5);
		if (rank->number == 1)
			end_expose(&end, base + PAGE_BYTES, PAGE_BYTES, tries[i].rights, 0);
		else
			put_is_refused(&end, end_attach(&end, 1), &tries[i]);
		end_barrier(&end, 0, 2);
		EXPECT(rank, memcmp(base, as_before, sizeof(as_before)) == 0, "a put %s was carried out",
		       tries[i].what);
		end_barrier(&end, 0, 2);
		end_close(&end);
	}
}
