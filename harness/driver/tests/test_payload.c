/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads: heads and bodies hold what was written, and nothing else. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "traffic/payload.h"

#define SEED UINT64_C(0x123456789abcdef)

/* Received data has no byte of room beyond its end: the sanitizer sees any read there. */
static uint8_t *exact_copy(const uint8_t *buffer, size_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);

	if (!copy)
		exit(77);
	memcpy(copy, buffer, bytes);
	return copy;
}

/* What is written anew for each message, and read whole: in every length, and at any address. */
static void test_touch(void)
{
	uint8_t buffer[4096 + 16];
	int whole = 1, flips = 1, intact = 1;
	uint32_t numbers = 0;

	for (size_t bytes = 0; bytes <= 400; bytes += bytes < 180 ? 1 : 37) {
		uint8_t *copy;

		memset(buffer, 0xee, sizeof(buffer));
		drv_touch_write(buffer, bytes, SEED, 7);
		for (size_t at = 0; at < 16; at++)
			intact &= buffer[at] == 0xee;
		intact &= buffer[bytes < 16 ? 16 : bytes] == 0xee;
		copy = exact_copy(buffer, bytes);
		whole &= drv_touch_read(copy, bytes, SEED, 7);
		memmove(buffer + 3, buffer, bytes);
		whole &= drv_touch_read(buffer + 3, bytes, SEED, 7);
		for (size_t at = 16; at < bytes; at++) {
			copy[at] ^= 1;
			flips &= !drv_touch_read(copy, bytes, SEED, 7);
			copy[at] ^= 1;
		}
		free(copy);
	}
	tap_ok(intact, "writing a message anew keeps to what is behind its head");
	tap_ok(whole, "what was written is read, in every length and at any address");
	tap_ok(flips, "a flipped bit in any byte of a message that is read is noticed");
	drv_touch_write(buffer, 4096, SEED, 1);
	for (uint64_t number = 2; number < 258; number++)
		numbers += !drv_touch_read(buffer, 4096, SEED, number);
	tap_ok(numbers > 245, "messages hold other bytes than the one before: %u of 256", numbers);
}

int main(void)
{
	uint8_t buffer[4096 + 16];
	int heads = 1, others = 1, flips = 1, keys = 1, bodies = 1, stale = 1, body_flips = 1;

	for (size_t bytes = 0; bytes <= 40; bytes++) {
		for (uint64_t number = 0; number < 50; number++) {
			const uint64_t key = drv_head_write(buffer, bytes, SEED, number);
			uint8_t *copy = exact_copy(buffer, bytes);

			heads &= drv_head_holds(copy, bytes, SEED, number);
			keys &= key == drv_head_key(copy, bytes);
			/* one byte cannot tell all numbers apart, eight can */
			if (bytes >= 8)
				others &= !drv_head_holds(copy, bytes, SEED, number + 1) &&
					  !drv_head_holds(copy, bytes, ~SEED, number);
			for (size_t at = 0; at < bytes && at < 16; at++) {
				copy[at] ^= 0x40;
				flips &= !drv_head_holds(copy, bytes, SEED, number);
				copy[at] ^= 0x40;
			}
			free(copy);
		}
	}
	tap_ok(heads, "heads of 0 to 40 bytes are recognised");
	tap_ok(keys, "sender and receiver see the same key");
	tap_ok(others, "other numbers and seeds are not");
	tap_ok(flips, "a flipped bit in any byte of the head is noticed");
	for (size_t bytes = 0; bytes <= 600; bytes += bytes < 40 ? 1 : 37) {
		uint8_t *copy;

		memset(buffer, 0, sizeof(buffer));
		drv_head_write(buffer, bytes, SEED, 7);
		drv_body_fill(buffer, bytes, SEED, 1, 7);
		copy = exact_copy(buffer, bytes);
		bodies &= drv_body_holds(copy, bytes, SEED, 1, 7);
		if (bytes >= 20)
			stale &= !drv_body_holds(copy, bytes, SEED, 2, 7) &&
				 !drv_body_holds(copy, bytes, SEED, 1, 8) &&
				 !drv_body_holds(copy, bytes, ~SEED, 1, 7);
		for (size_t at = 16; at < bytes; at++) {
			copy[at] ^= 1;
			body_flips &= !drv_body_holds(copy, bytes, SEED, 1, 7);
			copy[at] ^= 1;
		}
		free(copy);
	}
	tap_ok(bodies, "bodies are recognised");
	tap_ok(stale, "bodies of another phase, number or seed are not");
	tap_ok(body_flips, "a flipped bit in any byte of the body is noticed");
	memset(buffer, 0xee, sizeof(buffer));
	drv_body_fill(buffer, 100, SEED, 1, 1);
	tap_ok(buffer[100] == 0xee && buffer[15] == 0xee && buffer[16] + buffer[17] + buffer[18] != 3 * 0xee,
	       "filling keeps to the body");
	test_touch();
	return tap_done();
}
