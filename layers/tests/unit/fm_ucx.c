/* SPDX-License-Identifier: BSD-3-Clause */
/* Fast Messages on UCX keep what makes them Fast Messages. */
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	return style_conformance(argc, argv);
}
