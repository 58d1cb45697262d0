/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the fingerprint of a document. */
#include "base/digest.h"

#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>

_Static_assert(DRV_DIGEST_BYTES == 2 * crypto_hash_sha256_BYTES + 1, "two digits a byte, and a NUL");

void drv_digest(const void *bytes, size_t count, char hex_out[DRV_DIGEST_BYTES])
{
	unsigned char digest[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(digest, bytes, count);
	sodium_bin2hex(hex_out, DRV_DIGEST_BYTES, digest, sizeof(digest));
}
