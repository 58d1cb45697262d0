/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A layer for tests of the loops: one context connected to itself, a queue of copies, and faults to order.
 * Deterministic: it has no clock and no chance.
 */
#ifndef DRV_TESTS_FAKE_H
#define DRV_TESTS_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "cadge/layer.h"

struct fake_orders {
	bool queued;         /* post is QUEUED, sent comes one poll later */
	bool native;         /* grants native calls */
	bool in_sink;        /* grants POST_IN_SINK */
	bool reserve;        /* grants RESERVE, and takes no message that is posted */
	bool lends;          /* grants LEND, and is given back what it lends */
	size_t lends_most;   /* larger messages it does not lend; 0: it lends all */
	bool registers;      /* grants MEM_REG, and takes no buffer for put and get that was not registered */
	bool unreliable;     /* does not grant RELIABLE and ORDERED */
	bool unordered;      /* delivers the newest message first */
	uint32_t busy_every; /* every n-th operation is BUSY once; 1: always */
	uint32_t flip_every; /* flips a byte of every n-th message */
	uint32_t
		flip_least; /* if it has so many bytes: a control message that is hit is waited for in vain */
	uint32_t flip_at;   /* which byte */
	uint32_t drop_every;  /* drops every n-th message */
	uint32_t twice_every; /* delivers every n-th message twice */
	uint32_t fail_after;  /* poll fails after so many polls */
	uint32_t put_lost;    /* every n-th put writes nothing */
	uint32_t note_lost;   /* every n-th put with NOTIFY notifies nobody */
	uint32_t note_twice;  /* every n-th put with NOTIFY tells twice */
	uint32_t add_twice;   /* every n-th fetch_add adds two */
	uint32_t swap_lost;   /* every n-th compare_swap writes nothing */
	uint32_t reg_fails;   /* every n-th mem_reg fails */
};

extern struct fake_orders fake; /* what to do from now on */
extern uint64_t fake_messages;  /* accepted so far */
extern uint64_t fake_scattered; /* of these: in several pieces, or not from the start of a line */
extern uint64_t fake_buffers;   /* puts and gets with another buffer than the one before */
extern uint64_t fake_mem_regs;  /* of which mem_reg was called since open; what is registered now */
extern uint32_t fake_registered;
extern uint64_t fake_held; /* messages that were kept; and what was not given back yet */
extern uint32_t fake_lent;
extern uint32_t fake_queued_most; /* the most messages that the layer had at a time */
const struct cadge_layer *fake_layer(void);

#endif
