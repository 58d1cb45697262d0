/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What MPI really uses towards one rank. Open MPI can be read, by its own headers, which is why this stands apart; no other
 * MPI says it.
 */
#ifndef CADGE_WIRE_MPI_PATH_H
#define CADGE_WIRE_MPI_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <mpi.h>

#include "cadge/layer.h"

struct mpi_path {
	char pml[64]; /* the messaging component that was selected; "" where it cannot be read */
	char btl[64]; /* pml ob1: the transports of messages to that rank, "vader" or "tcp,tcp"; "" unknown */
	char mtl[64]; /* pml cm: its transport, else "" */
	/*
	 * Transports "vader" and "sm": how long messages are copied, in Open MPI's words: "cma", "xpmem", "knem",
	 * "emulated", "none" (both through fragments in shared memory). "" where it does not say, or for others.
	 */
	char copy[64];
	const char *method;   /* one clause for people: how this was found out */
	const char *not_read; /* or why it could not be, and then all else is empty; else NULL */
};

/* Fills *path_out for messages from here to `rank` of `comm`. Only after MPI_Init; does not communicate. */
void mpi_path_read(MPI_Comm comm, int rank, struct mpi_path *path_out);

/*
 * What describe_path says where mpi_path_read could not: that it is not read back, and why, and how MPI was put where it was
 * asked to be.
 */
void mpi_path_not_read(const struct mpi_path *path, enum cadge_place place, struct cadge_path *path_out);

/* Writes the name of the component of Open MPI that serves a window, e.g. "rdma"; "" where it cannot be told. */
void mpi_path_window(MPI_Win win, char *text, size_t text_bytes);

struct mpi_limits {
	uint64_t eager_bytes;            /* longest message that is sent together with its envelope */
	uint64_t rendezvous_eager_bytes; /* most of a longer one that is sent with its announcement */
};

/*
 * What MPI's tools interface states of the transport "tcp", "vader" or "sm" (which is what Open MPI 5 calls vader);
 * 0 where it states none. Only after MPI_Init.
 */
struct mpi_limits mpi_path_limits(const char *btl);

/* True where the kernel does not let this process read the memory of that one, as copy "cma" does. */
bool mpi_path_memory_refused(pid_t pid);

#endif
