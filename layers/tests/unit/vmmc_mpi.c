/* SPDX-License-Identifier: BSD-3-Clause */
/* VMMC on MPI keeps what makes it VMMC. */
#include "tests/ranks/ranks.h"
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	ranks_by_mpirun = true;
	return style_conformance(argc, argv);
}
