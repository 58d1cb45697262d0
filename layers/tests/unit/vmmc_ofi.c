/* SPDX-License-Identifier: BSD-3-Clause */
/* VMMC on libfabric keeps what makes it VMMC. */
#include "tests/styles/vmmc.h"

int main(int argc, char **argv)
{
	return vmmc_conformance(argc, argv);
}
