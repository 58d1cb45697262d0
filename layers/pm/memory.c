/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract's one-sided operations on PM, and the memory that the adapter has. */
#include <stdlib.h>

#include "pm/adapter.h"

#define REGIONS     8u /* of region_bytes_max: what the caller may expose at a time */
#define SPARE_BYTES (UINT64_C(64) << 20)

/* ---- one-sided operations of the caller ---- */

void pm_memory_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	struct cadge_ctx *ctx = arg;
	struct pm_operation *operation;

	if (token == PM_LONG_TOKEN) {
		ctx->chans[peer].out.waiting--;
		if (code < 0)
			ctx->chans[peer].out.code = code;
		return;
	}
	operation = &ctx->operations[token];
	operation->chan = NULL;
	CADGE_POOL_GIVE(ctx->idle, operation);
	ctx->events++;
	ctx->sink->sent(ctx->sink, peer, operation->token, code);
}

/* What the wire answered to an operation. */
static int started(struct cadge_ctx *ctx, struct pm_operation *operation, int code)
{
	if (code != CADGE_QUEUED) {
		operation->chan = NULL;
		CADGE_POOL_GIVE(ctx->idle, operation);
	}
	return code;
}

static struct pm_operation *start(struct cadge_chan *chan, uint64_t token)
{
	struct pm_operation *operation = CADGE_POOL_TAKE(chan->ctx->idle);

	if (operation) {
		operation->chan = chan;
		operation->token = token;
	}
	return operation;
}

int pm_slot_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	int code = cadge_usable(&chan->state);
	struct pm_operation *operation;

	if (code != CADGE_DONE)
		return code;
	if (flags & CADGE_NOTIFY)
		return CADGE_E_UNSUPPORTED;
	if (bytes > cadge_wire_facts(pm_wire(ctx->pm))->put_bytes_max)
		return CADGE_E_TOO_LARGE;
	operation = start(chan, token);
	if (!operation)
		return CADGE_BUSY;
	return started(ctx, operation,
		       pm_write(ctx->pm, chan->peer, (struct pm_remote *)(void *)remote, offset_bytes, local,
				bytes, (uint64_t)(operation - ctx->operations)));
}

int pm_slot_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	int code = cadge_usable(&chan->state);
	struct pm_operation *operation;

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	operation = start(chan, token);
	if (!operation)
		return CADGE_BUSY;
	return started(ctx, operation,
		       pm_quiet(ctx->pm, chan->peer, (uint64_t)(operation - ctx->operations)));
}

int pm_slot_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		   uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_blob_out out = cadge_blob_open(key, *key_bytes_inout);
	struct pm_pin *pin;
	int code;

	(void)flags;
	if (rights != CADGE_MAY_ALL || peer != CADGE_ALL_PEERS)
		return CADGE_E_UNSUPPORTED;
	code = pm_mlock(ctx->pm, PM_RECEIVE, base, bytes, &pin);
	if (code == CADGE_DONE) {
		code = cadge_blob_close(&out, pm_handle(pin, &out), key_bytes_inout);
		if (code != CADGE_DONE)
			pm_munlock(ctx->pm, pin);
	}
	if (code != CADGE_DONE)
		return code; /* BUSY: peers that could write to it are still being asked, or the quota is full */
	*region_out = (struct cadge_region *)(void *)pin;
	return CADGE_DONE;
}

void pm_slot_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	pm_withdraw(ctx->pm, (struct pm_pin *)(void *)region);
}

int pm_slot_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		   uint32_t flags, struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};

	struct pm_remote *remote;
	int code;

	(void)intent, (void)flags;
	code = pm_attach(chan->ctx->pm, chan->peer, &in, &remote);
	if (code == CADGE_DONE)
		*remote_out = (struct cadge_remote *)(void *)remote;
	return code;
}

void pm_slot_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	pm_detach((struct pm_remote *)(void *)remote);
}

void *pm_slot_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	return pm_alloc(ctx->pm, bytes);
}

void pm_slot_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	pm_free(ctx->pm, base, bytes);
}

int pm_slot_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	struct pm_pin *pin;
	int code = pm_mlock(ctx->pm, PM_SEND, base, bytes, &pin);

	return code == CADGE_BUSY ? CADGE_E_MEMORY : code;
}

int pm_slot_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	struct pm_pin *pin = pm_locked(ctx->pm, PM_SEND, base, bytes);

	if (!pin)
		return CADGE_E_ARGUMENT;
	pm_munlock(ctx->pm, pin);
	return CADGE_DONE;
}

/* ---- life ---- */

void pm_memory_needs(struct cadge_ctx *ctx, const struct cadge_open_args *args, struct pm_config *config)
{
	const uint64_t messages_bytes = 2 * (ctx->asked.message_bytes_max + PM_PAGE_BYTES) * args->peers_max;

	config->operations = args->depth_max + 8; /* and what a long message has under way */
	/* Of each: callers announce buffers as long as their regions, too. */
	config->quota_bytes[PM_SEND] = config->quota_bytes[PM_RECEIVE] =
		messages_bytes + args->region_bytes_max * REGIONS + SPARE_BYTES;
	ctx->operations_count = args->depth_max * args->peers_max;
}

int pm_sample_address(const struct cadge_ctx *ctx, struct cadge_blob_out *blob)
{
	uint8_t raw[1024];
	struct cadge_blob_out handle = cadge_blob_open(raw, sizeof(raw));
	int code = pm_handle(ctx->sample_pin, &handle);

	cadge_blob_bytes(blob, raw, handle.used_bytes);
	return blob->ok ? code : CADGE_E_TOO_LARGE;
}

int pm_sample_take(struct cadge_chan *chan, struct cadge_blob_in *handle)
{
	struct pm_remote *sample;
	int code = pm_attach(chan->ctx->pm, chan->peer, handle, &sample);

	if (code != CADGE_DONE)
		return code;
	if (chan->ctx->reach != CADGE_PROGRESS_LIBRARY)
		chan->ctx->reach = pm_reach(sample);
	pm_detach(sample);
	return CADGE_DONE;
}

bool pm_memory_open(struct cadge_ctx *ctx)
{
	ctx->sample = pm_alloc(ctx->pm, PM_PAGE_BYTES);
	if (!ctx->sample ||
	    pm_mlock(ctx->pm, PM_RECEIVE, ctx->sample, PM_PAGE_BYTES, &ctx->sample_pin) != CADGE_DONE)
		return false;
	ctx->operations = calloc(ctx->operations_count, sizeof(*ctx->operations));
	for (uint32_t i = ctx->operations_count; ctx->operations && i-- > 0;)
		CADGE_POOL_GIVE(ctx->idle, &ctx->operations[i]);
	return ctx->operations;
}

void pm_memory_forget(struct cadge_chan *chan)
{
	struct cadge_ctx *ctx = chan->ctx;

	for (uint32_t i = 0; i < ctx->operations_count; i++)
		if (ctx->operations[i].chan == chan) {
			ctx->operations[i].chan = NULL;
			CADGE_POOL_GIVE(ctx->idle, &ctx->operations[i]);
		}
}
