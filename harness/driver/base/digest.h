/* SPDX-License-Identifier: BSD-3-Clause */
/* The fingerprint of a document, by which two endpoints find out whether they hold the same one. */
#ifndef DRV_DIGEST_H
#define DRV_DIGEST_H

#include <stddef.h>

/* 64 hexadecimal digits and a NUL */
#define DRV_DIGEST_BYTES 65

/* Writes the SHA-256 (libsodium's) of so many bytes in lower-case hexadecimal digits. Cannot fail. */
void drv_digest(const void *bytes, size_t count, char hex_out[DRV_DIGEST_BYTES]);

#endif
