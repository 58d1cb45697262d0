/* SPDX-License-Identifier: BSD-3-Clause */
/* Active Messages on MPI keep what makes them Active Messages: there is no layer of it, and its window has no key. */
#include "tests/ranks/ranks.h"
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	ranks_by_mpirun = true;
	return style_conformance(argc, argv);
}
