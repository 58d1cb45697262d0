/* SPDX-License-Identifier: BSD-3-Clause */
/* The bodies of payloads: filled before, compared after. */
#include "traffic/verify.h"

#define STEP UINT64_C(0xa0761d6478bd642f)

static uint64_t first_word(uint64_t seed, uint64_t phase, uint64_t number)
{
	return drv_mix(drv_mix(seed, phase), number);
}

void drv_body_fill(void *buffer, size_t bytes, uint64_t seed, uint64_t phase, uint64_t number)
{
	const uint64_t first = first_word(seed, phase, number);
	uint8_t *at = (uint8_t *)buffer + DRV_HEAD_BYTES;
	size_t words, rest;
	uint64_t word;

	if (bytes <= DRV_HEAD_BYTES)
		return;
	words = (bytes - DRV_HEAD_BYTES) / 8;
	rest = (bytes - DRV_HEAD_BYTES) % 8;
	for (size_t i = 0; i < words; i++) {
		word = first + i * STEP;
		word ^= word >> 29;
		drv_store64(at + 8 * i, word);
	}
	word = first + words * STEP;
	word ^= word >> 29;
	memcpy(at + 8 * words, &word, rest);
}

bool drv_body_holds(const void *data, size_t bytes, uint64_t seed, uint64_t phase, uint64_t number)
{
	const uint64_t first = first_word(seed, phase, number);
	const uint8_t *at = (const uint8_t *)data + DRV_HEAD_BYTES;
	uint64_t word, difference = 0;
	size_t words, rest;

	if (bytes <= DRV_HEAD_BYTES)
		return true;
	words = (bytes - DRV_HEAD_BYTES) / 8;
	rest = (bytes - DRV_HEAD_BYTES) % 8;
	for (size_t i = 0; i < words; i++) {
		word = first + i * STEP;
		difference |= drv_load64(at + 8 * i) ^ (word ^ word >> 29);
	}
	word = first + words * STEP;
	word ^= word >> 29;
	return !difference && !memcmp(at + 8 * words, &word, rest);
}
