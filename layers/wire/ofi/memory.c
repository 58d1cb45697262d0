/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire's remote memory on libfabric (wire/ofi/rma.h). Its shm writes into any memory of a process that it may
 * write to (process_vm_writev); then a write is visible when the call returns, while atomic operations always wait for
 * the target's library. Operations are counted for all peers together, and over shm those that a dead peer's library
 * should have carried out stay until close.
 */
#include "wire/ofi/state.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct cadge_region {
	struct cadge_region *next;
	struct fid_mr *mr;
};

struct cadge_remote {
	struct cadge_remote *next; /* of its link */
	struct cadge_link *link;
	struct cadge_ofi_far far;
	uint64_t bytes;
	uint32_t rights;
};

#include "wire/remotes.h"

static int on_ended(void *arg, struct cadge_ofi_link *rma, uint64_t token, void *owner, int code)
{
	struct cadge_wire *wire = arg;
	const struct cadge_link *link =
		(struct cadge_link *)(void *)((uint8_t *)rma - offsetof(struct cadge_link, rma));

	(void)owner;
	wire->events++;
	CADGE_WIRE_ENDED(wire)(wire->arg, link->peer, token, code);
	return 1;
}

struct cadge_wire_alloc {
	struct cadge_wire_alloc *next;
	void *base;
	size_t bytes;
};

void *cadge_wire_alloc(struct cadge_wire *wire, size_t bytes)
{
	struct cadge_wire_alloc *alloc = malloc(sizeof(*alloc));

	if (!alloc)
		return NULL;
	alloc->bytes = bytes;
	alloc->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (alloc->base == MAP_FAILED) {
		free(alloc);
		return NULL;
	}
	alloc->next = wire->allocs;
	wire->allocs = alloc;
	return alloc->base;
}

void cadge_wire_free(struct cadge_wire *wire, void *base, size_t bytes)
{
	struct cadge_wire_alloc **at = &wire->allocs, *alloc;

	(void)bytes;
	while ((alloc = *at) && alloc->base != base)
		at = &alloc->next;
	if (!alloc)
		return;
	*at = alloc->next;
	munmap(alloc->base, alloc->bytes);
	free(alloc);
}

int cadge_wire_expose(struct cadge_wire *wire, void *base, size_t bytes, uint32_t rights,
		      struct cadge_blob_out *key, struct cadge_region **region_out)
{
	struct cadge_region *region = calloc(1, sizeof(*region));
	struct cadge_ofi_far far;
	int code = CADGE_E_MEMORY;

	if (region)
		code = cadge_ofi_expose(&wire->rma, base, bytes, rights, &region->mr, &far);
	if (code != CADGE_DONE) {
		free(region);
		return code;
	}
	region->next = wire->regions;
	wire->regions = region;
	cadge_blob_u32(key, rights);
	cadge_blob_u64(key, far.addr);
	cadge_blob_u64(key, far.key);
	cadge_blob_u64(key, bytes);
	if (!key->ok) {
		cadge_wire_unexpose(wire, region);
		return CADGE_E_TOO_LARGE;
	}
	*region_out = region;
	return CADGE_DONE;
}

void cadge_wire_unexpose(struct cadge_wire *wire, struct cadge_region *region)
{
	if (!CADGE_LIST_REMOVE(wire->regions, region))
		return;
	cadge_ofi_unexpose(region->mr);
	free(region);
}

int cadge_wire_attach(struct cadge_link *link, struct cadge_blob_in *key, struct cadge_remote **remote_out)
{
	struct cadge_remote remote = {.link = link};

	remote.rights = cadge_blob_take_u32(key);
	remote.far.addr = cadge_blob_take_u64(key);
	remote.far.key = cadge_blob_take_u64(key);
	remote.bytes = cadge_blob_take_u64(key);
	return attach(key, link->packets, &remote, remote_out);
}

enum cadge_progress cadge_wire_reach(const struct cadge_remote *remote, uint32_t right)
{
	const struct cadge_wire *wire = remote->link->wire;

	if (!(remote->rights & right) || (right == CADGE_MAY_ATOMIC && !wire->facts.adds))
		return CADGE_PROGRESS_NONE;
	if (right == CADGE_MAY_ATOMIC)
		return CADGE_PROGRESS_LIBRARY; /* also over verbs: ofi_rxm carries them out itself */
	return wire->rma.direct || wire->ofi.verbs ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;
}

/* Where it lies there, the provider does not say. */
static inline uint64_t word_of(const struct cadge_remote *remote)
{
	(void)remote;
	return 0;
}

static struct cadge_ofi_far far_at(const struct cadge_remote *remote, uint64_t offset_bytes)
{
	return (struct cadge_ofi_far){.addr = remote->far.addr + offset_bytes, .key = remote->far.key};
}

static inline int put_unchecked(struct cadge_link *link, const void *local, size_t bytes,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	return cadge_ofi_write(&link->rma, local, bytes, far_at(remote, offset_bytes), token, NULL);
}

static inline int get_unchecked(struct cadge_link *link, void *local, size_t bytes,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	return cadge_ofi_read(&link->rma, local, bytes, far_at(remote, offset_bytes), token);
}

static inline int add_unchecked(struct cadge_link *link, uint64_t addend, uint64_t *before_out,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	return cadge_ofi_fetch_add(&link->rma, addend, before_out, far_at(remote, offset_bytes), token);
}

static inline int swap_unchecked(struct cadge_link *link, uint64_t expected, uint64_t desired,
				 uint64_t *before_out, const struct cadge_remote *remote,
				 uint64_t offset_bytes, uint64_t token)
{
	return cadge_ofi_compare_swap(&link->rma, expected, desired, before_out, far_at(remote, offset_bytes),
				      token);
}

#include "wire/checked.h"

int cadge_wire_quiet(struct cadge_link *link, uint64_t token)
{
	const int code = cadge_usable(&link->state);

	return code == CADGE_DONE ? cadge_ofi_quiet(&link->rma, token, NULL) : code;
}

/* ---- what quiet reads ---- */

int cadge_wire_memory_open(struct cadge_wire *wire, size_t operations)
{
	int code = cadge_ofi_rma_create(&wire->rma, &wire->ofi, operations, on_ended, wire);

	if (code != CADGE_DONE)
		return code;
	wire->words = cadge_wire_alloc(wire, cadge_wire_words_bytes(wire));
	if (!wire->words)
		return CADGE_E_MEMORY;
	for (uint32_t i = 0; i < wire->peers; i++)
		if (cadge_nonce(&wire->words[2 * i]) != CADGE_DONE)
			return CADGE_E_LIBRARY;
	return cadge_ofi_expose(&wire->rma, wire->words, cadge_wire_words_bytes(wire), CADGE_MAY_ALL,
				&wire->words_mr, &wire->words_far);
}

void cadge_wire_memory_close(struct cadge_wire *wire)
{
	cadge_ofi_unexpose(wire->words_mr);
	while (wire->regions)
		cadge_wire_unexpose(wire, wire->regions);
}

void cadge_wire_memory_free(struct cadge_wire *wire)
{
	while (wire->allocs)
		cadge_wire_free(wire, wire->allocs->base, wire->allocs->bytes);
}

void cadge_wire_word_address(const struct cadge_wire *wire, uint32_t peer, struct cadge_blob_out *blob)
{
	if (!wire->words)
		return;
	cadge_blob_u64(blob, wire->words_far.addr + 2 * peer * sizeof(uint64_t));
	cadge_blob_u64(blob, wire->words_far.key);
	cadge_blob_u32(blob, (uint32_t)getpid());
	cadge_blob_u64(blob, wire->words[2 * peer]);
}

struct cadge_wire_word cadge_wire_word_take(const struct cadge_wire *wire, struct cadge_blob_in *blob)
{
	struct cadge_wire_word word = {.pid = 0};

	if (!wire->words)
		return word;
	word.far.addr = cadge_blob_take_u64(blob);
	word.far.key = cadge_blob_take_u64(blob);
	word.pid = (pid_t)cadge_blob_take_u32(blob);
	word.nonce = cadge_blob_take_u64(blob);
	return word;
}

void cadge_wire_memory_begin(struct cadge_link *link, const struct cadge_wire_word *word)
{
	struct cadge_wire *wire = link->wire;

	if (wire->words)
		cadge_ofi_link_open(&link->rma, &wire->rma, link->addr, word->far, word->pid, word->nonce,
				    &wire->words[2 * link->peer + 1]);
}

void cadge_wire_memory_end(struct cadge_link *link)
{
	cadge_wire_detach_all(link);
	if (link->rma.rma)
		cadge_ofi_link_close(&link->rma);
}
