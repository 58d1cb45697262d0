/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire's remote memory on verbs: each region is one of the device's, with its own rights. A put is an RDMA write, a get a
 * read, and quiet a read behind the writes.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "wire/verbs/state.h"
#include "wire/remotes.h"

struct ibv_mr *cadge_wire_register(struct cadge_wire *wire, void *base, size_t bytes)
{
	struct verbs_registered *one = calloc(1, sizeof(*one));

	if (one && verbs_register(&wire->verbs, one, base, bytes, IBV_ACCESS_LOCAL_WRITE) == CADGE_DONE)
		return one->mr;
	free(one);
	return NULL;
}

/* All that is listed begins with its registration, but what the queue pairs use. */
void cadge_wire_forget_memory(struct cadge_wire *wire)
{
	struct verbs_registered *one;

	while (wire->allocations)
		cadge_wire_free(wire, wire->allocations->base, wire->allocations->bytes);
	while ((one = wire->verbs.registered)) {
		verbs_deregister(&wire->verbs, one);
		if (one != &wire->verbs.own)
			free(one);
	}
}

void *cadge_wire_alloc(struct cadge_wire *wire, size_t bytes)
{
	struct wire_allocation *allocation = calloc(1, sizeof(*allocation));
	void *base = allocation
			     ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
			     : MAP_FAILED;

	if (base == MAP_FAILED) {
		free(allocation);
		return NULL;
	}
	if (verbs_register(&wire->verbs, &allocation->registered, base, bytes, IBV_ACCESS_LOCAL_WRITE) !=
	    CADGE_DONE) {
		munmap(base, bytes);
		free(allocation);
		return NULL;
	}
	allocation->registered.exposed = true;
	allocation->base = base;
	allocation->bytes = bytes;
	CADGE_POOL_GIVE(wire->allocations, allocation);
	return base;
}

void cadge_wire_free(struct cadge_wire *wire, void *base, size_t bytes)
{
	struct wire_allocation **at = &wire->allocations, *allocation;

	(void)bytes;
	while (*at && (*at)->base != base)
		at = &(*at)->next;
	allocation = *at;
	if (!allocation)
		return;
	*at = allocation->next;
	verbs_deregister(&wire->verbs, &allocation->registered);
	munmap(base, allocation->bytes);
	free(allocation);
}

int cadge_wire_expose(struct cadge_wire *wire, void *base, size_t bytes, uint32_t rights,
		      struct cadge_blob_out *key, struct cadge_region **region_out)
{
	struct cadge_region *region = calloc(1, sizeof(*region));
	int code = region ? verbs_register(&wire->verbs, &region->registered, base, bytes,
					   verbs_access(&wire->verbs, rights))
			  : CADGE_E_MEMORY;

	if (code != CADGE_DONE) {
		free(region);
		return code;
	}
	region->registered.exposed = true;
	cadge_blob_u32(key, rights);
	cadge_blob_u64(key, bytes);
	verbs_far_put(key, base, region->registered.mr->rkey);
	if (!key->ok) {
		cadge_wire_unexpose(wire, region);
		return CADGE_E_TOO_LARGE;
	}
	*region_out = region;
	return CADGE_DONE;
}

void cadge_wire_unexpose(struct cadge_wire *wire, struct cadge_region *region)
{
	verbs_deregister(&wire->verbs, &region->registered);
	free(region);
}

int cadge_wire_attach(struct cadge_link *link, struct cadge_blob_in *key, struct cadge_remote **remote_out)
{
	const uint32_t rights = cadge_blob_take_u32(key);
	const uint64_t bytes = cadge_blob_take_u64(key);
	const struct verbs_far far = verbs_far_take(key);
	const struct cadge_remote new = {.link = link, .far = far, .bytes = bytes, .rights = rights};

	return attach(key, link->connected, &new, remote_out);
}

enum cadge_progress cadge_wire_reach(const struct cadge_remote *remote, uint32_t right)
{
	const bool has =
		remote->rights & right && (right != CADGE_MAY_ATOMIC || remote->link->wire->facts.adds);

	return has ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_NONE;
}

static inline uint64_t word_of(const struct cadge_remote *remote)
{
	return remote->far.addr;
}

static inline int put_unchecked(struct cadge_link *link, const void *local, size_t bytes,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	struct verbs_op op = {.kind = VERBS_WORK, .token = token};

	return verbs_transfer(&link->queue, IBV_WR_RDMA_WRITE, (void *)(uintptr_t)local, bytes,
			      verbs_far_at(remote->far, offset_bytes), &op);
}

static inline int get_unchecked(struct cadge_link *link, void *local, size_t bytes,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	struct verbs_op op = {.kind = VERBS_WORK, .token = token};
	return verbs_transfer(&link->queue, IBV_WR_RDMA_READ, local, bytes,
			      verbs_far_at(remote->far, offset_bytes), &op);
}

/* Both atomic operations; the word that stood there comes to the operation's landing place. */
static inline int atomic(struct cadge_link *link, struct ibv_send_wr *wr, uint64_t *before_out,
			 const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	const struct verbs_op op = {.kind = VERBS_WORK, .token = token, .before_out = before_out};

	return verbs_atomic(&link->queue, wr, verbs_far_at(remote->far, offset_bytes), &op);
}

static inline int add_unchecked(struct cadge_link *link, uint64_t addend, uint64_t *before_out,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr.atomic.compare_add = addend};

	return atomic(link, &wr, before_out, remote, offset_bytes, token);
}

static inline int swap_unchecked(struct cadge_link *link, uint64_t expected, uint64_t desired,
				 uint64_t *before_out, const struct cadge_remote *remote,
				 uint64_t offset_bytes, uint64_t token)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				 .wr.atomic = {.compare_add = expected, .swap = desired}};

	return atomic(link, &wr, before_out, remote, offset_bytes, token);
}

#include "wire/checked.h"

int cadge_wire_quiet(struct cadge_link *link, uint64_t token)
{
	struct verbs_op op = {.token = token};
	const int code = cadge_usable(&link->state);

	return code == CADGE_DONE ? verbs_flush(&link->queue, &op) : code;
}
