/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire on MPI keeps what wire/wire.h says. */
#include "tests/ranks/ranks.h"
#include "tests/wire/wire_tests.h"

int main(int argc, char **argv)
{
	ranks_by_mpirun = true;
	return wire_conformance(argc, argv);
}
