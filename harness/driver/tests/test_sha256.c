/* SPDX-License-Identifier: BSD-3-Clause */
/* The vectors of FIPS 180-4 and RFC 4231. */
#include <string.h>

#include "sha256.h"
#include "tap.h"

static void check_hash(const char *text, size_t repeat, const char *wanted)
{
	uint8_t digest[DRV_SHA256_BYTES];
	struct drv_sha256 hash;
	char hex[65];

	drv_sha256_start(&hash);
	for (size_t i = 0; i < repeat; i++)
		drv_sha256_add(&hash, text, strlen(text));
	drv_sha256_finish(&hash, digest);
	drv_sha256_hex(digest, hex);
	tap_ok(!strcmp(hex, wanted), "SHA-256 of '%.16s' %zu times", text, repeat);
}

static void check_hmac(const char *key, size_t key_bytes, const char *text, size_t text_bytes,
		       const char *wanted)
{
	uint8_t digest[DRV_SHA256_BYTES];
	char hex[65];

	drv_hmac_sha256(key, key_bytes, text, text_bytes, digest);
	drv_sha256_hex(digest, hex);
	tap_ok(!strcmp(hex, wanted), "HMAC with a key of %zu bytes", key_bytes);
}

int main(void)
{
	char long_key[131];

	check_hash("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_hash("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check_hash("aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	check_hmac("Jefe", 4, "what do ya want for nothing?", 28,
		   "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(long_key, 0xaa, sizeof(long_key));
	check_hmac(long_key, sizeof(long_key), "Test Using Larger Than Block-Size Key - Hash Key First", 54,
		   "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	return tap_done();
}
