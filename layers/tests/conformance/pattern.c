/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in a test message: f(seed, sequence, offset), so that both sides can make it without a copy. */
#include <string.h>

#include "conformance.h"

uint64_t mix64(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Word `i` of a message. The first two name it where there is room for both. */
static inline uint64_t word_at(size_t bytes, uint64_t seed, uint64_t sequence, uint64_t key, size_t i)
{
	if (bytes >= PATTERN_HEAD_BYTES && i == 0)
		return sequence;
	if (bytes >= PATTERN_HEAD_BYTES && i == 1)
		return mix64(seed ^ mix64(sequence));
	return (key + i) * UINT64_C(0x9e3779b97f4a7c15) ^ (key >> 7);
}

void pattern_fill(void *data, size_t bytes, uint64_t seed, uint64_t sequence)
{
	uint64_t key = mix64(seed * 3 + sequence);
	unsigned char *at = data;
	size_t i, words = bytes / 8;
	uint64_t word;

	for (i = 0; i < words; i++) {
		word = word_at(bytes, seed, sequence, key, i);
		memcpy(at + i * 8, &word, 8);
	}
	if (bytes % 8) {
		word = mix64(word_at(bytes, seed, sequence, key, words));
		memcpy(at + words * 8, &word, bytes % 8);
	}
}

bool pattern_check(const void *data, size_t bytes, uint64_t seed, uint64_t sequence, size_t *wrong_out)
{
	uint64_t key = mix64(seed * 3 + sequence);
	const unsigned char *at = data;
	size_t i, words = bytes / 8, n;
	uint64_t word, want;

	for (i = 0; i < words + 1; i++) {
		n = i < words ? 8 : bytes % 8;
		if (!n)
			break;
		want = word_at(bytes, seed, sequence, key, i);
		if (i == words)
			want = mix64(want);
		word = want;
		memcpy(&word, at + i * 8, n);
		if (word == want)
			continue;
		for (*wrong_out = i * 8; n > 1; n--, word >>= 8, want >>= 8, ++*wrong_out)
			if ((word & 0xff) != (want & 0xff))
				break;
		return false;
	}
	return true;
}

bool pattern_sequence(const void *data, size_t bytes, uint64_t seed, uint64_t *sequence_out)
{
	uint64_t word[2];

	if (bytes < PATTERN_HEAD_BYTES)
		return false;
	memcpy(word, data, sizeof(word));
	if (word[1] != mix64(seed ^ mix64(word[0])))
		return false;
	*sequence_out = word[0];
	return true;
}
