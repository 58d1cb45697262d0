/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sleep that another thread ends: for the slots wait and event over a library that has no descriptor to poll, but calls
 * back on threads of its own. Whoever is awake costs the waking thread no system call.
 *
 *	wait:     cadge_sleeper_arm(s); return has_work(ctx) ? CADGE_DONE : cadge_sleeper_sleep(s, timeout_ns);
 *	event:    cadge_sleeper_arm(s); if (has_work(ctx)) return CADGE_BUSY; *fd_out = s->fd, *due_ns_out = UINT64_MAX;
 *	callback: publish the work, then cadge_sleeper_wake(s)
 */
#ifndef CADGE_KIT_SLEEPER_H
#define CADGE_KIT_SLEEPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kit/adapter.h"

struct cadge_sleeper {
	int fd; /* readable: somebody woke it */
	atomic_bool armed;
};

/* DONE or E_MEMORY. */
static inline int cadge_sleeper_open(struct cadge_sleeper *sleeper)
{
	atomic_init(&sleeper->armed, false);
	sleeper->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return sleeper->fd < 0 ? CADGE_E_MEMORY : CADGE_DONE;
}

/* Once no thread will wake it any more. */
static inline void cadge_sleeper_close(struct cadge_sleeper *sleeper)
{
	if (sleeper->fd >= 0)
		close(sleeper->fd);
	sleeper->fd = -1;
}

/* From any thread, and from the handler of a signal. What was written before is seen by whoever wakes. */
static inline void cadge_sleeper_wake(struct cadge_sleeper *sleeper)
{
	/* Either arm comes first, and we see it, or the work does, and has_work after arm sees that. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&sleeper->armed, memory_order_relaxed) &&
	    atomic_exchange(&sleeper->armed, false))
		(void)eventfd_write(sleeper->fd, 1);
}

/*
 * By the owner alone. From now on wakes end the sleep; look for work once more behind it. The descriptor is emptied
 * before: a wake that were taken from it afterwards would leave us asleep and not armed, and later wakes without effect.
 */
static inline void cadge_sleeper_arm(struct cadge_sleeper *sleeper)
{
	eventfd_t wakes;

	if (!atomic_load_explicit(&sleeper->armed, memory_order_relaxed))
		(void)eventfd_read(sleeper->fd, &wakes); /* of the sleep before; EAGAIN: nobody woke it */
	atomic_store(&sleeper->armed, true);
	atomic_thread_fence(memory_order_seq_cst);
}

/* By the owner, after arm: until a wake, timeout_ns or a signal. It may end early. DONE or E_LIBRARY. */
static inline int cadge_sleeper_sleep(struct cadge_sleeper *sleeper, uint64_t timeout_ns)
{
	struct pollfd pollfd = {.fd = sleeper->fd, .events = POLLIN};

	return cadge_sleep(&pollfd, 1, timeout_ns);
}

#endif
