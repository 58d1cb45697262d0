/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frame of a style's tests: an end of the style in this rank, which is opened by the test, connected to other ranks, looks,
 * waits with patience and meets them.
 */
#ifndef CADGE_TESTS_STYLES_FRAME_H
#define CADGE_TESTS_STYLES_FRAME_H

#include "cadge/check.h"
#include "kit/bytes.h"
#include "tests/ranks/ranks.h"

typedef void frame_counter(void *arg, const char *name, uint64_t value);

/* The calls that the frame makes, on the context that the test has opened. */
struct frame_calls {
	void (*look)(void); /* once; fails where the context is broken */
	int (*address)(uint32_t peer, struct cadge_blob_out *blob);
	int (*connect)(uint32_t peer, struct cadge_blob_in *blob);
	void (*counters)(frame_counter *each, void *arg);
};

/* Defines `frame_calls` of a style whose context is the variable of its name: style_address(style, peer, blob), and so on. */
#define FRAME_CALLS(style, progress_once)                                                                    \
	static int frame_address(uint32_t peer, struct cadge_blob_out *blob)                                 \
	{                                                                                                    \
		return style##_address(style, peer, blob);                                                   \
	}                                                                                                    \
	static int frame_connect(uint32_t peer, struct cadge_blob_in *blob)                                  \
	{                                                                                                    \
		return style##_connect(style, peer, blob);                                                   \
	}                                                                                                    \
	static void frame_counters(frame_counter *each, void *arg)                                           \
	{                                                                                                    \
		style##_counters(style, each, arg);                                                          \
	}                                                                                                    \
	static const struct frame_calls frame_calls = {progress_once, frame_address, frame_connect,          \
						       frame_counters}

extern struct rank *self; /* since frame_begin */

void frame_begin(struct rank *rank, const struct frame_calls *calls);

/* Upcalls of a style. No peer may go down but in barrier_all, when it has come there before us. */
void frame_up(void *arg, uint32_t peer);
void frame_down(void *arg, uint32_t peer, int code);

/* Exchanges addresses with a rank, which does the same, connects to it and waits for `up`. */
void connect_to(uint32_t other);
/* Connects rank 0 to all others. */
void connect_all(void);

void look(void);
void poll_for_ms(unsigned int ms);
/* The time at which patience ends. */
uint64_t deadline(void);
/* Looks until the condition holds; fails, as printf says, where it does not before patience ends. */
#define AWAIT(condition, ...)                                                                                \
	do {                                                                                                 \
		for (const uint64_t until_ns_ = deadline(); !(condition);) {                                 \
			look();                                                                              \
			EXPECT(self, clock_ns() < until_ns_, __VA_ARGS__);                                   \
		}                                                                                            \
	} while (0)
/* Looks until `*count` is at least `wanted`. */
void await(const unsigned int *count, unsigned int wanted, const char *what);
/* Meets all other ranks, looking meanwhile. */
void barrier_all(void);

/* The style's counter of this name, which there has to be. */
uint64_t counter(const char *name);

/* ---- a peer that does not keep to anything (stranger.c) ---- */

/*
 * Begins as a stranger: on the wire alone, connected to rank 0. `write_head` and `read_head` are for what the style puts into
 * an address before the wire's part; NULL: nothing.
 */
void stranger_begin(struct rank *rank, void (*write_head)(struct cadge_blob_out *address),
		    void (*read_head)(struct cadge_blob_in *address));
/* Sends a packet of these bytes. */
void stranger_throw(const void *data, size_t bytes);
enum { STRANGER_PACKET_BYTES = 2048 };
extern unsigned int stranger_received; /* packets that came, and the last one */
extern uint8_t stranger_last[STRANGER_PACKET_BYTES];
extern size_t stranger_last_bytes;
extern uint32_t stranger_features; /* of the wire, as the style has them; at first KEEP and REMOTE */
/* Waits for rank 0 to say something beside the wire, and closes. */
void stranger_end(void);

/* ---- what is refused leaves memory as it was (guard.c) ---- */

/*
 * The shape of every test of protection: rank 0 has memory, rank 1 tries to change it, by each operation and at each length
 * below, at and above the switches of the style's paths. Each attempt is beside one that is allowed, which proves that
 * the same operation at the same length does write.
 */
struct guard {
	uint8_t *memory; /* of rank 0; NULL in rank 1 */
	size_t bytes;    /* of it; the longest attempt */
	/* Lengths at which the style, or its substrate, takes another path; in any order, ended by 0. */
	const size_t *switches;
	size_t unit; /* lengths are multiples of it; 0: 1 */
};

struct guard_case {
	const char *name;
	/* Rank 0, before: allows it; forbids it, or withdraws what was allowed. NULL: there is nothing to do. */
	void (*allow)(size_t bytes), (*forbid)(size_t bytes);
	void (*learn)(size_t bytes); /* rank 1: hears what `allow` said; NULL: that says nothing */
	/* Rank 1: writes that many bytes, filled with `seed`, to the beginning of the memory. */
	void (*write)(size_t bytes, uint32_t seed);
	void (*arrived)(size_t bytes); /* rank 0: waits for them; NULL: they are there when `write` returns */
	/* Rank 1: tries the same; fails where it is not refused, or the refusal does not say why. */
	void (*attempt)(size_t bytes, uint32_t seed);
	/* Rank 0, after the attempt: looks at what the refusal left, or allows it again. NULL: there is nothing to do. */
	void (*after)(size_t bytes);
};

enum { GUARD_LENGTHS_MAX = 64 };
/* The lengths that are tried, each once, in ascending order; returns how many. */
unsigned int guard_lengths(const struct guard *guard, size_t lengths[GUARD_LENGTHS_MAX]);
/* Runs each case at each length. */
void guard_try(const struct guard *guard, const struct guard_case *cases, unsigned int count);

#endif
