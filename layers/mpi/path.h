/* SPDX-License-Identifier: BSD-3-Clause */
/* What Open MPI really uses towards one rank. Apart from p2p.c because it needs Open MPI's own headers. */
#ifndef CADGE_MPI_PATH_H
#define CADGE_MPI_PATH_H

#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

struct mpi_path {
	char pml[64]; /* the messaging component that was selected; "" where it cannot be read */
	char btl[64]; /* pml ob1: the transports of messages to that rank, "vader" or "tcp,tcp"; "" unknown */
	char mtl[64]; /* pml cm: its transport, else "" */
	const char *method; /* one clause for people: how this was found out */
};

/* Fills *path_out for messages from here to `rank` of `comm`. Only after MPI_Init; does not communicate. */
void mpi_path_read(MPI_Comm comm, int rank, struct mpi_path *path_out);

/*
 * Longest message that the transport "tcp", "vader" or "sm" (which is what Open MPI 5 calls vader) sends
 * together with its envelope, from MPI's tools interface; 0 where it states none. Only after MPI_Init.
 */
uint64_t mpi_path_eager_bytes(const char *btl);

/*
 * How the transport "vader" copies long messages within a host, from MPI's tools interface: "cma", "none" (through
 * fragments in shared memory) and so on; "" where it does not say. Only after MPI_Init.
 */
const char *mpi_path_copy(void);

#endif
