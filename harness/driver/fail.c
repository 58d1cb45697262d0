/* SPDX-License-Identifier: BSD-3-Clause */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[DRV_REASONS] = {
	[DRV_OK] = "OK",
	[DRV_ARGUMENT] = "ARGUMENT",
	[DRV_NO_CAP] = "NO_CAP",
	[DRV_NO_WAIT] = "NO_WAIT",
	[DRV_MSG_TOO_LARGE] = "MSG_TOO_LARGE",
	[DRV_DEPTH_TOO_DEEP] = "DEPTH_TOO_DEEP",
	[DRV_NODE_LACKS] = "NODE_LACKS",
	[DRV_BUILD_ABSENT] = "BUILD_ABSENT",
	[DRV_TRANSPORT] = "TRANSPORT",
	[DRV_PERMISSION] = "PERMISSION",
	[DRV_MEMORY] = "MEMORY",
	[DRV_PORT] = "PORT",
	[DRV_PEER_LOST] = "PEER_LOST",
	[DRV_DEADLINE] = "DEADLINE",
	[DRV_LIBRARY] = "LIBRARY",
	[DRV_VERSION_MISMATCH] = "VERSION_MISMATCH",
	[DRV_TOKEN] = "TOKEN",
	[DRV_PROTOCOL] = "PROTOCOL",
	[DRV_STOPPED] = "STOPPED",
	[DRV_CHECK] = "CHECK",
	[DRV_SYSTEM] = "SYSTEM",
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
	return (unsigned)reason < DRV_REASONS ? names[reason] : "UNKNOWN";
}

enum drv_reason drv_reason_from_name(const char *name)
{
	for (int reason = DRV_OK + 1; name && reason < DRV_REASONS; reason++)
		if (!strcmp(name, names[reason]))
			return (enum drv_reason)reason;
	return DRV_PROTOCOL;
}

int drv_reason_is_refusal(enum drv_reason reason)
{
	switch (reason) {
	case DRV_NO_CAP:
	case DRV_NO_WAIT:
	case DRV_MSG_TOO_LARGE:
	case DRV_DEPTH_TOO_DEEP:
	case DRV_NODE_LACKS:
	case DRV_BUILD_ABSENT:
	case DRV_TRANSPORT:
	case DRV_PERMISSION: return 1;
	default: return 0;
	}
}

int drv_reason_exit(enum drv_reason reason)
{
	switch (reason) {
	case DRV_OK: return 0;
	case DRV_ARGUMENT: return 2;
	case DRV_NO_CAP:
	case DRV_NO_WAIT:
	case DRV_MSG_TOO_LARGE:
	case DRV_DEPTH_TOO_DEEP:
	case DRV_NODE_LACKS:
	case DRV_BUILD_ABSENT:
	case DRV_TRANSPORT:
	case DRV_PERMISSION:
	case DRV_MEMORY:
	case DRV_PORT:
	case DRV_LIBRARY: return 3;
	case DRV_PEER_LOST:
	case DRV_DEADLINE:
	case DRV_VERSION_MISMATCH:
	case DRV_TOKEN:
	case DRV_PROTOCOL:
	case DRV_STOPPED:
	case DRV_SYSTEM: return 4;
	default: return 70;
	}
}
