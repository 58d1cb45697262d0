/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma-mpi: MPI one-sided with passive targets: MPI_Rput, MPI_Rget and MPI_Win_flush in one window (wire/mpi/window.h). */
#include "rdma/adapter.h"
#include "wire/mpi/memory.c"
#include "wire/mpi/wire.c"
#include "wire/mpi/substrate.h"

static enum cadge_progress expected(const struct cadge_wire *wire, uint32_t right)
{
	(void)right;
	return wire->direct ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;
}

static void note(const struct cadge_chan *chan, char *text, size_t bytes)
{
	const struct cadge_wire *wire = chan->ctx->wire;

	snprintf(text, bytes, "%s%s",
		 wire->direct ? "" : "a get after each write pushes it and tells when to flush",
		 wire->place == CADGE_PLACE_NET && mpi_which_is_open_mpi_before(5)
			 ? "; osc pt2pt is set by Cadge: Open MPI's choice ends with MPI_ERR_WIN"
			 : "");
}

static const struct cadge_option options[] = {{NULL, NULL, NULL}};

static const struct rdma_substrate substrate = {
	.options = options,
	.depth_max = 1024,
	.operations_each = 2,
	.operations_more = 64,
	.short_path = "one write",
	.long_path = "mailbox chunks",
	.expected = expected,
	.note = note,
};

#include "rdma/adapter.c"

const struct cadge_traits cadge_style_library_traits = {
	.copies_on_send = 1,
	.thread_role = CADGE_THREADS_HOUSEKEEPING,
	.threads_max = CADGE_MPI_THREADS,
};

const struct cadge_layer cadge_style_layer = {
	.name = "rdma-mpi",
	.caps = CADGE_SUBSTRATE_CAPS(RDMA_CAPS) | CADGE_CAP_NET | CADGE_CAP_MEM_ALLOC,
	CADGE_STYLE_SLOTS_BARE,
	RDMA_SLOTS,
	RDMA_ALLOC_SLOTS,
};
