/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies: filled and compared in full, or written and read whole; and messages that are built in the library's memory. */
#include "traffic/payload.h"

#define STEP UINT64_C(0xa0761d6478bd642f)
#define ONES UINT64_C(0x0101010101010101)

#define FULL_BYTES_MAX (UINT64_C(16) << 20)

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

uint64_t drv_full_messages(uint64_t larger_bytes, uint32_t depth)
{
	const uint64_t fit = larger_bytes ? FULL_BYTES_MAX / larger_bytes : depth;

	if (fit >= depth)
		return depth;
	return fit ? fit : 1;
}

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

struct drv_message drv_message_of(const struct drv_engine *engine, uint64_t bytes, uint64_t seed, bool touch)
{
	/* where nothing is touched, a full comparison goes the way that is measured */
	return (struct drv_message){.bytes = (size_t)bytes,
				    .seed = seed,
				    .touch = touch,
				    .in_place = touch && drv_in_place_grants(engine->layer)};
}

void drv_message_fill(const struct drv_message *message, uint8_t *at)
{
	drv_body_fill(at, message->bytes, message->seed, message->phase, message->key);
	if (message->lossy && message->bytes >= DRV_HEAD_BYTES)
		drv_store64(at + 8, message->seed + message->phase);
}

_Static_assert(DRV_HEAD_BYTES <= DRV_MESSAGE_ROOM_BYTES, "every layer was asked for the room of a head");

int drv_message_post_in_place(const struct drv_engine *engine, struct cadge_chan *chan,
			      const struct drv_message *message, uint64_t token)
{
	const size_t bytes = drv_message_bytes(message);
	void *base;
	/* a head is 16 bytes, however short the message */
	int code = engine->layer->reserve(chan, bytes < DRV_HEAD_BYTES ? DRV_HEAD_BYTES : bytes, 0, &base);

	if (code != CADGE_DONE)
		return code;
	drv_message_write_to(message, base);
	code = engine->layer->commit(chan, base, bytes, 0, token);
	if (code == CADGE_BUSY)
		engine->layer->cancel(chan, base);
	return code;
}
