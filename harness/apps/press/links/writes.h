/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote writes of a node, versions V1 to V5. Each node exposes a region to all others. For each endpoint it has a board,
 * which says what that one has taken and how busy it is (V1), and a ring of messages (V2); behind them there is room for files
 * that this node asked for (V3).
 *
 * Nothing is known of the order in which the bytes of a write arrive, so that a board or a message carries a check word, and
 * counts when that is right. A file is written first, then there is a quiet, then its message. Boards are never told of:
 * who waits for credits looks. Of messages in the ring a sleeping node is told by a notification: the layer's, where it has
 * one, else a message, which says how many there are, since it may come before the message it announces.
 */
#ifndef PRESS_WRITES_H
#define PRESS_WRITES_H

#include "press/links/links_state.h"

/* More endpoints than a launch of this pattern has. */
#define PRESS_ENDS_MAX 64u

struct press_board {
	uint64_t attempt;
	uint32_t taken, load;
	uint64_t check;
};

struct press_slot {
	struct press_message head;
	/* of all messages in this ring */
	uint64_t number;
	uint64_t check;
};

_Static_assert(sizeof(struct press_slot) == 64, "a message in a ring fills a line");

#define PRESS_BOARD_STRIDE  64u
#define PRESS_RINGS_AT      (PRESS_ENDS_MAX * PRESS_BOARD_STRIDE)
#define PRESS_LANDING_AT    65536u
#define PRESS_LANDING_BYTES (8u << 20)

_Static_assert(PRESS_RINGS_AT + PRESS_ENDS_MAX * PRESS_WINDOW * sizeof(struct press_slot) <= PRESS_LANDING_AT,
	       "boards and rings lie in front of files");

/* Of the region of a node; 0: none. */
uint64_t press_region_bytes(enum press_version version);

/* Makes a board or a message whole: its last words. */
void press_board_seal(struct press_board *board);
void press_slot_seal(struct press_slot *slot);

/* Whether the first job of a link is written remotely; and does that, or the next step of it. False: later, or it failed. */
bool press_writes(const struct press_links *links, const struct press_link *link);
bool press_write_first(struct press_links *links, uint32_t channel);

/* Writes what the other end has to know of credits and load. */
void press_write_board(struct press_links *links, uint32_t channel);

/* A notification of the layer's own, with the write. */
bool press_notified_by_layer(const struct press_links *links);

/* Takes what others have written here. How many messages it was. */
int press_read_region(struct press_links *links);

#endif
