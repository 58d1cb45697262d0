/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CADGE_TESTS_STYLES_FM_H
#define CADGE_TESTS_STYLES_FM_H

/* The tests of Fast Messages, for the substrate that the program is linked with: tests/unit/fm_*.c. */
int fm_conformance(int argc, char **argv);

#endif
