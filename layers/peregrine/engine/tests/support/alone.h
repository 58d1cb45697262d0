/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that have a process each, which ends when its time is over or the program has ended. TAP on standard output. */
#ifndef PGR_TESTS_ALONE_H
#define PGR_TESTS_ALONE_H

#include <stdbool.h>
#include <sys/types.h>

#include "clock.h"

enum { PASSED, FAILED, SKIPPED };

struct alone_test {
	const char *name;
	int (*run)(void);
};

struct alone {
	unsigned int seconds;
	/* why a test is skipped that returns SKIPPED */
	const char *skip;
	/* what is open when a test ends is not looked at: no sanitizer reports it */
	bool leaves;
};

/* The program's exit status. */
int alone_run(const struct alone *how, const struct alone_test *tests, int count);
/* A child of the program's, or of a test's: as fork(2). */
pid_t alone_fork(unsigned int seconds);
/* Says why; FAILED. */
int say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
