/* SPDX-License-Identifier: BSD-3-Clause */
/* An export of VMMC on MPI that has ended is written to no more. */
#include "tests/ranks/ranks.h"
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	ranks_by_mpirun = true;
	return style_conformance(argc, argv);
}
