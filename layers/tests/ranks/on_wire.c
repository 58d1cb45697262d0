/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of tests that run on each wire: <name>_<wire>, from tests/<folder>/<name>.wires.mk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ranks/ranks.h"
#include "wire/wire.h"

int main(int argc, char **argv)
{
	if (strcmp(cadge_wire_substrate, "verbs") == 0 && !getenv("RANKS_DEVICES")) {
		puts("1..0 # SKIP no RDMA device is named: ci/rdma/run gives two");
		return 77;
	}
	ranks_by_mpirun = strcmp(cadge_wire_substrate, "mpi") == 0;
	return on_wire_conformance(argc, argv);
}
