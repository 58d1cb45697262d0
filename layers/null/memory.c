/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations of the null layer: the key is where the memory is, and everything is done at once.
 */
#include <stdlib.h>
#include <string.h>

#include "null/null.h"

struct cadge_region {
	unsigned char *base;
	size_t bytes;
};
struct cadge_remote {
	struct cadge_region region;
};

int null_expose(struct cadge_ctx *ctx, void *base, size_t bytes, void *key, size_t *key_bytes_inout,
		struct cadge_region **region_out)
{
	struct cadge_region *region = malloc(sizeof(*region));

	(void)ctx;
	if (!region)
		return CADGE_E_MEMORY;
	*region = (struct cadge_region){.base = base, .bytes = bytes};
	memcpy(key, region, sizeof(*region));
	*key_bytes_inout = sizeof(*region);
	*region_out = region;
	return CADGE_DONE;
}

void null_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	(void)ctx;
	free(region);
}

int null_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, struct cadge_remote **remote_out)
{
	struct cadge_remote *remote;

	(void)chan;
	if (key_bytes != sizeof(remote->region))
		return CADGE_E_ARGUMENT;
	remote = malloc(sizeof(*remote));
	if (!remote)
		return CADGE_E_MEMORY;
	memcpy(&remote->region, key, key_bytes);
	*remote_out = remote;
	return CADGE_DONE;
}

void null_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	free(remote);
}

static bool inside(const struct cadge_remote *remote, uint64_t offset_bytes, size_t bytes)
{
	return bytes <= remote->region.bytes && offset_bytes <= remote->region.bytes - bytes;
}

int null_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	(void)chan, (void)flags, (void)token;
	if (!inside(remote, offset_bytes, bytes))
		return CADGE_E_ARGUMENT;
	if (bytes)
		memmove(remote->region.base + offset_bytes, local, bytes);
	return CADGE_DONE;
}

int null_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint64_t token)
{
	(void)chan, (void)token;
	if (!inside(remote, offset_bytes, bytes))
		return CADGE_E_ARGUMENT;
	if (bytes)
		memmove(local, remote->region.base + offset_bytes, bytes);
	return CADGE_DONE;
}

int null_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		   struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	uint64_t word;

	(void)chan, (void)token;
	if (offset_bytes % sizeof(word) || !inside(remote, offset_bytes, sizeof(word)))
		return CADGE_E_ARGUMENT;
	memcpy(&word, remote->region.base + offset_bytes, sizeof(word));
	*before_out = word;
	word += addend;
	memcpy(remote->region.base + offset_bytes, &word, sizeof(word));
	return CADGE_DONE;
}

int null_quiet(struct cadge_chan *chan, uint64_t token)
{
	(void)chan, (void)token;
	return CADGE_DONE;
}
