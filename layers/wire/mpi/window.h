/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one window of this process: memory that MPI allocated for one-sided operations, shared out to contexts.
 *
 * Making a window is collective (MPI-3.1, section 11.2): all ranks make it together in their first open, and it stays
 * until the process ends. Only memory inside it can be exposed.
 */
#ifndef CADGE_WIRE_MPI_WINDOW_H
#define CADGE_WIRE_MPI_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "cadge/layer.h"

#define MPI_WINDOW_BYTES_LEAST ((size_t)64 << 20)

/*
 * Starts MPI as mpi_world_enter does, and makes the window with room for `bytes` at least unless there is one. Blocks until
 * all ranks have come here. DONE, counting one context of mpi_world, or the negative code of open with args->error.
 */
int mpi_window_enter(const struct cadge_open_args *args, size_t bytes);
MPI_Win mpi_window(void);
/* Whole pages of the window, zeroed; NULL where so many do not lie free side by side. */
void *mpi_window_alloc(size_t bytes);
void mpi_window_free(void *base, size_t bytes);
/* Where [base, base + bytes) lies in the window, as peers name it. False where it does not lie inside. */
bool mpi_window_holds(const void *base, size_t bytes, uint64_t *offset_bytes_out);
/* The component of Open MPI that serves the window, e.g. "rdma"; "" where it cannot be told. */
const char *mpi_window_component(void);
/*
 * True where a put is visible, and a get returns, although the target's library does not run. Found by stopping targets
 * (layers/tests/conformance/t_onesided.c), not from the attribute MPI_WIN_MODEL, which says MPI_WIN_UNIFIED of both kinds.
 * Where the component cannot be told it is tried when the window is made.
 */
bool mpi_window_direct(enum cadge_place place);
/*
 * True where MPI_Compare_and_swap can be used, and need not be waited for. Not in the component rdma of Open MPI 4: it sends the
 * target an address of the origin's, where the target's library faults.
 */
bool mpi_window_swaps(enum cadge_place place);

#endif
