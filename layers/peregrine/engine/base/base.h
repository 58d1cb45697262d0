/* SPDX-License-Identifier: BSD-3-Clause */
/* For core and wires alike: hints to the compiler, random numbers, why an endpoint does not open. */
#ifndef PGR_BASE_H
#define PGR_BASE_H

#include <stdint.h>

#include "../pgr.h"

#define PGR_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define PGR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define PGR_COLD                __attribute__((cold, noinline))

/* From the kernel; may be 0. */
uint64_t pgr_random(void);
/* Writes a sentence into config->error and returns `code`. */
int pgr_open_fail(const struct pgr_config *config, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
