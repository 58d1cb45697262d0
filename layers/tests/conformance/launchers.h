/* SPDX-License-Identifier: BSD-3-Clause */
/* What starts ranks where a library has to be started that way: Open MPI's mpirun, and MPICH's, which is called hydra. And their end. */
#ifndef CADGE_LAUNCHERS_H
#define CADGE_LAUNCHERS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Becomes `program`, which starts `ranks` times `command` (its last entry is NULL) on this host: more ranks than cores are
 * fine, and none is bound. `survive`: one that ends in disorder does not end the others. What launcher it is it says itself.
 * Returns only where that fails, with errno, or 0 where it is none that is known.
 */
void launcher_become(const char *program, unsigned int ranks, bool survive, char *const *command);
/* In a rank that a launcher started: its number as text; elsewhere NULL. */
const char *launcher_rank(void);
/* True once it has ended, also where nobody has waited for it: a signal only asks. False after so long. */
bool process_ends(pid_t pid, int within_ms);

#endif
