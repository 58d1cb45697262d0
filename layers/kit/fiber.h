/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A second stack for a function that has to stop in its middle, as a handler of Fast Messages does in FM_receive. A
 * switch saves the registers that a call preserves and nothing else: no signal mask, so no system call (x86-64 and
 * aarch64; elsewhere ucontext, with one). A fiber belongs to one thread. Below its stack lies a guard of the same size, so
 * that a frame as large as the stack meets it as well: whoever touches it ends the process by SIGSEGV, with a line on stderr
 * that says which stack was too small (kit/fiber_overflow.c).
 */
#ifndef CADGE_KIT_FIBER_H
#define CADGE_KIT_FIBER_H

#include <stdbool.h>
#include <stddef.h>

struct cadge_fiber;

/*
 * stack_bytes is rounded up to pages; `whose` is for the line on stderr ("a handler"). NULL: out of memory. Stack memory is used
 * up only as far as it is touched.
 */
struct cadge_fiber *cadge_fiber_create(size_t stack_bytes, const char *whose);
/* A suspended one may be destroyed: the rest of its function never runs. NULL is legal. */
void cadge_fiber_destroy(struct cadge_fiber *fiber);

/*
 * Runs `function` until it yields or returns. Not from inside the fiber. Where its last function has yielded, the rest
 * of that never runs.
 */
void cadge_fiber_start(struct cadge_fiber *fiber, void (*function)(void *arg), void *arg);
/* Goes on after the last yield, until the next one or the end. The fiber must be suspended, and not run this. */
void cadge_fiber_resume(struct cadge_fiber *fiber);
/* Back to whoever started or resumed it. Only from inside its function. */
void cadge_fiber_yield(struct cadge_fiber *fiber);
/* Whether its function has yielded and not returned. */
bool cadge_fiber_is_suspended(const struct cadge_fiber *fiber);

#endif
