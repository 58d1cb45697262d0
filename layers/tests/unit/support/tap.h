/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test Anything Protocol for one program: ok(condition, name, ...) prints a line, tap_done() the plan and the
 * exit code.
 */
#ifndef CADGE_TESTS_TAP_H
#define CADGE_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3))) static inline bool ok(bool condition, const char *format, ...)
{
	va_list list;

	printf("%s %d - ", condition ? "ok" : "not ok", ++tap_count);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
	fflush(stdout);
	tap_failed += !condition;
	return condition;
}

/* Ends the program here: a step that all others need failed. */
__attribute__((noreturn)) static inline void tap_bail(const char *reason)
{
	printf("Bail out! %s\n", reason);
	fflush(stdout);
	exit(1);
}

__attribute__((noreturn)) static inline void tap_skip_all(const char *reason)
{
	printf("1..0 # SKIP %s\n", reason);
	fflush(stdout);
	exit(77);
}

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	fflush(stdout);
	return tap_failed ? 1 : 0;
}

#endif
