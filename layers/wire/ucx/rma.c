/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ucx/rma.h"

#include <stdlib.h>
#include <string.h>

#include "wire/ucx/ucx.h"

#define PAGE_BYTES ((size_t)4096)

/* Memory of the library's allocator. */
struct cadge_ucx_alloc {
	struct cadge_ucx_alloc *next;
	ucp_mem_h memh;
	uint8_t *base;
	size_t bytes;
};

struct cadge_region {
	struct cadge_region *next;
	ucp_mem_h memh;
	bool mapped; /* by expose: the memory is not from cadge_ucx_mem_alloc */
};

/* An operation under way in the library. */
struct cadge_ucx_record {
	struct cadge_ucx_record *next; /* idle list */
	struct cadge_ucx_rma *rma;
	void *tag;
	uint64_t token;
	uint64_t operand;
	uint32_t life;
	bool quiet; /* no event unless it failed */
	uint8_t note[CADGE_UCX_NOTE_BYTES];
};

/* ---- memory ---- */

void *cadge_ucx_mem_alloc(struct cadge_ucx_memory *memory, size_t bytes)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
		.length = (bytes / PAGE_BYTES + 1) * PAGE_BYTES,
		.flags = UCP_MEM_MAP_ALLOCATE,
	};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	struct cadge_ucx_alloc *alloc = calloc(1, sizeof(*alloc));

	if (!alloc)
		return NULL;
	if (ucp_mem_map(memory->context, &params, &alloc->memh) != UCS_OK)
		goto free_alloc;
	if (ucp_mem_query(alloc->memh, &attr) != UCS_OK || (uintptr_t)attr.address % PAGE_BYTES)
		goto unmap;
	alloc->base = attr.address;
	alloc->bytes = params.length;
	memset(alloc->base, 0, alloc->bytes);
	alloc->next = memory->allocs;
	memory->allocs = alloc;
	return alloc->base;
unmap:
	ucp_mem_unmap(memory->context, alloc->memh);
free_alloc:
	free(alloc);
	return NULL;
}

void cadge_ucx_mem_free(struct cadge_ucx_memory *memory, void *base)
{
	for (struct cadge_ucx_alloc **at = &memory->allocs; *at; at = &(*at)->next) {
		struct cadge_ucx_alloc *alloc = *at;

		if (alloc->base != base)
			continue;
		*at = alloc->next;
		ucp_mem_unmap(memory->context, alloc->memh);
		free(alloc);
		return;
	}
}

/* The handle of the allocation that holds these bytes, or NULL. */
static ucp_mem_h allocation_of(const struct cadge_ucx_memory *memory, const void *base, size_t bytes)
{
	for (const struct cadge_ucx_alloc *alloc = memory->allocs; alloc; alloc = alloc->next) {
		const uintptr_t offset_bytes = (uintptr_t)base - (uintptr_t)alloc->base;

		if (bytes <= alloc->bytes && offset_bytes <= alloc->bytes - bytes)
			return alloc->memh;
	}
	return NULL;
}

/* A key: address, length, and what the library packs. */
static int pack_key(struct cadge_ucx_memory *memory, ucp_mem_h memh, const void *base, size_t bytes,
		    struct cadge_blob_out *out)
{
	void *packed;
	size_t packed_bytes;

	if (ucp_rkey_pack(memory->context, memh, &packed, &packed_bytes) != UCS_OK)
		return CADGE_E_LIBRARY;
	cadge_blob_u64(out, (uintptr_t)base);
	cadge_blob_u64(out, bytes);
	cadge_blob_bytes(out, packed, packed_bytes);
	ucp_rkey_buffer_release(packed);
	return out->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

int cadge_ucx_expose(struct cadge_ucx_memory *memory, void *base, size_t bytes, struct cadge_blob_out *key,
		     struct cadge_region **region_out)
{
	const ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = base,
		.length = bytes,
	};
	struct cadge_region *region = calloc(1, sizeof(*region));
	int code;

	if (!region)
		return CADGE_E_MEMORY;
	region->memh = allocation_of(memory, base, bytes);
	if (!region->memh) {
		if (ucp_mem_map(memory->context, &params, &region->memh) != UCS_OK) {
			free(region);
			return CADGE_E_MEMORY;
		}
		region->mapped = true;
	}
	region->next = memory->regions;
	memory->regions = region;
	code = pack_key(memory, region->memh, base, bytes, key);
	if (code == CADGE_DONE)
		*region_out = region;
	else
		cadge_ucx_unexpose(memory, region);
	return code;
}

void cadge_ucx_unexpose(struct cadge_ucx_memory *memory, struct cadge_region *region)
{
	if (!CADGE_LIST_REMOVE(memory->regions, region))
		return;
	if (region->mapped)
		ucp_mem_unmap(memory->context, region->memh);
	free(region);
}

static void remotes_free(struct cadge_remote **list)
{
	while (*list) {
		struct cadge_remote *remote = *list;

		*list = remote->next;
		ucp_rkey_destroy(remote->rkey);
		free(remote);
	}
}

void cadge_ucx_memory_destroy(struct cadge_ucx_memory *memory)
{
	remotes_free(&memory->remotes);
	remotes_free(&memory->deferred);
	while (memory->regions)
		cadge_ucx_unexpose(memory, memory->regions);
	while (memory->allocs)
		cadge_ucx_mem_free(memory, memory->allocs->base);
}

/* ---- memory of peers ---- */

int cadge_ucx_attach(struct cadge_ucx_rma *rma, struct cadge_blob_in *key, struct cadge_remote **remote_out)
{
	struct cadge_remote *remote = calloc(1, sizeof(*remote));
	size_t packed_bytes;
	const void *packed;
	void *mapped;

	if (!remote)
		return CADGE_E_MEMORY;
	remote->rma = rma;
	remote->base = cadge_blob_take_u64(key);
	remote->bytes = cadge_blob_take_u64(key);
	packed = cadge_blob_take_bytes(key, &packed_bytes);
	if (!packed_bytes || ucp_ep_rkey_unpack(rma->ep, packed, &remote->rkey) != UCS_OK) {
		free(remote);
		return CADGE_E_ARGUMENT;
	}
	remote->mapped = ucp_rkey_ptr(remote->rkey, remote->base, &mapped) == UCS_OK;
	remote->next = rma->memory->remotes;
	rma->memory->remotes = remote;
	*remote_out = remote;
	return CADGE_DONE;
}

void cadge_ucx_detach(struct cadge_remote *remote)
{
	struct cadge_ucx_memory *memory = remote->rma->memory;

	if (!CADGE_LIST_REMOVE(memory->remotes, remote))
		return;
	if (remote->rma->under_way) { /* the library may still read the key: it goes with the context */
		CADGE_POOL_GIVE(memory->deferred, remote);
		return;
	}
	ucp_rkey_destroy(remote->rkey);
	free(remote);
}

void cadge_ucx_detach_all(struct cadge_ucx_rma *rma)
{
	struct cadge_remote *next;

	for (struct cadge_remote *remote = rma->memory->remotes; remote; remote = next) {
		next = remote->next;
		if (remote->rma == rma)
			cadge_ucx_detach(remote);
	}
}

/* ---- operations ---- */

int cadge_ucx_rma_init(struct cadge_ucx_rma *rma, struct cadge_ucx_memory *memory, uint32_t records,
		       cadge_ucx_rma_done_fn done, void *user)
{
	*rma = (struct cadge_ucx_rma){.memory = memory, .done = done, .user = user};
	rma->records = calloc(records, sizeof(*rma->records));
	if (!rma->records)
		return CADGE_E_MEMORY;
	for (uint32_t i = 0; i < records; i++) {
		rma->records[i].rma = rma;
		CADGE_POOL_GIVE(rma->idle, &rma->records[i]);
	}
	return CADGE_DONE;
}

void cadge_ucx_rma_fini(struct cadge_ucx_rma *rma)
{
	free(rma->records);
}

static void on_done(void *request, ucs_status_t status, void *arg)
{
	struct cadge_ucx_record *record = arg;
	struct cadge_ucx_rma *rma = record->rma;
	void *tag = record->tag;
	const uint64_t token = record->token;
	const bool wanted = record->life == rma->life && (!record->quiet || status != UCS_OK);

	ucp_request_free(request);
	CADGE_POOL_GIVE(rma->idle, record);
	rma->under_way--;
	if (wanted)
		rma->done(rma->user, tag, token, cadge_ucx_code(status));
}

/* The first idle record for an operation that is about to start; `started` takes it if it is needed. */
static struct cadge_ucx_record *prepare(struct cadge_ucx_rma *rma, ucp_request_param_t *param)
{
	param->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	param->cb.send = on_done;
	param->user_data = rma->idle;
	return rma->idle;
}

static int started(struct cadge_ucx_rma *rma, void *request, void *tag, uint64_t token, bool quiet)
{
	struct cadge_ucx_record *record = rma->idle;
	int code;

	if (!request)
		return CADGE_DONE;
	if (UCS_PTR_IS_ERR(request)) {
		code = cadge_ucx_code(UCS_PTR_STATUS(request));
		return code == CADGE_DONE ? CADGE_E_LIBRARY : code;
	}
	rma->idle = record->next;
	rma->under_way++;
	record->tag = tag;
	record->token = token;
	record->life = rma->life;
	record->quiet = quiet;
	return CADGE_QUEUED;
}

int cadge_ucx_put(struct cadge_ucx_rma *rma, const void *local, size_t bytes,
		  const struct cadge_remote *remote, uint64_t offset_bytes, void *tag, uint64_t token)
{
	ucp_request_param_t param;

	if (!prepare(rma, &param))
		return CADGE_BUSY;
	return started(rma,
		       ucp_put_nbx(rma->ep, local, bytes, remote->base + offset_bytes, remote->rkey, &param),
		       tag, token, false);
}

int cadge_ucx_get(struct cadge_ucx_rma *rma, void *local, size_t bytes, const struct cadge_remote *remote,
		  uint64_t offset_bytes, void *tag, uint64_t token)
{
	ucp_request_param_t param;

	if (!prepare(rma, &param))
		return CADGE_BUSY;
	return started(rma,
		       ucp_get_nbx(rma->ep, local, bytes, remote->base + offset_bytes, remote->rkey, &param),
		       tag, token, false);
}

static int atomic(struct cadge_ucx_rma *rma, ucp_atomic_op_t kind, uint64_t operand, uint64_t *before_out,
		  const struct cadge_remote *remote, uint64_t offset_bytes, void *tag, uint64_t token)
{
	ucp_request_param_t param;
	struct cadge_ucx_record *record = prepare(rma, &param);

	if (!record)
		return CADGE_BUSY;
	param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
	param.datatype = ucp_dt_make_contig(sizeof(operand));
	param.reply_buffer = before_out;
	record->operand = operand;
	return started(rma,
		       ucp_atomic_op_nbx(rma->ep, kind, &record->operand, 1, remote->base + offset_bytes,
					 remote->rkey, &param),
		       tag, token, false);
}

int cadge_ucx_fetch_add(struct cadge_ucx_rma *rma, uint64_t addend, uint64_t *before_out,
			const struct cadge_remote *remote, uint64_t offset_bytes, void *tag, uint64_t token)
{
	return atomic(rma, UCP_ATOMIC_OP_ADD, addend, before_out, remote, offset_bytes, tag, token);
}

/* UCX takes the new value from where the old one will be. */
int cadge_ucx_compare_swap(struct cadge_ucx_rma *rma, uint64_t expected, uint64_t desired,
			   uint64_t *before_out, const struct cadge_remote *remote, uint64_t offset_bytes,
			   void *tag, uint64_t token)
{
	*before_out = desired;
	return atomic(rma, UCP_ATOMIC_OP_CSWAP, expected, before_out, remote, offset_bytes, tag, token);
}

int cadge_ucx_flush(struct cadge_ucx_rma *rma, void *tag, uint64_t token)
{
	ucp_request_param_t param;

	if (!prepare(rma, &param))
		return CADGE_BUSY;
	return started(rma, ucp_ep_flush_nbx(rma->ep, &param), tag, token, false);
}

int cadge_ucx_note(struct cadge_ucx_rma *rma, unsigned int id, const void *note, void *tag)
{
	ucp_request_param_t param;
	struct cadge_ucx_record *record = prepare(rma, &param);
	int code;

	if (!record)
		return CADGE_BUSY;
	memcpy(record->note, note, sizeof(record->note));
	code = started(rma, ucp_am_send_nbx(rma->ep, id, NULL, 0, record->note, sizeof(record->note), &param),
		       tag, 0, true);
	return code == CADGE_QUEUED ? CADGE_DONE : code;
}
