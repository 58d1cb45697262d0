/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations of the null layer: the key names the region and what its peer may do with it, and
 * everything is done at once. Whoever attaches checks the key; each operation checks what was intended.
 */
#include <stdlib.h>
#include <string.h>

#include "kit/adapter.h"
#include "null/null.h"

struct cadge_region {
	struct cadge_region *next;
	unsigned char *base;
	size_t bytes;
	uint32_t rights, peer;
};
struct cadge_remote {
	struct cadge_region *region;
	uint32_t intent;
};

int null_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_region *region;

	(void)flags;
	if (*key_bytes_inout < sizeof(struct cadge_region *) || !rights || (rights & ~CADGE_MAY_ALL) ||
	    (peer != CADGE_ALL_PEERS && peer >= ctx->peers))
		return CADGE_E_ARGUMENT;
	region = malloc(sizeof(*region));
	if (!region)
		return CADGE_E_MEMORY;
	*region = (struct cadge_region){
		.next = ctx->regions, .base = base, .bytes = bytes, .rights = rights, .peer = peer};
	ctx->regions = region;
	memcpy(key, &region, sizeof(struct cadge_region *));
	*key_bytes_inout = sizeof(struct cadge_region *);
	*region_out = region;
	return CADGE_DONE;
}

void null_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	(void)CADGE_LIST_REMOVE(ctx->regions, region);
	free(region);
}

int null_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent, uint32_t flags,
		struct cadge_remote **remote_out)
{
	struct cadge_region *region = NULL, *at = chan->ctx->regions;
	struct cadge_remote *remote;

	(void)flags;
	if (key_bytes != sizeof(struct cadge_region *) || !intent)
		return CADGE_E_ARGUMENT;
	memcpy(&region, key, sizeof(struct cadge_region *));
	while (at && at != region)
		at = at->next;
	if (!at || (intent & ~region->rights) ||
	    (region->peer != CADGE_ALL_PEERS && region->peer != chan->peer))
		return CADGE_E_REFUSED;
	remote = malloc(sizeof(*remote));
	if (!remote)
		return CADGE_E_MEMORY;
	*remote = (struct cadge_remote){.region = region, .intent = intent};
	*remote_out = remote;
	return CADGE_DONE;
}

void null_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	free(remote);
}

static int may(const struct cadge_remote *remote, uint32_t what, uint64_t offset_bytes, size_t bytes)
{
	if (bytes > remote->region->bytes || offset_bytes > remote->region->bytes - bytes)
		return CADGE_E_ARGUMENT;
	return remote->intent & what ? CADGE_DONE : CADGE_E_REFUSED;
}

/* The target is told by its next poll; the notice is a request like a message. */
static int notice(struct cadge_chan *chan, size_t bytes, const struct cadge_remote *remote,
		  uint64_t offset_bytes)
{
	struct cadge_lend *cell;
	const int code = null_send(chan, NULL_NOTICE, NULL, 0, false, &cell);

	if (code != CADGE_DONE)
		return code;
	cell->bytes = bytes;
	cell->region = remote->region;
	cell->offset_bytes = offset_bytes;
	return CADGE_DONE;
}

void null_deliver_notice(struct cadge_ctx *ctx, struct cadge_sink *sink, struct cadge_lend *cell)
{
	sink->notified(sink, cell->peer, cell->region, cell->offset_bytes, cell->bytes);
	null_cell_give(ctx, cell);
}

int null_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	int code = may(remote, CADGE_MAY_WRITE, offset_bytes, bytes);

	(void)token;
	if (code == CADGE_DONE && (flags & CADGE_NOTIFY))
		code = notice(chan, bytes, remote, offset_bytes);
	if (code == CADGE_DONE && bytes)
		memmove(remote->region->base + offset_bytes, local, bytes);
	return code;
}

int null_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	const int code = may(remote, CADGE_MAY_READ, offset_bytes, bytes);

	(void)chan, (void)flags, (void)token;
	if (code == CADGE_DONE && bytes)
		memmove(local, remote->region->base + offset_bytes, bytes);
	return code;
}

/* The word of an atomic operation, or the code that refuses it. */
static int word_at(const struct cadge_remote *remote, uint64_t offset_bytes, unsigned char **at_out)
{
	*at_out = remote->region->base + offset_bytes;
	if (offset_bytes % sizeof(uint64_t))
		return CADGE_E_ARGUMENT;
	return may(remote, CADGE_MAY_ATOMIC, offset_bytes, sizeof(uint64_t));
}

int null_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		   struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	unsigned char *at;
	uint64_t word;
	const int code = word_at(remote, offset_bytes, &at);

	(void)chan, (void)flags, (void)token;
	if (code != CADGE_DONE)
		return code;
	memcpy(&word, at, sizeof(word));
	*before_out = word;
	word += addend;
	memcpy(at, &word, sizeof(word));
	return CADGE_DONE;
}

int null_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
		      struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	unsigned char *at;
	const int code = word_at(remote, offset_bytes, &at);

	(void)chan, (void)flags, (void)token;
	if (code != CADGE_DONE)
		return code;
	memcpy(before_out, at, sizeof(*before_out));
	if (*before_out == expected)
		memcpy(at, &desired, sizeof(desired));
	return CADGE_DONE;
}

int null_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	(void)chan, (void)flags, (void)token;
	return CADGE_DONE;
}
