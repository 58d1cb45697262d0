/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract's one-sided operations on VMMC: they are its own, and the contract's handles are its handles. */
#include "vmmc/adapter.h"

static struct vmmc_import *import_of(struct cadge_remote *remote)
{
	return (struct vmmc_import *)(void *)remote;
}

void *cadge_slot_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	return vmmc_alloc(ctx->vmmc, bytes);
}

void cadge_slot_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	vmmc_free(ctx->vmmc, base, bytes);
}

int cadge_slot_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		      uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_blob_out out = cadge_blob_open(key, *key_bytes_inout);
	struct vmmc_export *export;
	int code;

	(void)flags;
	if (ctx->asked.off & CADGE_PART_PROTECTION && (rights != CADGE_MAY_ALL || peer != CADGE_ALL_PEERS))
		return CADGE_E_UNSUPPORTED; /* RIGHTS: nobody looks at them */
	code = vmmc_export(ctx->vmmc, base, bytes, rights, peer, 0, &out, &export);
	if (code == CADGE_DONE)
		*region_out = (struct cadge_region *)(void *)export;
	return cadge_blob_close(&out, code, key_bytes_inout);
}

void cadge_slot_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	(void)ctx;
	vmmc_unexport((struct vmmc_export *)(void *)region);
}

int cadge_slot_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		      uint32_t flags, struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};
	struct vmmc_import *import;
	int code;

	(void)flags;
	code = vmmc_import(chan->ctx->vmmc, chan->peer, &in, intent, &import);
	if (code == CADGE_DONE)
		*remote_out = (struct cadge_remote *)(void *)import;
	return code;
}

void cadge_slot_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	vmmc_unimport(import_of(remote));
}

static int count(struct cadge_chan *chan, int code)
{
	chan->outstanding += code == CADGE_QUEUED;
	return code;
}

int cadge_slot_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	if (chan->outstanding >= chan->ctx->asked.depth)
		return CADGE_BUSY;
	return count(chan,
		     vmmc_send(import_of(remote), offset_bytes, local, bytes,
			       flags & CADGE_NOTIFY ? VMMC_NOTIFY : 0, (struct vmmc_token){.number = token}));
}

int cadge_slot_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	(void)flags;
	if (chan->outstanding >= chan->ctx->asked.depth)
		return CADGE_BUSY;
	return count(chan, vmmc_quiet(chan->ctx->vmmc, chan->peer, (struct vmmc_token){.number = token}));
}
