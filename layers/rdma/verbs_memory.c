/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the device knows; see verbs.h. One arena a context, registered as a whole, with a part for each peer:
 *
 *	area      of the mailbox, written by the peer
 *	staging   of the mailbox, read by our own writes
 *	word      read by the peer's quiet
 *	credit    written by the peer: how many notifications it has taken
 *	notes     received into: notifications, in block mode, and the hello
 *	landing   results of our reads and atomic operations, and what is too long to travel inside of a work request
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kit/bytes.h"
#include "rdma/verbs.h"

unsigned int verbs_access_rights(const struct cadge_ctx *ctx)
{
	unsigned int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	if (ctx->device.attr.atomic_cap != IBV_ATOMIC_NONE)
		rights |= IBV_ACCESS_REMOTE_ATOMIC;
	return rights;
}

uint8_t *verbs_word(const struct cadge_chan *chan)
{
	return chan->part + chan->ctx->area_bytes + chan->ctx->staging_bytes;
}

uint8_t *verbs_credit(const struct cadge_chan *chan)
{
	return verbs_word(chan) + VERBS_LINE_BYTES;
}

uint8_t *verbs_note(const struct cadge_chan *chan, uint32_t slot)
{
	return verbs_credit(chan) + VERBS_LINE_BYTES + (size_t)slot * VERBS_LINE_BYTES;
}

uint8_t *verbs_landing(const struct cadge_chan *chan, uint64_t number)
{
	const struct cadge_ctx *ctx = chan->ctx;

	return verbs_note(chan, verbs_receives(ctx)) + number % ctx->send_room * VERBS_LANDING_BYTES;
}

static void add_registered(struct cadge_ctx *ctx, struct verbs_registered *one)
{
	one->next = ctx->registered;
	ctx->registered = one;
}

static void remove_registered(struct cadge_ctx *ctx, const struct verbs_registered *one)
{
	struct verbs_registered **at = &ctx->registered;

	while (*at && *at != one)
		at = &(*at)->next;
	if (*at)
		*at = one->next;
}

static void deregister(struct ibv_mr *mr)
{
	if (mr && ibv_dereg_mr(mr))
		fprintf(stderr, "cadge: libibverbs could not deregister memory\n");
}

struct ibv_mr *verbs_registration_of(struct cadge_ctx *ctx, const void *base, size_t bytes)
{
	struct verbs_registered **at, *one;

	for (at = &ctx->registered; (one = *at); at = &one->next) {
		const uintptr_t offset = (uintptr_t)base - (uintptr_t)one->mr->addr;

		if (offset > one->mr->length || bytes > one->mr->length - offset)
			continue;
		*at = one->next;
		add_registered(ctx, one);
		return one->mr;
	}
	return NULL;
}

struct ibv_mr *verbs_register_once(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	ctx->registered_once++;
	return ibv_reg_mr(ctx->pd, base, bytes, IBV_ACCESS_LOCAL_WRITE);
}

static int no_memory(const struct cadge_open_args *args, size_t bytes, int error)
{
	return cadge_refuse(args, error == EPERM ? CADGE_E_PERMISSION : CADGE_E_MEMORY,
			    "%zu bytes for mailboxes of %u peers could not be registered: %s%s", bytes,
			    args->peers_max, strerror(error),
			    error == ENOMEM ? " (is the limit of locked memory, ulimit -l, that low?)" : "");
}

int verbs_arena_make(struct cadge_ctx *ctx, const struct cadge_open_args *args)
{
	const size_t lines = 2 + verbs_receives(ctx);
	size_t arena_bytes;
	uint64_t key;

	ctx->area_bytes = cadge_mailbox_area_bytes(&ctx->shape);
	ctx->staging_bytes = cadge_mailbox_staging_bytes(&ctx->shape, true);
	ctx->part_bytes = (ctx->area_bytes + ctx->staging_bytes + lines * VERBS_LINE_BYTES +
			   (size_t)ctx->send_room * VERBS_LANDING_BYTES + 4095) /
			  4096 * 4096;
	arena_bytes = ctx->part_bytes * ctx->peers;
	ctx->arena = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ctx->arena == MAP_FAILED) {
		ctx->arena = NULL;
		return no_memory(args, arena_bytes, errno);
	}
	ctx->arena_registered.mr = ibv_reg_mr(ctx->pd, ctx->arena, arena_bytes, verbs_access_rights(ctx));
	if (!ctx->arena_registered.mr)
		return no_memory(args, arena_bytes, errno);
	add_registered(ctx, &ctx->arena_registered);
	for (uint32_t peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chans[peer];
		struct cadge_mailbox_config config = {
			.shape = ctx->shape,
			.ops = ctx->notes ? &verbs_blocking_ops : &verbs_polling_ops,
			.put_anywhere = true,
			.peer = peer,
			.depth_max = ctx->depth,
			.message_bytes_max = ctx->message_bytes_max,
		};

		chan->part = ctx->arena + peer * ctx->part_bytes;
		config.area = chan->part;
		config.staging = chan->part + ctx->area_bytes;
		if (cadge_nonce(&key) != CADGE_DONE)
			return cadge_refuse(args, CADGE_E_LIBRARY, "the kernel has no random number");
		config.key = key;
		if (cadge_mailbox_create(&config, &chan->mailbox) != CADGE_DONE)
			return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", ctx->peers);
	}
	return CADGE_DONE;
}

void verbs_arena_free(struct cadge_ctx *ctx)
{
	while (ctx->registered) {
		struct verbs_registered *one = ctx->registered;

		ctx->registered = one->next;
		deregister(one->mr);
		if (one != &ctx->arena_registered)
			free(one); /* a region's first member, or one of mem_reg */
	}
	if (ctx->arena)
		munmap(ctx->arena, ctx->part_bytes * ctx->peers);
	ctx->arena = NULL;
}

/* ---- the caller's ---- */

static int register_for(struct cadge_ctx *ctx, struct verbs_registered *one, void *base, size_t bytes,
			unsigned int access)
{
	one->mr = ibv_reg_mr(ctx->pd, base, bytes, access);
	if (!one->mr) {
		snprintf(ctx->why, sizeof(ctx->why), "ibv_reg_mr: %s", strerror(errno));
		return errno == ENOMEM ? CADGE_E_MEMORY : CADGE_E_LIBRARY;
	}
	add_registered(ctx, one);
	return CADGE_DONE;
}

int verbs_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		 uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_blob_out out = {.at = key, .room_bytes = *key_bytes_inout, .ok = true};
	struct cadge_region *region;
	int code;

	(void)flags;
	if (rights != CADGE_MAY_ALL || peer != CADGE_ALL_PEERS)
		return CADGE_E_UNSUPPORTED; /* RIGHTS: what a device refuses breaks the connection */
	region = calloc(1, sizeof(*region));
	if (!region)
		return CADGE_E_MEMORY;
	code = register_for(ctx, &region->registered, base, bytes, verbs_access_rights(ctx));
	if (code != CADGE_DONE) {
		free(region);
		return code;
	}
	region->registered.exposed = true;
	cadge_blob_u64(&out, (uintptr_t)base);
	cadge_blob_u64(&out, bytes);
	cadge_blob_u32(&out, region->registered.mr->rkey);
	if (!out.ok) {
		verbs_unexpose(ctx, region);
		return CADGE_E_ARGUMENT;
	}
	*key_bytes_inout = out.used_bytes;
	*region_out = region;
	return CADGE_DONE;
}

void verbs_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	remove_registered(ctx, &region->registered);
	deregister(region->registered.mr);
	free(region);
}

int verbs_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent, uint32_t flags,
		 struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};
	struct cadge_remote *remote = malloc(sizeof(*remote));

	(void)chan, (void)intent, (void)flags;
	if (!remote)
		return CADGE_E_MEMORY;
	remote->far.addr = cadge_blob_take_u64(&in);
	remote->bytes = cadge_blob_take_u64(&in);
	remote->far.rkey = cadge_blob_take_u32(&in);
	if (!in.ok || in.left_bytes) {
		free(remote);
		return CADGE_E_ARGUMENT;
	}
	*remote_out = remote;
	return CADGE_DONE;
}

void verbs_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	free(remote);
}

int verbs_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	struct verbs_registered *one = calloc(1, sizeof(*one));
	int code;

	if (!one)
		return CADGE_E_MEMORY;
	code = register_for(ctx, one, base, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (code != CADGE_DONE)
		free(one);
	return code;
}

int verbs_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	struct verbs_registered *one = ctx->registered;

	/* A region of the same bytes may be among them: that one peers may write, and it stays. */
	while (one && (one == &ctx->arena_registered || one->mr->addr != base || one->mr->length != bytes ||
		       one->exposed))
		one = one->next;
	if (!one)
		return CADGE_E_ARGUMENT;
	remove_registered(ctx, one);
	deregister(one->mr);
	free(one);
	return CADGE_DONE;
}
