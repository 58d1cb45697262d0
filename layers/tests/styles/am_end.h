/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of the tests of Active Messages: a bundle with one endpoint, and what its handlers have seen. */
#ifndef CADGE_TESTS_STYLES_AM_END_H
#define CADGE_TESTS_STYLES_AM_END_H

#include "am/am.h"
#include "tests/styles/frame.h"

enum { WINDOW = 8, QUEUE = 4, SEGMENT_BYTES = 1 << 20, GUARD_BYTES = 64 };
enum { ECHO = 1, ANSWER, COUNT, BREAK_RULES, BREAK_MORE, LONG, LONG_BACK, BIG, TAKE, NOBODY = 77 };
#define TAG UINT64_C(0x1122334455667788)

extern struct am *am;
extern struct am_endpoint *endpoint; /* the first; its handlers are ECHO, ANSWER and COUNT, its tag is TAG */

/* What it is opened with, until am_begin; and requests of a look, at any time. */
extern uint32_t outstanding;
extern bool trusting, uncredited;
extern uint32_t budget;

/* What handlers and upcalls have seen. */
extern unsigned int handled, answered, returned, ended, wrong;
extern uint32_t words_seen[AM_WORDS_MAX], words_count;
extern uint8_t payload_seen[SEGMENT_BYTES];
extern size_t payload_bytes;
extern enum am_status status_seen;
extern uint32_t handler_seen;
extern int end_wanted;           /* the code that transfers end with */
extern bool end_any;             /* or with any */
extern bool may_lose_peer;       /* what a test is about */
extern void (*after_poll)(void); /* NULL: nothing is done there */

void am_begin(struct rank *rank);
/* Name 0 is the other's first endpoint. */
void map_other(void);
/* Meets all; nothing was wrong. */
void am_end(void);

void fill_words(struct am_words *words, uint32_t count);
void request(uint32_t name, uint32_t handler, const struct am_words *words, const struct cadge_iov *pieces,
	     uint32_t count);
/* Waits until so many came back: the last one with all it carried. */
void expect_return(enum am_status status, uint32_t handler, unsigned int number, const struct am_words *words,
		   size_t bytes, uint32_t seed);

/* Handlers ECHO (answers with what came), ANSWER (keeps it), and COUNT (of numbers that come in order). */
am_handler am_echo, am_answer, am_count;
bool is_zero(const uint8_t *at, size_t bytes);

/* ---- am_long.c ---- */

void test_long(struct rank *rank);
void test_long_unasked(struct rank *rank);
void test_long_in_the_queue(struct rank *rank);
void test_new_life(struct rank *rank);
void test_target_dies(struct rank *rank);

/* ---- am_refused.c ---- */

void test_refused_long(struct rank *rank);
void test_refused_medium(struct rank *rank);
void test_refused_reply(struct rank *rank);
void test_long_outside(struct rank *rank);

/* ---- am_stranger.c ---- */

void test_stranger(struct rank *rank);
void test_nonsense(struct rank *rank);
void test_noise(struct rank *rank);

#endif
