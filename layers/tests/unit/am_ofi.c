/* SPDX-License-Identifier: BSD-3-Clause */
/* Active Messages on libfabric keep what makes them Active Messages. */
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	return style_conformance(argc, argv);
}
