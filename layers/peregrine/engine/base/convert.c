/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data between unlike machines. Between like ones nothing is converted (the second optimisation); its *off*
 * is what Sun RPC did then: both sides go through big-endian 4-byte words (RFC 4506: 2 bytes become 4, bytes
 * are padded to 4, but not at the end of a message, whose length is told).
 */
#include "convert.h"

#include <string.h>

#include "packet.h"

struct walk {
	const char *at; /* in the signature */
	char kind;
	uint64_t count; /* elements left of this kind; UINT64_MAX: for the rest */
	bool cut;       /* the message ends within this run: what is left of it is bytes */
};

static void walk_on(struct walk *walk)
{
	const char *at = walk->at;

	if (!at || !*at) { /* the last one repeats; without a signature all are bytes */
		if (!walk->kind)
			walk->kind = 'b';
		walk->count = UINT64_MAX;
		return;
	}
	walk->kind = *at == 'h' || *at == 'w' || *at == 'd' ? *at : 'b';
	at++;
	walk->count = 0;
	while (*at >= '0' && *at <= '9' && walk->count < UINT32_MAX)
		walk->count = walk->count * 10 + (uint64_t)(*at++ - '0');
	if (!walk->count)
		walk->count = *at ? 1 : UINT64_MAX;
	walk->at = at;
}

static uint64_t size_of(char kind)
{
	return kind == 'h' ? 2 : kind == 'w' ? 4 : kind == 'd' ? 8 : 1;
}

/* The next run of elements of one kind within `left` bytes of the plain form. */
static uint64_t segment_run(struct walk *walk, uint64_t left)
{
	uint64_t size, run;

	walk_on(walk);
	size = size_of(walk->kind);
	walk->cut = walk->count > left / size;
	run = walk->cut ? left / size : walk->count;
	return run * size;
}

uint64_t pgr_words_bytes(const char *signature, uint64_t bytes)
{
	struct walk walk = {.at = signature};
	uint64_t words = 0;

	while (bytes) {
		uint64_t run = segment_run(&walk, bytes);

		bytes -= run;
		words += walk.kind == 'h'            ? run * 2
			 : walk.kind == 'b' && bytes ? (run + 3) & ~UINT64_C(3)
						     : run;
		if (walk.cut)
			return words + bytes;
	}
	return words;
}

static void put32(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 24), to[1] = (uint8_t)(value >> 16), to[2] = (uint8_t)(value >> 8),
	to[3] = (uint8_t)value;
}

static uint32_t get32(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

uint64_t pgr_words_make(const char *signature, const uint8_t *from, uint64_t bytes, uint8_t *to)
{
	struct walk walk = {.at = signature};
	uint8_t *const begin = to;

	while (bytes) {
		uint64_t run = segment_run(&walk, bytes);

		bytes -= run;
		if (walk.kind == 'b') {
			memcpy(to, from, run);
			to += run, from += run;
			for (; bytes && run % 4; run++)
				*to++ = 0;
			continue;
		}
		for (; run; run -= size_of(walk.kind), from += size_of(walk.kind)) {
			uint64_t eight;
			uint32_t four;
			uint16_t two;

			switch (walk.kind) {
			case 'h':
				memcpy(&two, from, sizeof(two));
				put32(to, two);
				to += 4;
				break;
			case 'd':
				memcpy(&eight, from, sizeof(eight));
				put32(to, (uint32_t)(eight >> 32));
				put32(to + 4, (uint32_t)eight);
				to += 8;
				break;
			default:
				memcpy(&four, from, sizeof(four));
				put32(to, four);
				to += 4;
				break;
			}
		}
		if (walk.cut) {
			memcpy(to, from, bytes);
			return (uint64_t)(to - begin) + bytes;
		}
	}
	return (uint64_t)(to - begin);
}

uint64_t pgr_words_take(const char *signature, const uint8_t *from, uint64_t bytes, uint8_t *to)
{
	struct walk walk = {.at = signature};
	uint8_t *const begin = to;

	while (bytes) {
		uint64_t worded, run;

		walk_on(&walk);
		if (walk.kind == 'b') {
			const bool last = walk.count >= bytes;

			run = last ? bytes : walk.count;
			worded = last ? run : (run + 3) & ~UINT64_C(3);
			/* no padding but before something else, and none that says something */
			if (worded > bytes || (worded > run && worded == bytes))
				return PGR_WORDS_BAD;
			for (uint64_t i = run; i < worded; i++)
				if (from[i])
					return PGR_WORDS_BAD;
			memcpy(to, from, run);
			to += run;
			from += worded, bytes -= worded;
			continue;
		}
		worded = walk.kind == 'd' ? 8 : 4;
		for (run = walk.count; run && bytes >= worded; run--, from += worded, bytes -= worded) {
			const uint32_t high = get32(from);
			const uint64_t eight = walk.kind == 'd' ? (uint64_t)high << 32 | get32(from + 4) : 0;
			const uint16_t two = (uint16_t)high;

			switch (walk.kind) {
			case 'h':
				if (high > UINT16_MAX)
					return PGR_WORDS_BAD;
				memcpy(to, &two, sizeof(two));
				to += 2;
				break;
			case 'd':
				memcpy(to, &eight, sizeof(eight));
				to += 8;
				break;
			default:
				memcpy(to, &high, sizeof(high));
				to += 4;
				break;
			}
		}
		if (run && bytes) { /* the message ends within an element */
			if (bytes >= size_of(walk.kind))
				return PGR_WORDS_BAD;
			memcpy(to, from, bytes);
			return (uint64_t)(to - begin) + bytes;
		}
	}
	return (uint64_t)(to - begin);
}

void pgr_swap(const char *signature, uint8_t *at, uint64_t bytes)
{
	struct walk walk = {.at = signature};

	while (bytes) {
		uint64_t run = segment_run(&walk, bytes);
		const uint64_t size = size_of(walk.kind);

		bytes -= run;
		for (; run; run -= size, at += size)
			for (uint64_t i = 0; i < size / 2; i++) {
				const uint8_t byte = at[i];

				at[i] = at[size - 1 - i];
				at[size - 1 - i] = byte;
			}
		if (walk.cut)
			return;
	}
}

uint64_t pgr_reform(const char *signature, uint64_t flags, const void *from, uint64_t bytes, uint8_t *to)
{
	if (flags & PGR_FLAG_WORDS)
		return pgr_words_take(signature, from, bytes, to);
	if (bytes)
		memcpy(to, from, bytes);
	if ((flags & PGR_FLAG_BIG_ENDIAN) != PGR_OWN_ORDER)
		pgr_swap(signature, to, bytes);
	return bytes;
}
