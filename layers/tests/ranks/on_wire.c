/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of tests that run on each wire: <name>_<wire>, from <style>/<name>.wires.mk. */
#include <string.h>

#include "tests/ranks/ranks.h"
#include "wire/wire.h"

int main(int argc, char **argv)
{
	ranks_by_mpirun = strcmp(cadge_wire_substrate, "mpi") == 0;
	return on_wire_conformance(argc, argv);
}
