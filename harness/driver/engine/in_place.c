/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting into the memory of a library that grants it: a table of our own, whose post reserves, fills and commits. */
#include "engine/in_place.h"

#include <string.h>

/* The layer's table, and ours: the same but for post. Like that one it begins with a cache line. */
static const struct cadge_layer *below;
static _Alignas(64) struct cadge_layer own;

/* Every byte is written for every message: the one copy that a user of such memory makes, where post would make it. */
static int post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		uint64_t token)
{
	size_t bytes = 0;
	uint8_t *at;
	void *base;
	int code;

	for (uint32_t i = 0; i < count; i++)
		bytes += iov[i].bytes;
	code = below->reserve(chan, bytes, 0, &base);
	if (__builtin_expect(code != CADGE_DONE, 0))
		return code;
	at = base;
	for (uint32_t i = 0; i < count; at += iov[i].bytes, i++)
		memcpy(at, iov[i].base, iov[i].bytes);
	code = below->commit(chan, base, bytes, flags, token);
	if (__builtin_expect(code == CADGE_BUSY, 0))
		below->cancel(chan, base);
	return code;
}

const struct cadge_layer *drv_in_place(const struct cadge_layer *layer, const struct cadge_ctx *ctx)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	layer->limits(ctx, &limits);
	if (layer == &own || !(limits.caps & CADGE_CAP_RESERVE))
		return layer;
	/* the first thread opens before there are others, which only read */
	if (below != layer) {
		below = layer;
		own = *layer;
		own.post = post;
	}
	return &own;
}

bool drv_in_place_grants(const struct cadge_layer *layer)
{
	return layer->post == post;
}
