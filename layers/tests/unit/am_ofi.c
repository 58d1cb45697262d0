/* SPDX-License-Identifier: BSD-3-Clause */
/* Active Messages on libfabric keep what makes them Active Messages. */
#include "tests/styles/am.h"

int main(int argc, char **argv)
{
	return am_conformance(argc, argv);
}
