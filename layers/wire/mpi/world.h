/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI in this process: started by the first open, ended by the end of the process, shared by all contexts. */
#ifndef CADGE_WIRE_MPI_WORLD_H
#define CADGE_WIRE_MPI_WORLD_H

#include <stdbool.h>

#include "cadge/layer.h"
#include "kit/adapter.h"

enum { MPI_WORLD_TAGS = 1 << 20 }; /* tags that one process uses in turn */

/*
 * Starts MPI unless it runs; `osc`, where not NULL, is Open MPI's component for one-sided operations
 * unless the user said another. DONE, or the negative code of open with args->error. Counts one context on
 * DONE.
 */
int mpi_world_enter(const struct cadge_open_args *args, const char *osc);
/* A context that entered is closed. */
void mpi_world_leave(void);
/* Something is unfinished for good: from now on nothing waits for the other ranks, and MPI may still use its
 * buffers. */
void mpi_world_mark_unclean(void);
bool mpi_world_is_unclean(void);
/* Keeps a block of malloc's that MPI may still read or write until the process ends. */
void mpi_world_keep(void *memory);
/* A tag for one connection. Comes round after so many connections that nothing of the old one is left. */
int mpi_world_new_tag(void);

/* Calls `end` when the process ends, before MPI does, where all was closed in order. One at most. */
void mpi_world_before_end(void (*end)(void));

/* Writes what MPI says of the error `ret` of `call` as one sentence. Returns false, for the caller to pass on. */
bool mpi_world_why(const char *call, int ret, char *text, size_t text_bytes);

/* The slot `library`. Legal before MPI runs. */
void cadge_wire_library(struct cadge_library *library_out);

/*
 * For calls in which Open MPI loads and unloads its plugins. What those leave behind is Open MPI's, and most
 * of it was allocated by code that is unmapped when leaks are reported, so that no suppression could name it.
 */
void mpi_world_hide_leaks(bool hide);

#endif
