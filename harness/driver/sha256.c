/* SPDX-License-Identifier: BSD-3-Clause */
#include "sha256.h"

#include <string.h>

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t value, int by)
{
	return value >> by | value << (32 - by);
}

static void compress_block(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10) + w[i - 7] +
		       (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 16];
	memcpy(s, state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		const uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
				     ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
		const uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
				     ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

void drv_sha256_start(struct drv_sha256 *hash)
{
	static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memset(hash, 0, sizeof(*hash));
	memcpy(hash->state, initial, sizeof(initial));
}

void drv_sha256_add(struct drv_sha256 *hash, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	while (count > 0) {
		const size_t used = hash->total_bytes % 64;
		const size_t take = count < 64 - used ? count : 64 - used;

		memcpy(hash->block + used, at, take);
		hash->total_bytes += take;
		at += take;
		count -= take;
		if (used + take == 64)
			compress_block(hash->state, hash->block);
	}
}

void drv_sha256_finish(struct drv_sha256 *hash, uint8_t digest_out[DRV_SHA256_BYTES])
{
	const uint64_t bits = hash->total_bytes * 8;
	uint8_t tail[8];

	drv_sha256_add(hash, "\x80", 1);
	while (hash->total_bytes % 64 != 56)
		drv_sha256_add(hash, "", 1);
	for (int i = 0; i < 8; i++)
		tail[i] = (uint8_t)(bits >> (56 - 8 * i));
	drv_sha256_add(hash, tail, sizeof(tail));
	for (int i = 0; i < DRV_SHA256_BYTES; i++)
		digest_out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void drv_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t count,
		     uint8_t digest_out[DRV_SHA256_BYTES])
{
	uint8_t block[64] = {0}, pad[64], inner[DRV_SHA256_BYTES];
	struct drv_sha256 hash;

	if (key_bytes > sizeof(block)) {
		drv_sha256_start(&hash);
		drv_sha256_add(&hash, key, key_bytes);
		drv_sha256_finish(&hash, block);
	} else {
		memcpy(block, key, key_bytes);
	}
	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] = block[i] ^ 0x36;
	drv_sha256_start(&hash);
	drv_sha256_add(&hash, pad, sizeof(pad));
	drv_sha256_add(&hash, bytes, count);
	drv_sha256_finish(&hash, inner);
	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] = block[i] ^ 0x5c;
	drv_sha256_start(&hash);
	drv_sha256_add(&hash, pad, sizeof(pad));
	drv_sha256_add(&hash, inner, sizeof(inner));
	drv_sha256_finish(&hash, digest_out);
	explicit_bzero(block, sizeof(block));
	explicit_bzero(pad, sizeof(pad));
}

void drv_sha256_hex(const uint8_t digest[DRV_SHA256_BYTES], char hex_out[65])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < DRV_SHA256_BYTES; i++) {
		hex_out[2 * i] = digits[digest[i] >> 4];
		hex_out[2 * i + 1] = digits[digest[i] & 15];
	}
	hex_out[64] = '\0';
}
