/* SPDX-License-Identifier: BSD-3-Clause */
/* One message of SIGNATURE, as machines of both byte orders have it and as words. */
#ifndef PGR_TESTS_UNLIKE_H
#define PGR_TESTS_UNLIKE_H

#include <stdint.h>

enum { PLAIN_BYTES = 30, WORDS_BYTES = 35 };

/* A half word, two words, a byte, double words up to the end, which cuts the last one short. */
extern const uint8_t plain[PLAIN_BYTES], swapped[PLAIN_BYTES];
extern const uint8_t words[WORDS_BYTES];
/* The one of this machine, and the other. */
extern const uint8_t *const own, *const unlike;

#endif
