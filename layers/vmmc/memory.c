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
	utlb_drop(&vmmc->utlb, base, bytes);
	cadge_wire_free(vmmc->wire, base, bytes);
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

void vmmc_unexport(struct vmmc_export *export)
{
	const struct vmmc_head head = {
		.kind = LETTER_UNEXPORT, .slot = export->slot, .generation = export->generation};
	struct vmmc *vmmc = export->vmmc;

	for (uint32_t i = 0; i < vmmc->peers; i++)
		if (vmmc->links[i].wire && is_for(export, &vmmc->links[i]))
			vmmc_tell(&vmmc->links[i], &head, NULL, 0);
	cadge_wire_unexpose(vmmc->wire, export->region);
	if (export->to_region)
		cadge_wire_unexpose(vmmc->wire, export->to_region);
	free_export(export);
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
	struct vmmc_import **at = &import->link->imports;

	while (*at != import)
		at = &(*at)->next;
	*at = import->next;
	cadge_wire_detach(import->remote);
	free(import);
}

enum cadge_progress vmmc_reach(const struct vmmc_import *import)
{
	return cadge_wire_reach(import->remote, CADGE_MAY_WRITE);
}

void vmmc_unexported(struct vmmc_link *link, const struct vmmc_head *head)
{
	if (head->generation <= link->gone[head->slot])
		return;
	link->gone[head->slot] = head->generation;
	for (struct vmmc_import *import = link->imports; import; import = import->next)
		if (import->slot == head->slot && import->generation <= head->generation) {
			import->writes = false;
			import->source = NULL;
		}
	vmmc_forget_source(link, head->slot, head->generation);
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
