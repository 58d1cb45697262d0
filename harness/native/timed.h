/* SPDX-License-Identifier: BSD-3-Clause */
/* What the plain programs share: the clock, and the median of what it gave. */
#ifndef NATIVE_TIMED_H
#define NATIVE_TIMED_H

#include <stdlib.h>
#include <time.h>

static inline double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median_of(double *values, long count)
{
	qsort(values, (size_t)count, sizeof(*values), by_value);
	return values[count / 2];
}

#endif
