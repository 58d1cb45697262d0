/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CADGE_TESTS_STYLES_AM_H
#define CADGE_TESTS_STYLES_AM_H

/* The tests of Active Messages, for the substrate that the program is linked with: tests/unit/am_*.c. */
int am_conformance(int argc, char **argv);

#endif
