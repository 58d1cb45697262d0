/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hands: threads of a role that have no context, and never touch one, but by turns (turns.h). A handler's workers, a
 * caller that is blocked until its reply comes: they and the thread that owns the context give each other numbers, through
 * two mailboxes a hand, and what a number means is the pattern's business. They live for one attempt; the launch file
 * gives each its core.
 *
 * In poll mode a hand spins, and so does its owner. In block mode both sleep: a hand until it was given something, the
 * owner in drv_engine_wait until the layer has something to do or a hand gave it something. That takes a descriptor of
 * the layer's (EVENT_FD), since a sleep in the layer's own wait cannot be ended by another thread.
 *
 * The owner of a hand is one thread of its endpoint: where several play the role, hand i is that of thread i modulo
 * their number, and every index below counts an owner's own hands. What hands cost is in the process's usage; whether
 * they waited for a processor is not in run_wait_ns.
 */
#ifndef DRV_HANDS_H
#define DRV_HANDS_H

#include "engine/engine.h"

struct drv_hand;

/* A hand's whole life, in its thread: takes and gives until drv_hand_take says that it is over. */
typedef void (*drv_hand_fn)(struct drv_hand *hand, void *arg);

/*
 * Starts the hands of the calling thread, as many as drv_hands_wanted says, and enters them in engine->hands; `room`:
 * so many numbers at most are on their way to or from one hand. -1 with the reason, and nothing started: in block mode
 * over a layer without a descriptor too. Nothing where none are wanted.
 */
int drv_hands_start(struct drv_engine *engine, drv_hand_fn fn, void *arg, uint32_t room,
		    struct drv_fail *fail);
/* Ends them, wherever they are; what is in mailboxes is lost. Legal without. */
void drv_hands_end(struct drv_engine *engine);

/* How many hands the calling thread has by the launch file. */
uint32_t drv_hands_wanted(const struct drv_engine *engine);

/* Owner: gives a hand a number, and wakes it. False: `room` of them are there already. */
bool drv_hands_give(struct drv_engine *engine, uint32_t hand, uint64_t number);
/* Owner: takes a number that a hand gave, in turn from all of them. False: there is none. */
bool drv_hands_take(struct drv_engine *engine, uint32_t *hand_out, uint64_t *number_out);
/* Hand: its number among its owner's. */
uint32_t drv_hand_index(const struct drv_hand *hand);
/* Hand: takes the next number, and waits for it. False: it is over. */
bool drv_hand_take(struct drv_hand *hand, uint64_t *number_out);
/* Hand: the same without waiting. False: there is none, or it is over. */
bool drv_hand_try(struct drv_hand *hand, uint64_t *number_out);
/* Hand: gives its owner a number. Waits while `room` of them are there; false: it is over. */
bool drv_hand_give(struct drv_hand *hand, uint64_t number);
/* Hand: whether it is over; for a hand that works for long. */
bool drv_hand_over(const struct drv_hand *hand);

/* Whether all hands that ended stayed on their cores; `detail` gets the first that did not. */
bool drv_hands_pinned(const struct drv_engine *engine, char *detail, size_t detail_bytes);

/* As drv_engine_wait, of an engine with hands: sleeps until the layer or one of them has something. 0 or -1. */
int drv_hands_wait(struct drv_engine *engine, uint64_t timeout_ns, struct drv_fail *fail);

#endif
