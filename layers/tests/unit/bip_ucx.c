/* SPDX-License-Identifier: BSD-3-Clause */
/* BIP on UCX keeps what makes it BIP. */
#include "tests/styles/frame.h"

int main(int argc, char **argv)
{
	return style_conformance(argc, argv);
}
