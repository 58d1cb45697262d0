/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CADGE_TESTS_STYLES_BIP_H
#define CADGE_TESTS_STYLES_BIP_H

/* The tests of BIP, for the substrate that the program is linked with: tests/unit/bip_*.c. */
int bip_conformance(int argc, char **argv);

#endif
