/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma-ucx: put, get, fetch-add and flush of UCP, and messages through the mailbox of common/ over put.
 *
 * Memory comes from ucp_mem_map with UCP_MEM_MAP_ALLOCATE, since UCX reaches only such memory directly over
 * shared memory; a put to any other becomes an active message that waits for the target's library. Whether a
 * peer's memory is mapped here is asked from ucp_rkey_ptr, and that is what `semantics` states.
 *
 * A direct put does not wake a sleeper, so in block mode the mailbox sends a notification, an active message,
 * after each write.
 */
#include <stdlib.h>
#include <sys/random.h>

#include "cadge/layer.h"
#include "common/mailbox.h"
#include "common/ucx.h"
#include "common/wire.h"

#define PEERS_MAX       (CADGE_UCX_IDS / 4)
#define DEPTH_MAX       4096u
#define BYTES_MAX       (UINT64_C(1) << 30)
#define MAILBOX_RECORDS 224u /* more than the mailbox ever has under way */
#define PAGE_BYTES      4096u

/* An operation under way in the library. */
struct record {
	struct record *next; /* idle list of the channel */
	struct cadge_chan *chan;
	struct cadge_mailbox_op *op; /* of the mailbox; NULL: the caller's own operation `token` */
	uint64_t token;
	uint64_t addend;
	uint32_t life;
	uint8_t note[CADGE_MAILBOX_NOTE_BYTES];
};

/* Memory of the library's allocator. */
struct alloc {
	struct alloc *next;
	ucp_mem_h memh;
	void *base;
	size_t bytes;
};

struct cadge_region {
	struct cadge_region *next;
	ucp_mem_h memh;
	bool mapped; /* by expose: the memory is not from mem_alloc */
};

struct cadge_remote {
	struct cadge_remote *next;
	struct cadge_chan *chan;
	ucp_rkey_h rkey;
	uint64_t base;
	uint64_t bytes;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	ucp_ep_h ep; /* NULL: not connected */
	struct cadge_mailbox *mailbox;
	struct cadge_remote *area; /* of the peer's mailbox */
	struct record *idle, *records;
	uint32_t peer, life;
	uint32_t outstanding; /* of the caller's operations in this life */
	uint32_t under_way;   /* of all operations of all lives */
	unsigned int id_in, id_out;
	bool broken;
};

struct cadge_ctx {
	struct cadge_ucx ucx;
	struct cadge_sink *sink;
	int events;
	unsigned int skipped; /* polls without progress of the library */
	uint32_t peers, depth;
	uint64_t message_bytes_max;
	struct cadge_mailbox_shape shape;
	struct alloc *allocs, *arena; /* arena: the mailbox areas of all peers */
	struct cadge_region *regions;
	struct cadge_remote *remotes, *buried; /* buried: operations that go on may still use them */
	uint8_t *staging;
	bool direct, asked; /* the memory of all peers so far is mapped here; a peer was asked */
	struct cadge_chan chans[];
};

static const struct cadge_option rdma_options[] = {
	CADGE_UCX_OPTION_TRANSPORTS,
	{NULL, NULL, NULL},
};

/* ---- operations of the library ---- */

static void record_retire(struct record *record)
{
	record->next = record->chan->idle;
	record->chan->idle = record;
	record->chan->under_way--;
}

static void on_done(void *request, ucs_status_t status, void *arg)
{
	struct record *record = arg;
	struct cadge_chan *chan = record->chan;
	struct cadge_mailbox_op *op = record->op;
	const uint64_t token = record->token;
	const bool live = record->life == chan->life;
	const int code = status == UCS_OK ? CADGE_DONE : cadge_ucx_code(status);

	ucp_request_free(request);
	record_retire(record);
	if (!live)
		return;
	if (op) {
		cadge_mailbox_done(op, code);
		return;
	}
	chan->outstanding--;
	chan->ctx->events++;
	chan->ctx->sink->sent(chan->ctx->sink, chan->peer, token, code);
}

static void param_for(struct record *record, ucp_request_param_t *param)
{
	param->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	param->cb.send = on_done;
	param->user_data = record;
}

/* What the library answered to an operation that was started with the first idle record, which it takes if
 * QUEUED. */
static int started(struct cadge_chan *chan, void *request, struct cadge_mailbox_op *op, uint64_t token)
{
	struct record *record = chan->idle;
	int code;

	if (!request)
		return CADGE_DONE;
	if (UCS_PTR_IS_ERR(request)) {
		code = cadge_ucx_code(UCS_PTR_STATUS(request));
		return code == CADGE_DONE ? CADGE_E_LIBRARY : code;
	}
	chan->idle = record->next;
	record->op = op;
	record->token = token;
	record->life = chan->life;
	chan->under_way++;
	return CADGE_QUEUED;
}

static int put_bytes(struct cadge_chan *chan, const void *local, size_t bytes,
		     const struct cadge_remote *remote, uint64_t offset_bytes, struct cadge_mailbox_op *op,
		     uint64_t token)
{
	ucp_request_param_t param;

	if (!chan->idle)
		return CADGE_BUSY;
	param_for(chan->idle, &param);
	return started(chan,
		       ucp_put_nbx(chan->ep, local, bytes, remote->base + offset_bytes, remote->rkey, &param),
		       op, token);
}

static int flush(struct cadge_chan *chan, struct cadge_mailbox_op *op, uint64_t token)
{
	ucp_request_param_t param;

	if (!chan->idle)
		return CADGE_BUSY;
	param_for(chan->idle, &param);
	return started(chan, ucp_ep_flush_nbx(chan->ep, &param), op, token);
}

/* ---- the mailbox on top ---- */

static int mailbox_put(void *link, const void *local, size_t bytes, uint64_t offset_bytes,
		       struct cadge_mailbox_op *op)
{
	struct cadge_chan *chan = link;

	return put_bytes(chan, local, bytes, chan->area, offset_bytes, op, 0);
}

static int mailbox_quiet(void *link, struct cadge_mailbox_op *op)
{
	return flush(link, op, 0);
}

static void on_noted(void *request, ucs_status_t status, void *arg)
{
	struct record *record = arg;

	ucp_request_free(request);
	if (status != UCS_OK && record->life == record->chan->life)
		cadge_mailbox_fail(record->chan->mailbox);
	record_retire(record);
}

static int mailbox_notify(void *link, const void *note)
{
	struct cadge_chan *chan = link;
	struct record *record = chan->idle;
	ucp_request_param_t param;
	int code;

	if (!record)
		return CADGE_BUSY;
	memcpy(record->note, note, sizeof(record->note));
	param_for(record, &param);
	param.cb.send = on_noted;
	code = started(
		chan,
		ucp_am_send_nbx(chan->ep, chan->id_out, NULL, 0, record->note, sizeof(record->note), &param),
		NULL, 0);
	return code == CADGE_QUEUED ? CADGE_DONE : code;
}

static ucs_status_t on_note(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
			    const ucp_am_recv_param_t *param)
{
	struct cadge_chan *chan = arg;

	(void)header, (void)header_bytes;
	if (bytes == CADGE_MAILBOX_NOTE_BYTES && !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))
		cadge_mailbox_notified(chan->mailbox, data);
	return UCS_OK;
}

static const struct cadge_mailbox_ops polling_ops = {mailbox_put, mailbox_quiet, NULL, NULL};
static const struct cadge_mailbox_ops sleeping_ops = {mailbox_put, mailbox_quiet, NULL, mailbox_notify};

static int rdma_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	(void)flags;
	return cadge_mailbox_post(chan->mailbox, iov, count, token);
}

static void look(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		ctx->events += cadge_mailbox_poll(ctx->chans[i].mailbox, ctx->sink);
}

/* Looks into the mailboxes first: what lies there needs no library. That runs when they are empty, or every
 * 16th time. */
static int rdma_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	ctx->sink = sink;
	ctx->events = 0;
	look(ctx);
	if (!ctx->events || ++ctx->skipped >= 16) {
		ctx->skipped = 0;
		if (ucp_worker_progress(ctx->ucx.worker))
			look(ctx);
	}
	return ctx->events;
}

static int rdma_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		if (!cadge_mailbox_may_sleep(ctx->chans[i].mailbox))
			return CADGE_DONE;
	return cadge_ucx_wait(&ctx->ucx, timeout_ns);
}

/* ---- memory ---- */

static int alloc_make(struct cadge_ctx *ctx, size_t bytes, struct alloc **alloc_out)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1),
		.flags = UCP_MEM_MAP_ALLOCATE,
	};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	struct alloc *alloc = calloc(1, sizeof(*alloc));

	if (!alloc)
		return CADGE_E_MEMORY;
	if (ucp_mem_map(ctx->ucx.context, &params, &alloc->memh) != UCS_OK) {
		free(alloc);
		return CADGE_E_MEMORY;
	}
	if (ucp_mem_query(alloc->memh, &attr) != UCS_OK || (uintptr_t)attr.address % PAGE_BYTES) {
		ucp_mem_unmap(ctx->ucx.context, alloc->memh);
		free(alloc);
		return CADGE_E_MEMORY;
	}
	alloc->base = attr.address;
	alloc->bytes = params.length;
	memset(alloc->base, 0, alloc->bytes);
	alloc->next = ctx->allocs;
	ctx->allocs = alloc;
	*alloc_out = alloc;
	return CADGE_DONE;
}

static void *rdma_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	struct alloc *alloc;

	return alloc_make(ctx, bytes ? bytes : 1, &alloc) == CADGE_DONE ? alloc->base : NULL;
}

static void rdma_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	(void)bytes;
	for (struct alloc **at = &ctx->allocs; *at; at = &(*at)->next) {
		struct alloc *alloc = *at;

		if (alloc->base != base || alloc == ctx->arena)
			continue;
		*at = alloc->next;
		ucp_mem_unmap(ctx->ucx.context, alloc->memh);
		free(alloc);
		return;
	}
}

/* A key: address, length, and what the library packs. */
static int pack_key(struct cadge_ctx *ctx, ucp_mem_h memh, const void *base, size_t bytes,
		    struct cadge_blob_out *out)
{
	void *packed;
	size_t packed_bytes;

	if (ucp_rkey_pack(ctx->ucx.context, memh, &packed, &packed_bytes) != UCS_OK)
		return CADGE_E_LIBRARY;
	cadge_blob_u64(out, (uintptr_t)base);
	cadge_blob_u64(out, bytes);
	cadge_blob_bytes(out, packed, packed_bytes);
	ucp_rkey_buffer_release(packed);
	return out->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

static void rdma_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	for (struct cadge_region **at = &ctx->regions; *at; at = &(*at)->next) {
		if (*at != region)
			continue;
		*at = region->next;
		if (region->mapped)
			ucp_mem_unmap(ctx->ucx.context, region->memh);
		free(region);
		return;
	}
}

static int rdma_expose(struct cadge_ctx *ctx, void *base, size_t bytes, void *key, size_t *key_bytes_inout,
		       struct cadge_region **region_out)
{
	struct cadge_blob_out out = {.at = key, .room_bytes = *key_bytes_inout, .ok = true};
	struct cadge_region *region = calloc(1, sizeof(*region));
	int code;

	if (!region)
		return CADGE_E_MEMORY;
	for (struct alloc *alloc = ctx->allocs; alloc && !region->memh; alloc = alloc->next)
		if ((uint8_t *)base >= (uint8_t *)alloc->base && bytes <= alloc->bytes &&
		    (size_t)((uint8_t *)base - (uint8_t *)alloc->base) <= alloc->bytes - bytes)
			region->memh = alloc->memh;
	if (!region->memh) {
		ucp_mem_map_params_t params = {
			.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
			.address = base,
			.length = bytes,
		};

		if (ucp_mem_map(ctx->ucx.context, &params, &region->memh) != UCS_OK) {
			free(region);
			return CADGE_E_MEMORY;
		}
		region->mapped = true;
	}
	region->next = ctx->regions;
	ctx->regions = region;
	code = pack_key(ctx, region->memh, base, bytes, &out);
	if (code != CADGE_DONE) {
		rdma_unexpose(ctx, region);
		return code;
	}
	*key_bytes_inout = out.used_bytes;
	*region_out = region;
	return CADGE_DONE;
}

static void remote_destroy(struct cadge_ctx *ctx, struct cadge_remote *remote)
{
	for (struct cadge_remote **at = &ctx->remotes; *at; at = &(*at)->next) {
		if (*at != remote)
			continue;
		*at = remote->next;
		if (remote->chan
			    ->under_way) { /* the library may still read the key: it goes with the context */
			remote->next = ctx->buried;
			ctx->buried = remote;
			return;
		}
		ucp_rkey_destroy(remote->rkey);
		free(remote);
		return;
	}
}

static int remote_create(struct cadge_chan *chan, struct cadge_blob_in *in, struct cadge_remote **remote_out)
{
	struct cadge_remote *remote = calloc(1, sizeof(*remote));
	size_t packed_bytes;
	const void *packed;

	if (!remote)
		return CADGE_E_MEMORY;
	remote->chan = chan;
	remote->base = cadge_blob_take_u64(in);
	remote->bytes = cadge_blob_take_u64(in);
	packed = cadge_blob_take_bytes(in, &packed_bytes);
	if (!packed_bytes || ucp_ep_rkey_unpack(chan->ep, packed, &remote->rkey) != UCS_OK) {
		free(remote);
		return CADGE_E_ARGUMENT;
	}
	remote->next = chan->ctx->remotes;
	chan->ctx->remotes = remote;
	*remote_out = remote;
	return CADGE_DONE;
}

static int rdma_attach(struct cadge_chan *chan, const void *key, size_t key_bytes,
		       struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};

	return chan->ep ? remote_create(chan, &in, remote_out) : CADGE_E_DOWN;
}

static void rdma_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	remote_destroy(chan->ctx, remote);
}

/* ---- one-sided operations of the caller ---- */

/* DONE where the channel takes an operation on these bytes. */
static int may_start(const struct cadge_chan *chan, const struct cadge_remote *remote, uint64_t offset_bytes,
		     uint64_t bytes)
{
	if (chan->broken || !chan->ep)
		return CADGE_E_DOWN;
	if (remote && bytes > BYTES_MAX)
		return CADGE_E_TOO_LARGE;
	if (remote &&
	    (remote->chan != chan || offset_bytes > remote->bytes || bytes > remote->bytes - offset_bytes))
		return CADGE_E_ARGUMENT;
	return chan->idle && chan->outstanding < chan->ctx->depth ? CADGE_DONE : CADGE_BUSY;
}

static int count(struct cadge_chan *chan, int code)
{
	chan->outstanding += code == CADGE_QUEUED;
	return code;
}

static int rdma_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		    uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	int code = may_start(chan, remote, offset_bytes, bytes);

	(void)flags;
	return code == CADGE_DONE
		       ? count(chan, put_bytes(chan, local, bytes, remote, offset_bytes, NULL, token))
		       : code;
}

static int rdma_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		    uint64_t offset_bytes, uint64_t token)
{
	int code = may_start(chan, remote, offset_bytes, bytes);
	ucp_request_param_t param;

	if (code != CADGE_DONE)
		return code;
	param_for(chan->idle, &param);
	return count(chan, started(chan,
				   ucp_get_nbx(chan->ep, local, bytes, remote->base + offset_bytes,
					       remote->rkey, &param),
				   NULL, token));
}

static int rdma_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
			  struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	int code = may_start(chan, remote, offset_bytes, sizeof(addend));
	ucp_request_param_t param;

	if (code != CADGE_DONE)
		return code;
	if ((remote->base + offset_bytes) % sizeof(addend))
		return CADGE_E_ARGUMENT;
	param_for(chan->idle, &param);
	param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
	param.datatype = ucp_dt_make_contig(sizeof(addend));
	param.reply_buffer = before_out;
	chan->idle->addend = addend;
	return count(chan, started(chan,
				   ucp_atomic_op_nbx(chan->ep, UCP_ATOMIC_OP_ADD, &chan->idle->addend, 1,
						     remote->base + offset_bytes, remote->rkey, &param),
				   NULL, token));
}

static int rdma_quiet(struct cadge_chan *chan, uint64_t token)
{
	int code = may_start(chan, NULL, 0, 0);

	return code == CADGE_DONE ? count(chan, flush(chan, NULL, token)) : code;
}

/* ---- connecting ---- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct cadge_chan *chan = arg;

	(void)status;
	if (chan->ep != ep)
		return;
	chan->broken = true;
	cadge_mailbox_fail(chan->mailbox);
}

static uint8_t *area_of(const struct cadge_ctx *ctx, uint32_t peer)
{
	return (uint8_t *)ctx->arena->base + peer * cadge_mailbox_area_bytes(&ctx->shape);
}

static int rdma_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	struct cadge_chan *chan;
	int code = CADGE_DONE;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	if (ctx->ucx.wake_fd >= 0 && chan->id_in == CADGE_UCX_IDS)
		code = cadge_ucx_take_id(&ctx->ucx, on_note, chan, 0, &chan->id_in);
	if (code != CADGE_DONE)
		return code;
	cadge_mailbox_card(chan->mailbox, card);
	cadge_blob_u32(&out, chan->id_in);
	cadge_blob_raw(&out, card, sizeof(card));
	code = pack_key(ctx, ctx->arena->memh, area_of(ctx, peer), cadge_mailbox_area_bytes(&ctx->shape),
			&out);
	if (code != CADGE_DONE)
		return code;
	cadge_blob_bytes(&out, ctx->ucx.address, ctx->ucx.address_bytes);
	if (!out.ok)
		return CADGE_E_TOO_LARGE;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int rdma_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true}, key;
	const uint32_t id = cadge_blob_take_u32(&in);
	const void *card = cadge_blob_take(&in, CADGE_MAILBOX_CARD_BYTES), *address;
	struct cadge_chan *chan;
	size_t part_bytes;
	void *mapped;
	int code;

	if (peer >= ctx->peers || ctx->chans[peer].ep || id > CADGE_UCX_IDS)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	key = in;
	cadge_blob_take_u64(&in);
	cadge_blob_take_u64(&in);
	cadge_blob_take_bytes(&in, &part_bytes);
	address = cadge_blob_take_bytes(&in, &part_bytes);
	if (!in.ok || in.left_bytes || !part_bytes)
		return CADGE_E_ARGUMENT;
	code = cadge_ucx_connect(&ctx->ucx, address, on_error, chan, &chan->ep);
	if (code != CADGE_DONE)
		return code;
	chan->id_out = id;
	chan->broken = false;
	chan->outstanding = 0;
	code = remote_create(chan, &key, &chan->area);
	if (code == CADGE_DONE)
		code = cadge_mailbox_attach(chan->mailbox, card, CADGE_MAILBOX_CARD_BYTES, chan);
	if (code != CADGE_DONE) {
		if (chan->area)
			remote_destroy(ctx, chan->area);
		chan->area = NULL;
		cadge_ucx_disconnect(&ctx->ucx, chan->ep);
		chan->ep = NULL;
		return code;
	}
	ctx->direct = ucp_rkey_ptr(chan->area->rkey, chan->area->base, &mapped) == UCS_OK &&
		      (!ctx->asked || ctx->direct);
	ctx->asked = true;
	*chan_out = chan;
	return CADGE_DONE;
}

static int rdma_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	struct cadge_remote *next;

	if (chan->ctx != ctx || !chan->ep)
		return CADGE_E_ARGUMENT;
	if (chan->id_in != CADGE_UCX_IDS && cadge_ucx_give_id(&ctx->ucx, chan->id_in) != CADGE_DONE)
		return CADGE_E_LIBRARY;
	chan->id_in = CADGE_UCX_IDS;
	chan->life++;
	cadge_mailbox_detach(chan->mailbox);
	for (struct cadge_remote *remote = ctx->remotes; remote; remote = next) {
		next = remote->next;
		if (remote->chan == chan)
			remote_destroy(ctx, remote);
	}
	chan->area = NULL;
	cadge_ucx_disconnect(&ctx->ucx, chan->ep);
	chan->ep = NULL;
	return CADGE_DONE;
}

static int rdma_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_ctx *ctx = chan->ctx;
	int code = chan->ep ? cadge_ucx_describe(&ctx->ucx, chan->ep, path_out) : CADGE_E_DOWN;

	if (code == CADGE_DONE)
		snprintf(path_out->note, sizeof(path_out->note), "%s%s",
			 ctx->direct ? "put, get and atomics: loads and stores to mapped memory of the target"
				     : "put, get and atomics: carried out by the target's library",
			 ctx->ucx.wake_fd >= 0 ? "; notification after each write (block)" : "");
	return code;
}

/* ---- life of a context ---- */

static void rdma_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t i = 0; i < ctx->peers; i++) {
		ctx->chans[i].life++;
		if (ctx->chans[i].ep && !ctx->chans[i].broken) /* broken ones go with the worker */
			cadge_ucx_disconnect(&ctx->ucx, ctx->chans[i].ep);
	}
	cadge_ucx_drain(&ctx->ucx);
	for (uint32_t i = 0; i < ctx->peers; i++)
		ctx->chans[i].under_way = 0;
	while (ctx->remotes)
		remote_destroy(ctx, ctx->remotes);
	while (ctx->buried) {
		struct cadge_remote *remote = ctx->buried;

		ctx->buried = remote->next;
		ucp_rkey_destroy(remote->rkey);
		free(remote);
	}
	while (ctx->regions)
		rdma_unexpose(ctx, ctx->regions);
	ctx->arena = NULL;
	while (ctx->allocs)
		rdma_mem_free(ctx, ctx->allocs->base, ctx->allocs->bytes);
	cadge_ucx_close(&ctx->ucx);
	for (uint32_t i = 0; i < ctx->peers; i++) {
		cadge_mailbox_destroy(ctx->chans[i].mailbox);
		free(ctx->chans[i].records);
	}
	free(ctx->staging);
	free(ctx);
}

static int make_chan(struct cadge_ctx *ctx, uint32_t peer)
{
	const size_t staging_bytes = cadge_mailbox_staging_bytes(&ctx->shape, true);
	const uint32_t records = ctx->depth + MAILBOX_RECORDS;
	struct cadge_chan *chan = &ctx->chans[peer];
	struct cadge_mailbox_config config = {
		.shape = ctx->shape,
		.ops = ctx->ucx.wake_fd >= 0 ? &sleeping_ops : &polling_ops,
		.area = area_of(ctx, peer),
		.staging = ctx->staging + peer * staging_bytes,
		.put_anywhere = true,
		.peer = peer,
		.depth_max = ctx->depth,
		.message_bytes_max = ctx->message_bytes_max,
	};

	*chan = (struct cadge_chan){.ctx = ctx, .peer = peer, .id_in = CADGE_UCX_IDS};
	chan->records = calloc(records, sizeof(*chan->records));
	if (!chan->records)
		return CADGE_E_MEMORY;
	for (uint32_t i = 0; i < records; i++) {
		chan->records[i].chan = chan;
		chan->records[i].next = chan->idle;
		chan->idle = &chan->records[i];
	}
	if (getrandom(&config.key, sizeof(config.key), 0) != sizeof(config.key))
		return CADGE_E_ABSENT;
	return cadge_mailbox_create(&config, &chan->mailbox);
}

static int make_mailboxes(struct cadge_ctx *ctx, uint32_t peers)
{
	const size_t staging_bytes = cadge_mailbox_staging_bytes(&ctx->shape, true);
	int code = alloc_make(ctx, peers * cadge_mailbox_area_bytes(&ctx->shape), &ctx->arena);

	if (code != CADGE_DONE)
		return code;
	ctx->staging = aligned_alloc(64, peers * staging_bytes);
	if (!ctx->staging)
		return CADGE_E_MEMORY;
	while (code == CADGE_DONE && ctx->peers < peers)
		code = make_chan(ctx, ctx->peers++);
	return code;
}

static int rdma_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	const uint64_t features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 |
				  (args->wait_mode == CADGE_WAIT_BLOCK ? UCP_FEATURE_AM : 0);
	struct cadge_ctx *ctx;
	int code = cadge_ucx_check_settings(args, rdma_options);

	if (code != CADGE_DONE)
		return code;
	if (!args->peers_max || args->peers_max > PEERS_MAX || !args->depth_max)
		return cadge_ucx_refuse(args, CADGE_E_ARGUMENT, "1 to %u peers and a depth of at least 1",
					PEERS_MAX);
	ctx = calloc(1, sizeof(*ctx) + args->peers_max * sizeof(ctx->chans[0]));
	if (!ctx)
		return cadge_ucx_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->depth = args->depth_max < DEPTH_MAX ? args->depth_max : DEPTH_MAX;
	ctx->message_bytes_max = args->message_bytes_max < BYTES_MAX ? args->message_bytes_max : BYTES_MAX;
	cadge_mailbox_shape(ctx->depth, ctx->message_bytes_max, &ctx->shape);
	code = cadge_ucx_open(args, features, &ctx->ucx);
	if (code == CADGE_DONE) {
		ctx->direct = args->place == CADGE_PLACE_HOST && !ctx->ucx.transports_given;
		code = make_mailboxes(ctx, args->peers_max);
		if (code != CADGE_DONE)
			cadge_ucx_refuse(args, code, "no memory for the mailboxes of %u peers",
					 args->peers_max);
	}
	if (code != CADGE_DONE) {
		rdma_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

#define CAPS                                                                                                 \
	(CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |  \
	 CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD |     \
	 CADGE_CAP_MEM_ALLOC | CADGE_CAP_COUNTERS | CADGE_CAP_OWN_THREADS)

static void rdma_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	*limits_out = (struct cadge_limits){
		.bytes = limits_out->bytes,
		.caps = CAPS & ~(ctx->ucx.wake_fd < 0 ? CADGE_CAP_WAIT : 0),
		.message_bytes_max = ctx->message_bytes_max,
		.rma_bytes_max = BYTES_MAX,
		.depth_max = ctx->depth,
		.iov_max = CADGE_MAILBOX_IOV_MAX,
		.wire_overhead_bytes = (uint32_t)cadge_mailbox_overhead_bytes(),
		.short_bytes_max = ctx->shape.short_bytes,
		.short_path = "mailbox, one write",
		.long_path = "mailbox, writes of pieces, quiet, a write that describes each",
	};
}

static void rdma_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const enum cadge_progress progress = ctx->direct ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;

	*semantics_out = (struct cadge_semantics){.bytes = semantics_out->bytes,
						  .message = CADGE_PROGRESS_CADGE,
						  .put = progress,
						  .get = progress,
						  .fetch_add = progress};
}

static void rdma_counters(const struct cadge_ctx *ctx,
			  void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		cadge_mailbox_counters(ctx->chans[i].mailbox, each, arg);
}

static const struct cadge_layer rdma_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "rdma-ucx",
	.style = "rdma",
	.substrate = "ucx",
	.caps = CAPS,
	.traits = {CADGE_PROTECT_SENDER_LIBRARY, CADGE_CONTROL_POLL, 2, 0, 1},
	.options = rdma_options,
	.open = rdma_open,
	.close = rdma_close,
	.limits = rdma_limits,
	.address = rdma_address,
	.connect = rdma_connect,
	.disconnect = rdma_disconnect,
	.post = rdma_post,
	.poll = rdma_poll,
	.describe_path = rdma_describe_path,
	.library = cadge_ucx_library,
	.semantics = rdma_semantics,
	.wait = rdma_wait,
	.expose = rdma_expose,
	.unexpose = rdma_unexpose,
	.attach = rdma_attach,
	.detach = rdma_detach,
	.put = rdma_put,
	.get = rdma_get,
	.fetch_add = rdma_fetch_add,
	.quiet = rdma_quiet,
	.mem_alloc = rdma_mem_alloc,
	.mem_free = rdma_mem_free,
	.counters = rdma_counters,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &rdma_layer;
}
