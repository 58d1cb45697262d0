/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why something could not be done: a code for programs and one sentence for people. Functions that can fail
 * for a reason worth telling take a `struct drv_fail *`, fill it, and return -1; they leave it alone when
 * they succeed.
 */
#ifndef DRV_FAIL_H
#define DRV_FAIL_H

#include <stddef.h>

enum drv_reason {
	DRV_OK,
	DRV_ARGUMENT,         /* command line or launch file: exit 2 */
	DRV_NO_CAP,           /* refused: the layer does not have what the point needs */
	DRV_NO_WAIT,          /* refused: the layer cannot wait as asked */
	DRV_MSG_TOO_LARGE,    /* refused: a message over the layer's limit */
	DRV_DEPTH_TOO_DEEP,   /* refused: more outstanding than the layer takes */
	DRV_NODE_LACKS,       /* refused: a kernel feature or library part is missing on this node */
	DRV_BUILD_ABSENT,     /* refused: the layer was not built */
	DRV_TRANSPORT,        /* refused: the transport or device asked for is not there */
	DRV_PERMISSION,       /* refused: the kernel forbids it */
	DRV_MEMORY,           /* failed: out of memory, locked memory or shared memory */
	DRV_PORT,             /* failed: no free port */
	DRV_PEER_LOST,        /* failed: the other endpoint is gone */
	DRV_DEADLINE,         /* failed: a step took too long */
	DRV_LIBRARY,          /* failed: the layer or its library broke */
	DRV_VERSION_MISMATCH, /* failed: the two endpoints are different builds */
	DRV_TOKEN,            /* failed: the two endpoints hold different tokens */
	DRV_PROTOCOL,         /* failed: the endpoints disagree, or speak nonsense */
	DRV_STOPPED,          /* failed: told to stop by a signal or by the other endpoint */
	DRV_CHECK,            /* unsound: measured, but a check did not hold */
	DRV_SYSTEM,           /* failed: a system call failed */
	DRV_REASONS,
};

struct drv_fail {
	enum drv_reason reason;
	char text[512]; /* one sentence, NUL-terminated */
};

/*
 * Fills `fail` and returns -1, so that `return drv_fail_set(...)` reads well. An over-long sentence is cut.
 */
int drv_fail_set(struct drv_fail *fail, enum drv_reason reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The reason's name as it stands in results, e.g. "PEER_LOST". Never NULL; "OK" for DRV_OK. */
const char *drv_reason_name(enum drv_reason reason);

/* The reason with that name, or DRV_PROTOCOL when there is none (a name that came from a peer). */
enum drv_reason drv_reason_from_name(const char *name);

/* 1 when the reason means "cannot be done here" (a refusal), 0 when it means "broke" (a failure). */
int drv_reason_is_refusal(enum drv_reason reason);

/* The exit status of a driver that ends for this reason: 0, 2, 3, 4 or 70. */
int drv_reason_exit(enum drv_reason reason);

#endif
