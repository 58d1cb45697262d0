/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CADGE_TESTS_STYLES_VMMC_H
#define CADGE_TESTS_STYLES_VMMC_H

/* The tests of VMMC, for the substrate that the program is linked with: tests/unit/vmmc_*.c. */
int vmmc_conformance(int argc, char **argv);

#endif
