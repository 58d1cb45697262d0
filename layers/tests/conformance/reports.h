/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sanitizers say of a rank. A launcher may end with 0 whatever its ranks ended with, so their status is not enough:
 * each rank writes its report to a file of a folder, and one that lies there fails the suite.
 */
#ifndef CADGE_REPORTS_H
#define CADGE_REPORTS_H

#include <stddef.h>

/* In the referee, before any rank starts. 0 or -1 with a message on stderr. */
int reports_prepare(void);
/* In a rank: sends its reports there. Does nothing without sanitizers. */
void reports_begin(void);
/* Moves all reports to stderr. Their number; with one or more, `summary` has the line that sums up the first. */
unsigned int reports_take(char *summary, size_t summary_bytes);
/* Removes the folder. */
void reports_end(void);

#endif
