/* SPDX-License-Identifier: BSD-3-Clause */
/* VMMC on UCX keeps what makes it VMMC. */
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	return style_conformance(argc, argv);
}
