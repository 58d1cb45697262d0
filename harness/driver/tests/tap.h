/* SPDX-License-Identifier: BSD-3-Clause */
/* The Test Anything Protocol for C programs: one line a check, exit status 0, 1 or 77 (nothing could be
 * tested). */
#ifndef DRV_TESTS_TAP_H
#define DRV_TESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count, tap_failures;

/* One check. `what` says what holds, printf-like. Returns `good`. */
static inline int __attribute__((format(printf, 2, 3), unused)) tap_ok(int good, const char *what, ...)
{
	va_list arguments;

	tap_failures += !good;
	printf("%sok %d - ", good ? "" : "not ", ++tap_count);
	va_start(arguments, what);
	vprintf(what, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
	return good;
}

/* Of how many cases one is tried: the variable CADGE_TEST_SHARE, which the short form of the tests sets; else all are. */
static inline unsigned __attribute__((unused)) tap_share(void)
{
	const char *share = getenv("CADGE_TEST_SHARE");
	const int cases = share ? atoi(share) : 0;

	return cases > 0 ? (unsigned)cases : 1;
}

/* Ends the program's output; main returns its value. */
static inline int __attribute__((unused)) tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failures ? 1 : 0;
}

#endif
