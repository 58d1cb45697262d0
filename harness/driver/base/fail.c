/* SPDX-License-Identifier: BSD-3-Clause */
/* Reasons: names, exit statuses, and filling them in. */
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int exit_status, refusal;
} reasons[DRV_REASONS] = {[DRV_OK] = {"OK", 0, 0},
#define ENTRY(name, status, refusal) [DRV_##name] = {#name, status, refusal},
			  DRV_REASON_LIST(ENTRY)
#undef ENTRY
};

int drv_fail_set(struct drv_fail *fail, enum drv_reason reason, const char *format, ...)
{
	/* through a buffer of its own, because arguments may point into fail->text */
	char text[sizeof(fail->text)];
	va_list arguments;

	va_start(arguments, format);
	if (vsnprintf(text, sizeof(text), format, arguments) < 0)
		text[0] = '\0';
	va_end(arguments);
	fail->reason = reason;
	memcpy(fail->text, text, strlen(text) + 1);
	return -1;
}

const char *drv_reason_name(enum drv_reason reason)
{
	return (unsigned)reason < DRV_REASONS ? reasons[reason].name : "UNKNOWN";
}

enum drv_reason drv_reason_from_name(const char *name)
{
	for (int reason = DRV_OK + 1; name && reason < DRV_REASONS; reason++)
		if (!strcmp(name, reasons[reason].name))
			return (enum drv_reason)reason;
	return DRV_PROTOCOL;
}

int drv_reason_is_refusal(enum drv_reason reason)
{
	return (unsigned)reason < DRV_REASONS && reasons[reason].refusal;
}

int drv_errno_exhausted(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

int drv_reason_exit(enum drv_reason reason)
{
	return (unsigned)reason < DRV_REASONS ? reasons[reason].exit_status : 70;
}
