/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why something could not be done: a code for programs and one sentence for people. Functions that can fail
 * for a reason worth telling take a `struct drv_fail *`, fill it, and return -1; they leave it alone when
 * they succeed.
 */
#ifndef DRV_FAIL_H
#define DRV_FAIL_H

#include <stddef.h>

/*
 * Every reason: X(name, exit status, whether it is a refusal). The one list of them in C; `cadge-driver patterns --json`
 * prints it, and the store compares it with its own. A refusal means "cannot be done here", all others mean "broke".
 */
#define DRV_REASON_LIST(X)                                                                                   \
	/* command line or launch file */                                                                    \
	X(ARGUMENT, 2, 0)                                                                                    \
	/* the layer does not have what the point needs */                                                   \
	X(NO_CAP, 3, 1)                                                                                      \
	/* the layer cannot wait as asked */                                                                 \
	X(NO_WAIT, 3, 1)                                                                                     \
	/* a message over the layer's limit */                                                               \
	X(MSG_TOO_LARGE, 3, 1)                                                                               \
	/* more outstanding than the layer takes */                                                          \
	X(DEPTH_TOO_DEEP, 3, 1)                                                                              \
	/* a kernel feature or library part is missing on this node */                                       \
	X(NODE_LACKS, 3, 1)                                                                                  \
	/* the layer was not built */                                                                        \
	X(BUILD_ABSENT, 3, 1)                                                                                \
	/* the transport or device asked for is not there */                                                 \
	X(TRANSPORT, 3, 1)                                                                                   \
	/* the kernel forbids it */                                                                          \
	X(PERMISSION, 3, 1)                                                                                  \
	/* out of memory, locked memory or shared memory */                                                  \
	X(MEMORY, 3, 0)                                                                                      \
	/* no free port */                                                                                   \
	X(PORT, 3, 0)                                                                                        \
	/* another endpoint is gone */                                                                       \
	X(PEER_LOST, 4, 0)                                                                                   \
	/* a step took too long */                                                                           \
	X(DEADLINE, 4, 0)                                                                                    \
	/* the layer or its library broke */                                                                 \
	X(LIBRARY, 3, 0)                                                                                     \
	/* the endpoints are different builds */                                                             \
	X(VERSION_MISMATCH, 4, 0)                                                                            \
	/* the endpoints hold different tokens */                                                            \
	X(TOKEN, 4, 0)                                                                                       \
	/* the endpoints disagree, or a message makes no sense */                                            \
	X(PROTOCOL, 4, 0)                                                                                    \
	/* asked to stop by a signal or by another endpoint */                                               \
	X(STOPPED, 4, 0)                                                                                     \
	/* unsound: measured, but a check did not hold */                                                    \
	X(CHECK, 70, 0)                                                                                      \
	/* a system call failed */                                                                           \
	X(SYSTEM, 4, 0)

#define DRV_REASON_ENTRY_(name, status, refusal) DRV_##name,
enum drv_reason { DRV_OK, DRV_REASON_LIST(DRV_REASON_ENTRY_) DRV_REASONS };
#undef DRV_REASON_ENTRY_

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

/* 1 where a system call failed for want of descriptors or memory: to try it again at once is to spin. */
int drv_errno_exhausted(int error);

/* The exit status of a driver that ends for this reason: 0, 2, 3, 4 or 70. */
int drv_reason_exit(enum drv_reason reason);

#endif
