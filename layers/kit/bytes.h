/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that cross from one process to another: fixed widths, little-endian, and a bounded writer and reader
 * for address blobs. Nothing here looks at a length from the wire before checking it.
 */
#ifndef CADGE_KIT_BYTES_H
#define CADGE_KIT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cadge/layer.h"

/* A value of the machine as little-endian and back: nothing to do on little-endian machines. */
static inline uint32_t cadge_le32(uint32_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap32(value);
#else
	return value;
#endif
}

static inline uint64_t cadge_le64(uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap64(value);
#else
	return value;
#endif
}

static inline void cadge_store32(void *at, uint32_t value)
{
	value = cadge_le32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void cadge_store64(void *at, uint64_t value)
{
	value = cadge_le64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint32_t cadge_load32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return cadge_le32(value);
}

static inline uint64_t cadge_load64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return cadge_le64(value);
}

/* ---- gathering a message ---- */

static inline size_t cadge_iov_bytes(const struct cadge_iov *iov, uint32_t count)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += iov[i].bytes;
	return bytes;
}

/* The bytes of a message that was posted. DONE; E_ARGUMENT: more than count_max pieces; E_TOO_LARGE: more than bytes_max bytes. */
static inline int cadge_iov_check(const struct cadge_iov *iov, uint32_t count, uint32_t count_max,
				  uint64_t bytes_max, size_t *bytes_out)
{
	size_t bytes = 0;

	if (count > count_max)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].bytes > bytes_max - bytes)
			return CADGE_E_TOO_LARGE;
		bytes += iov[i].bytes;
	}
	*bytes_out = bytes;
	return CADGE_DONE;
}

static inline void cadge_iov_gather(const struct cadge_iov *iov, uint32_t count, uint8_t *to)
{
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].bytes)
			memcpy(to, iov[i].base, iov[i].bytes);
		to += iov[i].bytes;
	}
}

/* ---- address blobs ---- */

/* Writes a blob into room given by the caller. `ok` turns false at the first item that does not fit, and
 * stays so. */
struct cadge_blob_out {
	uint8_t *at;
	size_t room_bytes;
	size_t used_bytes;
	bool ok;
};

static inline void cadge_blob_raw(struct cadge_blob_out *out, const void *data, size_t bytes)
{
	if (!out->ok || bytes > out->room_bytes - out->used_bytes) {
		out->ok = false;
		return;
	}
	if (bytes)
		memcpy(out->at + out->used_bytes, data, bytes);
	out->used_bytes += bytes;
}

static inline void cadge_blob_u32(struct cadge_blob_out *out, uint32_t value)
{
	uint8_t raw[4];

	cadge_store32(raw, value);
	cadge_blob_raw(out, raw, sizeof(raw));
}

static inline void cadge_blob_u64(struct cadge_blob_out *out, uint64_t value)
{
	uint8_t raw[8];

	cadge_store64(raw, value);
	cadge_blob_raw(out, raw, sizeof(raw));
}

/* A length and then so many bytes. */
static inline void cadge_blob_bytes(struct cadge_blob_out *out, const void *data, size_t bytes)
{
	if (bytes > UINT32_MAX)
		out->ok = false;
	cadge_blob_u32(out, (uint32_t)bytes);
	cadge_blob_raw(out, data, bytes);
}

/*
 * Reads a blob of a peer. `ok` turns false at the first item that is not there; items then read as 0 or
 * NULL.
 */
struct cadge_blob_in {
	const uint8_t *at;
	size_t left_bytes;
	bool ok;
};

static inline const void *cadge_blob_take(struct cadge_blob_in *in, size_t bytes)
{
	const uint8_t *data = in->at;

	if (!in->ok || bytes > in->left_bytes) {
		in->ok = false;
		return NULL;
	}
	in->at += bytes;
	in->left_bytes -= bytes;
	return data;
}

static inline uint32_t cadge_blob_take_u32(struct cadge_blob_in *in)
{
	const void *raw = cadge_blob_take(in, 4);

	return raw ? cadge_load32(raw) : 0;
}

static inline uint64_t cadge_blob_take_u64(struct cadge_blob_in *in)
{
	const void *raw = cadge_blob_take(in, 8);

	return raw ? cadge_load64(raw) : 0;
}

/* The counterpart of cadge_blob_bytes: the bytes stay inside the blob. */
static inline const void *cadge_blob_take_bytes(struct cadge_blob_in *in, size_t *bytes_out)
{
	size_t bytes = cadge_blob_take_u32(in);
	const void *data = cadge_blob_take(in, bytes);

	*bytes_out = data ? bytes : 0;
	return data;
}

#endif
