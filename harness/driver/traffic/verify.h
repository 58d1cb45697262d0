/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What payloads hold and how that is checked.
 *
 * Head, written and checked for every message of a measurement: from 16 bytes on, the sequence number and the
 * seed (little endian); below, as many bytes as there are of f(seed, sequence). The *key* of a message is
 * what its head says in 8 bytes: the sequence number, or the first bytes, zero-extended. A reply's head is
 * made from the key of its request under the complement of the seed, so that the server needs nothing but
 * what it received, and the caller proves the round trip.
 *
 * Body, everything after the head: words from (seed, phase, sequence), filled and compared in full in a phase
 * before and a phase after the measurement.
 *
 * All buffers of ours have at least 16 bytes of room, whatever the message's size; received data is never
 * read beyond its end.
 */
#ifndef DRV_VERIFY_H
#define DRV_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DRV_HEAD_BYTES 16u

static inline uint64_t drv_load64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t drv_load32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline void drv_store64(void *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* f(seed, number): 64 well-mixed bits. */
static inline uint64_t drv_mix(uint64_t seed, uint64_t number)
{
	uint64_t x = number * UINT64_C(0x9e3779b97f4a7c15) + seed;

	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

/* The 16 bytes that a head of `bytes` bytes is cut from. */
static inline void drv_head_words(uint64_t words_out[2], size_t bytes, uint64_t seed, uint64_t number)
{
	if (bytes >= DRV_HEAD_BYTES) {
		words_out[0] = number;
		words_out[1] = seed;
	} else {
		words_out[0] = drv_mix(seed, number);
		words_out[1] = bytes > 8 ? drv_mix(seed, ~number) : 0;
	}
}

/* The first 8 bytes of a message, zero-extended. */
static inline uint64_t drv_head_key(const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t key = 0;

	if (__builtin_expect(bytes >= 8, 1))
		return drv_load64(at);
	if (bytes >= 4)
		return drv_load32(at) | (uint64_t)drv_load32(at + bytes - 4) << 8 * (bytes - 4);
	for (size_t i = 0; i < bytes; i++)
		key |= (uint64_t)at[i] << 8 * i;
	return key;
}

/* Writes the head of a message of `bytes` bytes into `buffer` (room for 16). Returns its key. */
static inline uint64_t drv_head_write(void *buffer, size_t bytes, uint64_t seed, uint64_t number)
{
	uint64_t words[2];

	drv_head_words(words, bytes, seed, number);
	memcpy(buffer, words, sizeof(words));
	return bytes >= 8 ? words[0] : words[0] & ((UINT64_C(1) << 8 * bytes) - 1);
}

/* Whether received data begins as drv_head_write would have made it. */
static inline bool drv_head_holds(const void *data, size_t bytes, uint64_t seed, uint64_t number)
{
	const uint8_t *at = data;
	uint64_t words[2];

	drv_head_words(words, bytes, seed, number);
	if (__builtin_expect(bytes >= DRV_HEAD_BYTES, 1))
		return drv_load64(at) == words[0] && drv_load64(at + 8) == words[1];
	if (bytes >= 8)
		return drv_load64(at) == words[0] &&
		       drv_load64(at + bytes - 8) == drv_load64((const uint8_t *)words + bytes - 8);
	return bytes == 0 || drv_head_key(at, bytes) == (words[0] & ((UINT64_C(1) << 8 * bytes) - 1));
}

/* Fills the body of a message of `bytes` bytes. `phase` tells stale bytes from new ones. */
void drv_body_fill(void *buffer, size_t bytes, uint64_t seed, uint64_t phase, uint64_t number);

/* Whether every byte of the body is as drv_body_fill makes it. True where there is no body. */
bool drv_body_holds(const void *data, size_t bytes, uint64_t seed, uint64_t phase, uint64_t number);

#endif
