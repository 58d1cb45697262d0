/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CADGE_TESTS_STYLES_PM_H
#define CADGE_TESTS_STYLES_PM_H

/* The tests of PM, for the substrate that the program is linked with: tests/unit/pm_*.c. */
int pm_conformance(int argc, char **argv);

#endif
