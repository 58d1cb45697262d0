/* SPDX-License-Identifier: BSD-3-Clause */
/* BIP on libfabric keeps what makes it BIP. */
#include "tests/styles/bip.h"

int main(int argc, char **argv)
{
	return bip_conformance(argc, argv);
}
