/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire's remote memory on UCX. On shared memory UCX puts by a copy into memory that it has mapped, which is visible
 * when the call returns; only memory of its own allocator is mapped. How it gets at any other differs by version: 1.13
 * sends messages that the target's library carries out, 1.18 lets the kernel copy between processes.
 */
#include "wire/ucx/state.h"

#include <stdio.h>
#include <stdlib.h>

/* The tag of a flush carries the number of the last put before it; that of a note, the link; that of others is NULL. */
static void *tag_of(uint64_t last_put)
{
	return (void *)(uintptr_t)last_put;
}

static void report_end(struct cadge_link *link, uint64_t token, int code)
{
	link->wire->events++;
	CADGE_WIRE_ENDED(link->wire)(link->wire->arg, link->peer, token, code);
}

static void on_ended(void *user, void *tag, uint64_t token, int code)
{
	struct cadge_link *link = user;
	struct cadge_wire *wire = link->wire;

	if (code == CADGE_DONE && (uintptr_t)tag > link->flushed)
		link->flushed = (uintptr_t)tag;
	if (code < 0) {
		if (!*wire->ucx.why)
			snprintf(wire->ucx.why, sizeof(wire->ucx.why), "a one-sided operation failed (%d)",
				 code);
		if (code == CADGE_E_DOWN || tag == link)
			cadge_wire_break(link);
		if (tag == link)
			return;
	}
	if (wire->inside) {
		report_end(link, token, code);
		return;
	}
	wire->ends[wire->ends_count++] = (struct cadge_wire_end){.operations = link->operations,
								 .token = token,
								 .life = link->operations->rma.life,
								 .code = code};
	wire->events_pending = true;
}

void cadge_wire_report_ends(struct cadge_wire *wire)
{
	/* `ended` may start operations, which may end in here: these are told as well. */
	for (size_t i = 0; i < wire->ends_count; i++) {
		const struct cadge_wire_end end = wire->ends[i];

		if (end.life == end.operations->rma.life)
			report_end(end.operations->rma.user, end.token, end.code);
	}
	wire->ends_count = 0;
}

void *cadge_wire_alloc(struct cadge_wire *wire, size_t bytes)
{
	return cadge_ucx_mem_alloc(&wire->memory, bytes);
}

void cadge_wire_free(struct cadge_wire *wire, void *base, size_t bytes)
{
	(void)bytes;
	cadge_ucx_mem_free(&wire->memory, base);
}

int cadge_wire_expose(struct cadge_wire *wire, void *base, size_t bytes, uint32_t rights,
		      struct cadge_blob_out *key, struct cadge_region **region_out)
{
	cadge_blob_u32(key, rights);
	return cadge_ucx_expose(&wire->memory, base, bytes, key, region_out);
}

void cadge_wire_unexpose(struct cadge_wire *wire, struct cadge_region *region)
{
	cadge_ucx_unexpose(&wire->memory, region);
}

static bool is_direct(const struct cadge_remote *remote)
{
	const struct cadge_link *link = remote->rma->user;

	return remote->mapped || link->operations->unmapped == CADGE_PROGRESS_DIRECT;
}

static void ask_unmapped(struct cadge_link *link)
{
	struct cadge_ucx_path path;

	link->operations->unmapped = CADGE_PROGRESS_LIBRARY;
	link->operations->device_atomics = false;
	if (cadge_ucx_path_of(link->ep, link->wire->ucx.device, &path) != CADGE_DONE)
		return;
	if (path.copies_between)
		link->operations->unmapped = CADGE_PROGRESS_DIRECT;
	link->operations->device_atomics = link->wire->ucx.verbs && path.atomics;
}

int cadge_wire_attach(struct cadge_link *link, struct cadge_blob_in *key, struct cadge_remote **remote_out)
{
	const uint32_t rights = cadge_blob_take_u32(key);
	int code;

	if (!key->ok)
		return CADGE_E_ARGUMENT;
	if (!link->ep)
		return CADGE_E_DOWN;
	code = cadge_ucx_attach(&link->operations->rma, key, remote_out);
	if (code != CADGE_DONE)
		return code;
	(*remote_out)->rights = rights;
	if (!(*remote_out)->mapped && link->operations->unmapped == CADGE_PROGRESS_NONE)
		ask_unmapped(link);
	return CADGE_DONE;
}

void cadge_wire_detach(struct cadge_remote *remote)
{
	cadge_ucx_detach(remote);
}

enum cadge_progress cadge_wire_reach(const struct cadge_remote *remote, uint32_t right)
{
	const struct cadge_link *link = remote->rma->user;

	if (!(remote->rights & right) || (right == CADGE_MAY_ATOMIC && !link->wire->facts.adds))
		return CADGE_PROGRESS_NONE;
	if (link->wire->ucx.verbs) /* by the device; but not every one has atomic operations */
		return right != CADGE_MAY_ATOMIC || link->operations->device_atomics ? CADGE_PROGRESS_DIRECT
										     : CADGE_PROGRESS_LIBRARY;
	return remote->mapped || (right != CADGE_MAY_ATOMIC && is_direct(remote)) ? CADGE_PROGRESS_DIRECT
										  : CADGE_PROGRESS_LIBRARY;
}

static inline bool is_of(const struct cadge_remote *remote, const struct cadge_link *link)
{
	return remote->rma == &link->operations->rma;
}

static inline uint64_t word_of(const struct cadge_remote *remote)
{
	return remote->base;
}

static inline int put_unchecked(struct cadge_link *link, const void *local, size_t bytes,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	const int code =
		cadge_ucx_put(&link->operations->rma, local, bytes, remote, offset_bytes, NULL, token);

	if (code == CADGE_QUEUED || (code == CADGE_DONE && !is_direct(remote)))
		link->last_put++;
	return code;
}

static inline int get_unchecked(struct cadge_link *link, void *local, size_t bytes,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	return cadge_ucx_get(&link->operations->rma, local, bytes, remote, offset_bytes, NULL, token);
}

static inline int add_unchecked(struct cadge_link *link, uint64_t addend, uint64_t *before_out,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	return cadge_ucx_fetch_add(&link->operations->rma, addend, before_out, remote, offset_bytes, NULL,
				   token);
}

static inline int swap_unchecked(struct cadge_link *link, uint64_t expected, uint64_t desired,
				 uint64_t *before_out, const struct cadge_remote *remote,
				 uint64_t offset_bytes, uint64_t token)
{
	return cadge_ucx_compare_swap(&link->operations->rma, expected, desired, before_out, remote,
				      offset_bytes, NULL, token);
}

#include "wire/checked.h"

int cadge_wire_quiet(struct cadge_link *link, uint64_t token)
{
	int code = cadge_usable(&link->state);

	if (code != CADGE_DONE)
		return code;
	if (link->flushed == link->last_put && !(link->wire->features & CADGE_WIRE_FLUSH)) {
		__atomic_thread_fence(__ATOMIC_RELEASE);
		return CADGE_DONE;
	}
	code = cadge_ucx_flush(&link->operations->rma, tag_of(link->last_put), token);
	if (code == CADGE_DONE)
		link->flushed = link->last_put;
	return code;
}

int cadge_wire_note(struct cadge_link *link, const void *note)
{
	return link->writes_wake ? CADGE_DONE
				 : cadge_ucx_note(&link->operations->rma, link->id_out, note, link);
}

/* ---- lives ---- */

/*
 * What the lanes say. All of them TCP: whatever is written to the peer passes through its library, which has to read it, and so
 * wakes it.
 */
static void ask_whether_writes_wake(struct cadge_link *link)
{
	struct cadge_ucx_path path;

	link->writes_wake = link->wire->features & CADGE_WIRE_NOTES &&
			    cadge_ucx_path_of(link->ep, "", &path) == CADGE_DONE && path.network &&
			    !path.other;
}

static struct cadge_wire_operations *make_operations(struct cadge_wire *wire)
{
	struct cadge_wire_operations *operations = calloc(1, sizeof(*operations));

	if (!operations || cadge_ucx_rma_init(&operations->rma, &wire->memory, wire->operations_max, on_ended,
					      NULL) != CADGE_DONE) {
		free(operations);
		return NULL;
	}
	operations->next = wire->operations;
	wire->operations = operations;
	return operations;
}

int cadge_wire_operations_begin(struct cadge_link *link)
{
	struct cadge_wire_operations *operations = link->wire->operations;

	while (operations && (operations->rma.ep || operations->rma.under_way))
		operations = operations->next;
	if (!operations)
		operations = make_operations(link->wire);
	if (!operations)
		return CADGE_E_MEMORY;
	operations->rma.ep = link->ep;
	operations->rma.user = link;
	operations->unmapped = CADGE_PROGRESS_NONE;
	link->operations = operations;
	link->last_put = link->flushed = 0;
	ask_whether_writes_wake(link);
	return CADGE_DONE;
}

void cadge_wire_operations_end(struct cadge_link *link)
{
	struct cadge_wire_operations *operations = link->operations;

	if (!operations)
		return;
	operations->rma.life++;
	cadge_ucx_detach_all(&operations->rma);
	operations->rma.ep = NULL;
	link->operations = NULL;
}

bool cadge_wire_operations_out(const struct cadge_wire *wire)
{
	for (const struct cadge_wire_operations *each = wire->operations; each; each = each->next)
		if (each->rma.under_way)
			return true;
	return false;
}

void cadge_wire_operations_destroy(struct cadge_wire *wire)
{
	struct cadge_wire_operations *operations;

	while ((operations = wire->operations)) {
		wire->operations = operations->next;
		cadge_ucx_rma_fini(&operations->rma);
		free(operations);
	}
	free(wire->ends);
}
