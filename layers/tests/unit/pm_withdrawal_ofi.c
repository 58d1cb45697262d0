/* SPDX-License-Identifier: BSD-3-Clause */
/* What PM on libfabric withdraws is written to no more. */
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	return style_conformance(argc, argv);
}
