/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion between unlike machines: there and back for many signatures and all lengths. TAP on standard
 * output. */
#include <stdio.h>
#include <stdlib.h>

#include "../core/engine.h"

enum { BYTES_MAX = 200, RANDOM_SIGNATURES = 3000 };

static bool good;
static uint64_t state = 1;

static uint32_t below(uint32_t end)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 11) % end);
}

static bool check(bool holds, int line, const char *what, const char *signature, uint64_t bytes)
{
	if (!holds) {
		printf("# convert.c:%d: %s; signature %s, %llu bytes\n", line, what,
		       signature ? signature : "(none)", (unsigned long long)bytes);
		good = false;
	}
	return holds;
}
#define CHECK(what, signature, bytes) check((what), __LINE__, #what, signature, bytes)

/* A buffer of exactly so many bytes, so that a sanitizer sees one too many. */
static uint8_t *exact(uint64_t bytes)
{
	uint8_t *at = malloc(bytes ? (size_t)bytes : 1);

	if (!at)
		abort();
	return at;
}

static const char *const signatures[] = {
	NULL,           "",      "b",     "h",      "w",         "d",
	"hb",           "bh",    "wb",    "bw",     "dw",        "wd",
	"d2w",          "w3",    "b3w",   "b3h2d1", "h2b5w",     "hw2bd",
	"b1b2b3",       "d10h",  "h3d",   "b7d2h",  "wwwwww",    "hhhhhb3",
	"w4294967295b", "b100w", "h100w", "d100b",  "b4w2h3d1b", "w99999999999999999999999b",
};

static void random_signature(char *text, unsigned int letters)
{
	for (unsigned int i = 0; i < letters; i++) {
		*text++ = "bhwd"[below(4)];
		if (below(2))
			text += sprintf(text, "%u", 1 + below(12));
	}
	*text = 0;
}

static void there_and_back(const char *signature, uint64_t bytes)
{
	uint8_t *plain = exact(bytes), *back, *words;
	uint64_t made, taken;

	for (uint64_t i = 0; i < bytes; i++)
		plain[i] = (uint8_t)below(256);
	/* What is made is as long as was said before, and not shorter than the plain form. */
	made = pgr_words_bytes(signature, bytes);
	CHECK(made >= bytes && made <= 4 * bytes + 4, signature, bytes);
	words = exact(made);
	CHECK(pgr_words_make(signature, plain, bytes, words) == made, signature, bytes);
	/* Back again, it is what it was, in no more room than the words have. */
	back = exact(made);
	taken = pgr_words_take(signature, words, made, back);
	CHECK(taken == bytes && !memcmp(back, plain, (size_t)bytes), signature, bytes);
	free(back);
	/* Cut anywhere, or with wrong bytes: either refused or taken, within the room. */
	for (uint64_t length = 0; length <= made; length++) {
		uint8_t *part = exact(length);

		memcpy(part, words, (size_t)length);
		if (length && below(2))
			part[below((uint32_t)length)] ^= (uint8_t)(1 + below(255));
		back = exact(length);
		taken = pgr_words_take(signature, part, length, back);
		CHECK(taken == PGR_WORDS_BAD || taken <= length, signature, length);
		free(back);
		free(part);
	}
	free(words);
	/* Swapped twice is not swapped at all. */
	back = exact(bytes);
	memcpy(back, plain, (size_t)bytes);
	pgr_swap(signature, back, bytes);
	if (bytes > 16 && signature && !strcmp(signature, "d"))
		CHECK(memcmp(back, plain, 16) != 0, signature, bytes);
	pgr_swap(signature, back, bytes);
	CHECK(!memcmp(back, plain, (size_t)bytes), signature, bytes);
	free(back);
	free(plain);
}

static void test_fixed(void)
{
	for (size_t i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++)
		for (uint64_t bytes = 0; bytes <= BYTES_MAX; bytes++)
			there_and_back(signatures[i], bytes);
}

static void test_random(void)
{
	for (unsigned int i = 0; i < RANDOM_SIGNATURES; i++) {
		char text[200];

		random_signature(text, 1 + below(10));
		there_and_back(text, below(BYTES_MAX));
	}
}

/* What the words are, byte for byte. */
static void test_form(void)
{
	const uint16_t two = 0x0102;
	const uint32_t four = 0x03040506;
	const uint64_t eight = UINT64_C(0x0708090a0b0c0d0e);
	static const uint8_t right[] = {0,  0,  1,  2,  3,  4,   5,   6, 7, 8,  9,
					10, 11, 12, 13, 14, 'x', 'y', 0, 0, 'z'};
	uint8_t plain[17], words[64];

	memcpy(plain, &two, 2);
	memcpy(plain + 2, &four, 4);
	memcpy(plain + 6, &eight, 8);
	memcpy(plain + 14, "xyz", 3);
	/* Big-endian words; bytes padded with 0 up to the next run, not at the end. */
	CHECK(pgr_words_make("hwdb2b", plain, sizeof(plain), words) == sizeof(right) &&
		      !memcmp(words, right, sizeof(right)),
	      "hwdb2b", sizeof(plain));
}

static void test_malformed(void)
{
	static const struct {
		const char *signature;
		uint64_t bytes;
		uint8_t words[12];
	} bad[] = {
		{"h", 4, {0, 1, 0, 0}},             /* a half word beyond 65535 */
		{"h", 4, {0xff, 0xff, 0xff, 0xff}}, /* negative: what we send is never extended by its sign */
		{"wh", 8, {1, 2, 3, 4, 1, 0, 0, 0}},
		{"h", 6, {0, 0, 1, 2, 3, 4}}, /* two odd bytes would be a whole half word */
		{"h", 3, {0, 0, 1}},
		{"b3w", 5 - 1, {1, 2, 3, 4}},         /* padding, and nothing that it pads for */
		{"b1w", 3, {1, 0, 0}},                /* padding cut short */
		{"b3w", 8, {1, 2, 3, 4, 5, 6, 7, 8}}, /* padding that is not 0 */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t *words = exact(bad[i].bytes), *plain = exact(bad[i].bytes);

		memcpy(words, bad[i].words, (size_t)bad[i].bytes);
		CHECK(pgr_words_take(bad[i].signature, words, bad[i].bytes, plain) == PGR_WORDS_BAD,
		      bad[i].signature, bad[i].bytes);
		free(words);
		free(plain);
	}
}

/* A letter that there is not counts as bytes. */
static void test_unknown_letters(void)
{
	static const char *const strange[] = {"x", "q3w", "bZ2h", "-", "5", "w-3"};

	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		for (uint64_t bytes = 0; bytes < 40; bytes++)
			there_and_back(strange[i], bytes);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{"there and back", test_fixed},
		{"there and back, random signatures", test_random},
		{"the form of words", test_form},
		{"malformed words", test_malformed},
		{"unknown letters", test_unknown_letters},
	};
	const unsigned int count = sizeof(tests) / sizeof(tests[0]);
	int status = 0;

	printf("TAP version 13\n1..%u\n", count);
	for (unsigned int i = 0; i < count; i++) {
		good = true;
		tests[i].run();
		printf("%s %u - %s\n", good ? "ok" : "not ok", i + 1, tests[i].name);
		status |= !good;
	}
	return status;
}
