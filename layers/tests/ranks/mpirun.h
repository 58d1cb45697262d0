/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that mpirun starts, for run.c. */
#ifndef CADGE_TESTS_RANKS_MPIRUN_H
#define CADGE_TESTS_RANKS_MPIRUN_H

#include "tests/ranks/ranks.h"

/*
 * Becomes mpirun, which starts `ranks` times this program with the words --mpirun, the test, the place and a name of this
 * run. Ends with 77 where there is no mpirun.
 */
__attribute__((noreturn)) void mpirun_become(size_t test, enum cadge_place place, unsigned int ranks);
/* In a rank whose number and count are set: fills rank->to. False: errno says why. */
bool mpirun_exchange(struct rank *rank, const char *run);

#endif
