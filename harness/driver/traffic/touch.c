/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a message whole. */
#include "traffic/touch.h"

#define ONES UINT64_C(0x0101010101010101)

const char *const drv_touch_words[] = {"none", "write+read", NULL};

/* Two words. Four of them are read at a time: no addition waits for the one before it, so memory sets the pace. */
typedef uint64_t pair __attribute__((vector_size(16)));

static inline pair load(const uint8_t *at)
{
	pair value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The sum of all words of 8 bytes; what is left over is a word that ends with zeros. */
static uint64_t sum_of(const uint8_t *at, size_t bytes)
{
	pair one = {0}, two = {0}, three = {0}, four = {0};
	uint64_t sum, last = 0;

	for (; bytes >= 4 * sizeof(pair); at += 4 * sizeof(pair), bytes -= 4 * sizeof(pair)) {
		one += load(at);
		two += load(at + sizeof(pair));
		three += load(at + 2 * sizeof(pair));
		four += load(at + 3 * sizeof(pair));
	}
	one += two + three + four;
	sum = one[0] + one[1];
	for (; bytes >= 8; at += 8, bytes -= 8)
		sum += drv_load64(at);
	memcpy(&last, at, bytes);
	return sum + last;
}

bool drv_touch_read(const void *message, size_t bytes, uint64_t seed, uint64_t number)
{
	const uint64_t word = drv_touch_byte(seed, number) * ONES;
	size_t body;
	uint64_t last = 0;

	if (bytes <= DRV_HEAD_BYTES)
		return true;
	body = bytes - DRV_HEAD_BYTES;
	memcpy(&last, &word, body % 8);
	return sum_of((const uint8_t *)message + DRV_HEAD_BYTES, body) == body / 8 * word + last;
}
