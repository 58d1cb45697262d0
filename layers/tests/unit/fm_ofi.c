/* SPDX-License-Identifier: BSD-3-Clause */
/* Fast Messages on libfabric keep what makes them Fast Messages. */
#include "tests/styles/fm.h"

int main(int argc, char **argv)
{
	return fm_conformance(argc, argv);
}
