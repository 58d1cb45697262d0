/* SPDX-License-Identifier: BSD-3-Clause */
/* What has to hold whatever comes; where it does not, the fuzzer keeps the input. */
#ifndef PGR_FUZZ_MUST_H
#define PGR_FUZZ_MUST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}
#define MUST(what) must((what), #what)

#endif
