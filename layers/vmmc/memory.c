/* SPDX-License-Identifier: BSD-3-Clause */
/* VMMC: exports and imports. A key: nonce, number of the export, rights, flags, and the wire's key. */
#include <stdlib.h>

#include "vmmc/state.h"

void *vmmc_alloc(struct vmmc *vmmc, size_t bytes)
{
	return cadge_wire_alloc(vmmc->wire, bytes);
}

void vmmc_free(struct vmmc *vmmc, void *base, size_t bytes)
{
	struct vmmc_late_free *late;

	utlb_drop(&vmmc->utlb, base, bytes);
	if (!vmmc_may_be_written(vmmc, base, bytes)) {
		cadge_wire_free(vmmc->wire, base, bytes);
		return;
	}
	late = malloc(sizeof(*late));
	if (!late)
		return; /* it goes with the wire */
	*late = (struct vmmc_late_free){.base = base, .bytes = bytes};
	CADGE_POOL_GIVE(vmmc->late_frees, late);
}

/* ---- exports ---- */

static struct vmmc_export *new_export(struct vmmc *vmmc)
{
	struct vmmc_export *export;
	uint32_t slot = 0;

	while (slot < VMMC_EXPORTS_MAX && vmmc->exports[slot])
		slot++;
	export = slot < VMMC_EXPORTS_MAX ? calloc(1, sizeof(*export)) : NULL;
	if (!export)
		return NULL;
	export->vmmc = vmmc;
	export->slot = slot;
	export->generation = ++vmmc->generations[slot];
	vmmc->exports[slot] = export;
	return export;
}

static void free_export(struct vmmc_export *export)
{
	export->vmmc->exports[export->slot] = NULL;
	free(export);
}

int vmmc_export(struct vmmc *vmmc, void *base, size_t bytes, uint32_t rights, uint32_t peer, uint32_t flags,
		struct cadge_blob_out *key, struct vmmc_export **export_out)
{
	const bool all = peer == CADGE_ALL_PEERS;
	struct vmmc_export *export;
	int code;

	if ((!all && peer >= vmmc->peers) || !rights || (rights & ~CADGE_MAY_ALL) ||
	    ((flags & VMMC_REDIRECTABLE) && (all || !vmmc->events.redirected)))
		return CADGE_E_ARGUMENT;
	export = new_export(vmmc);
	if (!export)
		return CADGE_E_MEMORY;
	export->rights = rights;
	export->peer = peer;
	export->flags = flags;
	export->base = base;
	export->bytes = bytes;
	export->binding = all ? vmmc->nonce_all : vmmc->links[peer].nonce_for_peer;
	cadge_blob_u64(key, export->binding);
	cadge_blob_u32(key, export->slot);
	cadge_blob_u32(key, export->generation);
	cadge_blob_u32(key, rights);
	cadge_blob_u32(key, flags);
	code = cadge_wire_expose(vmmc->wire, base, bytes, rights, key, &export->region);
	if (code != CADGE_DONE) {
		free_export(export);
		return code;
	}
	*export_out = export;
	return CADGE_DONE;
}

/* Whether this peer, in this life, may import it. */
static bool is_for(const struct vmmc_export *export, const struct vmmc_link *link)
{
	return export->peer == CADGE_ALL_PEERS ||
	       (export->peer == link->peer && export->binding == link->nonce_for_peer);
}

/* Whether a peer that was told of its end has not answered. */
static bool is_ending(const struct vmmc_export *export)
{
	const struct vmmc *vmmc = export->vmmc;

	for (uint32_t i = 0; i < vmmc->peers; i++) {
		const struct vmmc_link *link = &vmmc->links[i];

		if (link->wire && !link->down && is_for(export, link) &&
		    export->withdrawal > link->withdrawals_before &&
		    export->withdrawal > link->withdrawals_answered)
			return true;
	}
	return false;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

bool vmmc_may_be_written(const struct vmmc *vmmc, const void *base, size_t bytes)
{
	for (const struct vmmc_export *export = vmmc->ending; export; export = export->next)
		if (overlap(export->base, export->bytes, base, bytes) ||
		    (export->to_region && overlap(export->to, export->to_bytes, base, bytes)))
			return true;
	return false;
}

static void drop(struct vmmc_export *export)
{
	struct cadge_wire *wire = export->vmmc->wire;

	export->vmmc->withdrawals_answered++;
	cadge_wire_unexpose(wire, export->region);
	if (export->to_region)
		cadge_wire_unexpose(wire, export->to_region);
	free(export);
}

void vmmc_drop_answered(struct vmmc *vmmc)
{
	struct vmmc_export **at = &vmmc->ending, *export;
	struct vmmc_late_free **late_at = &vmmc->late_frees, *late;

	vmmc->answers = false;
	while ((export = *at))
		if (is_ending(export)) {
			at = &export->next;
		} else {
			*at = export->next;
			drop(export);
		}
	while ((late = *late_at))
		if (vmmc_may_be_written(vmmc, late->base, late->bytes)) {
			late_at = &late->next;
		} else {
			*late_at = late->next;
			cadge_wire_free(vmmc->wire, late->base, late->bytes);
			free(late);
		}
}

void vmmc_unexport(struct vmmc_export *export)
{
	struct vmmc *vmmc = export->vmmc;
	const struct vmmc_head head = {.kind = CONTROL_UNEXPORT,
				       .slot = export->slot,
				       .generation = export->generation,
				       .offset_bytes = ++vmmc->withdrawals};

	export->withdrawal = vmmc->withdrawals;
	for (uint32_t i = 0; i < vmmc->peers; i++)
		if (vmmc->links[i].wire && is_for(export, &vmmc->links[i]))
			vmmc_send_control(&vmmc->links[i], &head, NULL, 0);
	vmmc->exports[export->slot] = NULL;
	CADGE_POOL_GIVE(vmmc->ending, export);
	vmmc_drop_answered(vmmc);
}

void vmmc_forget_exports(struct vmmc *vmmc)
{
	struct vmmc_late_free *late;
	struct vmmc_export *export;

	while ((export = CADGE_POOL_TAKE(vmmc->ending)))
		free(export);
	while ((late = CADGE_POOL_TAKE(vmmc->late_frees)))
		free(late);
	for (uint32_t i = 0; i < VMMC_EXPORTS_MAX; i++)
		free(vmmc->exports[i]);
}

struct vmmc_export *vmmc_find_export(struct vmmc *vmmc, uint32_t peer, const struct vmmc_head *head)
{
	struct vmmc_export *export = head->slot < VMMC_EXPORTS_MAX ? vmmc->exports[head->slot] : NULL;

	return export && export->generation == head->generation && is_for(export, &vmmc->links[peer]) ? export
												      : NULL;
}

/* ---- imports ---- */

/* Whether a key with this binding may be used for that here. */
static bool may_import(const struct vmmc_link *link, uint64_t binding, const struct vmmc_import *import,
		       uint32_t rights, uint32_t intent)
{
	return (binding == link->nonce_all || binding == link->nonce_mine) && !(intent & ~rights) &&
	       import->generation > link->gone[import->slot];
}

static int attach(struct vmmc_link *link, struct vmmc_import *import, uint32_t flags,
		  struct cadge_blob_in *key)
{
	int code = cadge_wire_attach(link->wire, key, &import->remote);

	if (code != CADGE_DONE || !(flags & VMMC_REDIRECTABLE))
		return code;
	import->source = vmmc_source_of(link, import->slot, import->generation);
	if (import->source)
		return CADGE_DONE;
	cadge_wire_detach(import->remote);
	return CADGE_E_MEMORY;
}

int vmmc_import(struct vmmc *vmmc, uint32_t peer, struct cadge_blob_in *key, uint32_t intent,
		struct vmmc_import **import_out)
{
	struct vmmc_link *link = peer < vmmc->peers ? &vmmc->links[peer] : NULL;
	const uint64_t binding = cadge_blob_take_u64(key);
	struct vmmc_import *import, read = {.link = link, .writes = intent & CADGE_MAY_WRITE};
	uint32_t rights, flags;
	int code;

	read.slot = cadge_blob_take_u32(key);
	read.generation = cadge_blob_take_u32(key);
	rights = cadge_blob_take_u32(key);
	flags = cadge_blob_take_u32(key);
	if (!link || !key->ok || read.slot >= VMMC_EXPORTS_MAX || !intent)
		return CADGE_E_ARGUMENT;
	if (!link->wire)
		return CADGE_E_DOWN;
	if (!may_import(link, binding, &read, rights, intent)) {
		vmmc->imports_refused++;
		return CADGE_E_REFUSED;
	}
	import = malloc(sizeof(*import));
	if (!import)
		return CADGE_E_MEMORY;
	*import = read;
	code = attach(link, import, flags, key);
	if (code != CADGE_DONE) {
		free(import);
		return code;
	}
	import->next = link->imports;
	link->imports = import;
	*import_out = import;
	return CADGE_DONE;
}

void vmmc_unimport(struct vmmc_import *import)
{
	(void)CADGE_LIST_REMOVE(import->link->imports, import);
	cadge_wire_detach(import->remote);
	free(import);
}

enum cadge_progress vmmc_reach(const struct vmmc_import *import)
{
	return cadge_wire_reach(import->remote, CADGE_MAY_WRITE);
}

void vmmc_unexported(struct vmmc_link *link, const struct vmmc_head *head)
{
	const struct vmmc_head answer = {.kind = CONTROL_UNEXPORT_ACK,
					 .slot = head->slot,
					 .generation = head->generation,
					 .offset_bytes = head->offset_bytes};

	if (head->generation > link->gone[head->slot]) {
		link->gone[head->slot] = head->generation;
		for (struct vmmc_import *import = link->imports; import; import = import->next)
			if (import->slot == head->slot && import->generation <= head->generation) {
				import->writes = false;
				import->source = NULL;
			}
		vmmc_forget_source(link, head->slot, head->generation);
	}
	vmmc_send_control(link, &answer, NULL, 0);
}

bool vmmc_unexport_answered(struct vmmc_link *link, const struct vmmc_head *head)
{
	if (head->offset_bytes <= link->withdrawals_answered || head->offset_bytes > link->vmmc->withdrawals)
		return false;
	link->withdrawals_answered = head->offset_bytes;
	link->vmmc->answers = true;
	return true;
}

void vmmc_forget_imports(struct vmmc_link *link)
{
	struct vmmc_import *import;
	struct vmmc_source *source;

	while ((import = link->imports)) {
		link->imports = import->next;
		free(import);
	}
	while ((source = link->sources)) {
		link->sources = source->next;
		free(source);
	}
}
