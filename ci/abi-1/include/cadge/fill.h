/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a slot fills a struct that its caller may know in a shorter or a longer version (see "Growth" in
 * cadge/layer.h), and how it sees whether a struct of its caller has a field. Header-only.
 */
#ifndef CADGE_FILL_H
#define CADGE_FILL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Copies `from` to `out`, both a struct that begins with `uint32_t bytes`: as much as out->bytes and
 * from_bytes (sizeof of `from`) both cover. out->bytes stays; what the caller has beyond stays as it was.
 */
static inline void cadge_fill(void *out, const void *from, size_t from_bytes)
{
	uint32_t room_bytes;

	memcpy(&room_bytes, out, sizeof(room_bytes));
	if (from_bytes > room_bytes)
		from_bytes = room_bytes;
	if (from_bytes > sizeof(room_bytes))
		memcpy((unsigned char *)out + sizeof(room_bytes),
		       (const unsigned char *)from + sizeof(room_bytes), from_bytes - sizeof(room_bytes));
}

/* True where the struct at `at`, as its owner was compiled, has this member. For members younger than ABI 1. */
#define CADGE_HAS(at, member)                                                                                \
	(offsetof(__typeof__(*(at)), member) + sizeof((at)->member) <= (size_t)(at)->bytes)

#endif
