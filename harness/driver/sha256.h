/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for the proof of the token and the launch's digest. Ours because
 * the binary may need nothing but libc on a node: the kernel's hash sockets are switched off on many
 * clusters, and a static libcrypto would be larger than everything else together. Checked against the
 * standards' vectors and Python's hashlib.
 */
#ifndef DRV_SHA256_H
#define DRV_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define DRV_SHA256_BYTES 32

struct drv_sha256 {
	uint32_t state[8];
	uint64_t total_bytes;
	uint8_t block[64];
};

void drv_sha256_start(struct drv_sha256 *hash);
void drv_sha256_add(struct drv_sha256 *hash, const void *bytes, size_t count);
void drv_sha256_finish(struct drv_sha256 *hash, uint8_t digest_out[DRV_SHA256_BYTES]);

/* HMAC-SHA-256 of `count` bytes under a key of any length. */
void drv_hmac_sha256(const void *key, size_t key_bytes, const void *bytes, size_t count,
		     uint8_t digest_out[DRV_SHA256_BYTES]);

/* 64 hexadecimal digits and a NUL. */
void drv_sha256_hex(const uint8_t digest[DRV_SHA256_BYTES], char hex_out[65]);

#endif
