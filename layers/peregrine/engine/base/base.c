/* SPDX-License-Identifier: BSD-3-Clause */
#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>

int pgr_open_fail(const struct pgr_config *config, int code, const char *format, ...)
{
	va_list list;

	if (config->error && config->error_bytes) {
		va_start(list, format);
		vsnprintf(config->error, config->error_bytes, format, list);
		va_end(list);
	}
	return code;
}

uint64_t pgr_random(void)
{
	uint64_t value = 0;

	while (getrandom(&value, sizeof(value), 0) != sizeof(value))
		;
	return value;
}

uint64_t pgr_nonce(void)
{
	uint64_t value;

	do
		value = pgr_random();
	while (!value);
	return value;
}
