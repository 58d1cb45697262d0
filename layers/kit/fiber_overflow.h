/* SPDX-License-Identifier: BSD-3-Clause */
/* Guards of stacks: what is said when one is touched. */
#ifndef CADGE_KIT_FIBER_OVERFLOW_H
#define CADGE_KIT_FIBER_OVERFLOW_H

#include <stdint.h>

struct cadge_guard {
	struct cadge_guard *next;
	uintptr_t from, to;
	char message[128]; /* a line */
};

/* From then on until forget. By the thread whose fiber it is. */
void cadge_guard_watch(struct cadge_guard *guard);
void cadge_guard_forget(struct cadge_guard *guard);

#endif
