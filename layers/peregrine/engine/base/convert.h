/* SPDX-License-Identifier: BSD-3-Clause */
/* Unlike byte orders, and messages as words. */
#ifndef PGR_CONVERT_H
#define PGR_CONVERT_H

#include <stdint.h>

/* Bytes of a message of so many bytes as big-endian words. */
uint64_t pgr_words_bytes(const char *signature, uint64_t bytes);
/* Words do not fit the signature. */
#define PGR_WORDS_BAD UINT64_MAX
/* Both return the bytes written, or PGR_WORDS_BAD; to and from have room for the larger form. */
uint64_t pgr_words_make(const char *signature, const uint8_t *from, uint64_t bytes, uint8_t *to);
uint64_t pgr_words_take(const char *signature, const uint8_t *from, uint64_t bytes, uint8_t *to);
/* Swaps each element in place, for a sender of the other byte order. */
void pgr_swap(const char *signature, uint8_t *at, uint64_t bytes);
/* What came with these flags, as this machine has it. Returns the bytes written, or PGR_WORDS_BAD; as pgr_words_take. */
uint64_t pgr_reform(const char *signature, uint64_t flags, const void *from, uint64_t bytes, uint8_t *to);

#endif
