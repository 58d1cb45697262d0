/* SPDX-License-Identifier: BSD-3-Clause */
/* What other processes of this host have open, by their word alone. */
#ifndef PGR_PROCESS_H
#define PGR_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Opens descriptor `fd` of another process with `flags` of open, if it is of this kind (S_IF...) and lies where `like` does, one
 * of ours; -1 and errno. Never waits for whoever serves it, and has no effects on it.
 */
int pgr_process_open_fd(uint32_t pid, uint32_t fd, mode_t kind, int like, int flags);
/* Whether the process has ended, one that nobody has waited for among them. Who has its number since then lives. */
bool pgr_process_has_ended(uint32_t pid);
/* Whether its first thread runs, as far as we may know: while that has ended before others, the process shows nothing that it has open. */
bool pgr_process_runs(uint32_t pid);
/*
 * A file in memory of so many bytes that others may open, and on which seals can be put; -1 and errno: EFBIG is of `ulimit -f`.
 */
int pgr_memfd_make(const char *name, size_t bytes);
/* Whether the file has all of these seals. */
bool pgr_memfd_is_sealed(int fd, int seals);

#endif
