/* SPDX-License-Identifier: BSD-3-Clause */
/* PM on libfabric keeps what makes it PM. */
#include "tests/styles/pm.h"

int main(int argc, char **argv)
{
	return pm_conformance(argc, argv);
}
