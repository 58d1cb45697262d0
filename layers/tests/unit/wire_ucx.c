/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire on UCX keeps what wire/wire.h says. */
#include "tests/wire/wire_tests.h"

int main(int argc, char **argv)
{
	return wire_conformance(argc, argv);
}
