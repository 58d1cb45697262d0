/* SPDX-License-Identifier: BSD-3-Clause */
/* PM on libfabric keeps what makes it PM. */
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	return style_conformance(argc, argv);
}
