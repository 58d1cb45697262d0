/* SPDX-License-Identifier: BSD-3-Clause */
/* An export of VMMC on libfabric that has ended is written to no more. */
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	return style_conformance(argc, argv);
}
