/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire's remote memory on MPI: parts of the one window, opened to all by MPI_Win_lock_all. Where the target's
 * library need not run, nothing here waits for the target; elsewhere see far.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "wire/mpi/window.h"
#include "wire/mpi/state.h"
#include "wire/remotes.h"

void *cadge_wire_alloc(struct cadge_wire *wire, size_t bytes)
{
	struct wire_allocation *allocation = malloc(sizeof(*allocation));
	void *base = allocation ? mpi_window_alloc(bytes) : NULL;

	if (!base) {
		free(allocation);
		return NULL;
	}
	*allocation = (struct wire_allocation){.next = wire->allocations, .base = base, .bytes = bytes};
	wire->allocations = allocation;
	return base;
}

void cadge_wire_free(struct cadge_wire *wire, void *base, size_t bytes)
{
	struct wire_allocation **at = &wire->allocations;
	struct wire_allocation *allocation;

	(void)bytes;
	while (*at && (*at)->base != base)
		at = &(*at)->next;
	allocation = *at;
	if (!allocation)
		return;
	*at = allocation->next;
	mpi_window_free(allocation->base, allocation->bytes);
	free(allocation);
}

void cadge_wire_forget_memory(struct cadge_wire *wire)
{
	while (wire->regions)
		cadge_wire_unexpose(wire, wire->regions);
	while (wire->allocations)
		cadge_wire_free(wire, wire->allocations->base, wire->allocations->bytes);
}

int cadge_wire_expose(struct cadge_wire *wire, void *base, size_t bytes, uint32_t rights,
		      struct cadge_blob_out *key, struct cadge_region **region_out)
{
	struct cadge_region *region;
	uint64_t offset_bytes;

	if (!mpi_window_holds(base, bytes, &offset_bytes)) {
		snprintf(wire->why, sizeof(wire->why),
			 "only memory of mem_alloc, which lies in the window, can be exposed");
		return CADGE_E_ARGUMENT;
	}
	cadge_blob_u32(key, rights);
	cadge_blob_u64(key, offset_bytes);
	cadge_blob_u64(key, bytes);
	if (!key->ok)
		return CADGE_E_TOO_LARGE;
	region = malloc(sizeof(*region));
	if (!region)
		return CADGE_E_MEMORY;
	region->next = wire->regions;
	wire->regions = region;
	*region_out = region;
	return CADGE_DONE;
}

void cadge_wire_unexpose(struct cadge_wire *wire, struct cadge_region *region)
{
	if (CADGE_LIST_REMOVE(wire->regions, region))
		free(region);
}

int cadge_wire_attach(struct cadge_link *link, struct cadge_blob_in *key, struct cadge_remote **remote_out)
{
	const uint32_t rights = cadge_blob_take_u32(key);
	const uint64_t offset_bytes = cadge_blob_take_u64(key), bytes = cadge_blob_take_u64(key);
	const struct cadge_remote new = {
		.link = link, .offset_bytes = offset_bytes, .bytes = bytes, .rights = rights};

	return attach(key, link->connected, &new, remote_out);
}

enum cadge_progress cadge_wire_reach(const struct cadge_remote *remote, uint32_t right)
{
	const struct cadge_wire *wire = remote->link->wire;

	if (!(remote->rights & right) || (right == CADGE_MAY_ATOMIC && !wire->facts.adds))
		return CADGE_PROGRESS_NONE;
	return wire->direct ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;
}

static inline uint64_t word_of(const struct cadge_remote *remote)
{
	return remote->offset_bytes;
}

/* The library copies inside its call; where it has not quite finished, it needs nobody else for the rest. */
static int finish(struct cadge_link *link, MPI_Request *request)
{
	int done = 0;

	return cadge_wire_went_well(link->wire, "MPI_Test", MPI_Test(request, &done, MPI_STATUS_IGNORE)) &&
			       (done || cadge_wire_went_well(link->wire, "MPI_Wait",
							     MPI_Wait(request, MPI_STATUS_IGNORE)))
		       ? CADGE_DONE
		       : CADGE_E_DOWN;
}

static inline int put_unchecked(struct cadge_link *link, const void *local, size_t bytes,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	const uint64_t at_bytes = remote->offset_bytes + offset_bytes;
	MPI_Request request;

	if (UNLIKELY(!link->wire->direct))
		return cadge_wire_far_put(link, local, bytes, at_bytes, token);
	if (!cadge_wire_went_well(link->wire, "MPI_Rput",
				  MPI_Rput(local, (int)bytes, MPI_BYTE, link->rank, (MPI_Aint)at_bytes,
					   (int)bytes, MPI_BYTE, mpi_window(), &request)))
		return CADGE_E_DOWN;
	link->written = true;
	return finish(link, &request);
}

static inline int get_unchecked(struct cadge_link *link, void *local, size_t bytes,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	const uint64_t at_bytes = remote->offset_bytes + offset_bytes;
	MPI_Request request;

	if (UNLIKELY(!link->wire->direct))
		return cadge_wire_far_get(link, local, bytes, at_bytes, token);
	if (!cadge_wire_went_well(link->wire, "MPI_Rget",
				  MPI_Rget(local, (int)bytes, MPI_BYTE, link->rank, (MPI_Aint)at_bytes,
					   (int)bytes, MPI_BYTE, mpi_window(), &request)))
		return CADGE_E_DOWN;
	return finish(link, &request);
}

static inline int add_unchecked(struct cadge_link *link, uint64_t addend, uint64_t *before_out,
				const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	if (UNLIKELY(!link->wire->direct))
		return cadge_wire_far_add(link, addend, before_out, remote->offset_bytes + offset_bytes,
					  token);
	return cadge_wire_went_well(link->wire, "MPI_Fetch_and_op",
				    MPI_Fetch_and_op(&addend, before_out, MPI_UINT64_T, link->rank,
						     (MPI_Aint)(remote->offset_bytes + offset_bytes), MPI_SUM,
						     mpi_window())) &&
			       cadge_wire_went_well(link->wire, "MPI_Win_flush_local",
						    MPI_Win_flush_local(link->rank, mpi_window()))
		       ? CADGE_DONE
		       : CADGE_E_DOWN;
}

/* MPI has no request for it, and waits: see mpi_window_swaps. */
static inline int swap_unchecked(struct cadge_link *link, uint64_t expected, uint64_t desired,
				 uint64_t *before_out, const struct cadge_remote *remote,
				 uint64_t offset_bytes, uint64_t token)
{
	(void)token;
	return cadge_wire_went_well(
		       link->wire, "MPI_Compare_and_swap",
		       MPI_Compare_and_swap(&desired, &expected, before_out, MPI_UINT64_T, link->rank,
					    (MPI_Aint)(remote->offset_bytes + offset_bytes), mpi_window())) &&
			       cadge_wire_went_well(link->wire, "MPI_Win_flush_local",
						    MPI_Win_flush_local(link->rank, mpi_window()))
		       ? CADGE_DONE
		       : CADGE_E_DOWN;
}

#include "wire/checked.h"

int cadge_wire_flush(struct cadge_link *link)
{
	link->wire->flushes++;
	return cadge_wire_went_well(link->wire, "MPI_Win_flush", MPI_Win_flush(link->rank, mpi_window()))
		       ? CADGE_DONE
		       : CADGE_E_DOWN;
}

int cadge_wire_quiet(struct cadge_link *link, uint64_t token)
{
	const int code = cadge_usable(&link->state);

	if (code != CADGE_DONE)
		return code;
	if (UNLIKELY(!link->wire->direct))
		return cadge_wire_far_quiet(link, token);
	if (!link->written && !(link->wire->features & CADGE_WIRE_FLUSH))
		return CADGE_DONE;
	link->written = false;
	return cadge_wire_flush(link);
}

/* Nobody sleeps. */
int cadge_wire_note(struct cadge_link *link, const void *note)
{
	(void)link, (void)note;
	return CADGE_E_UNSUPPORTED;
}
