/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What keeps a driver from outliving its use: it dies with its parent, it ends itself at a hard deadline
 * whatever the library under test is doing, and it notices a request to stop.
 */
#ifndef DRV_WATCHDOG_H
#define DRV_WATCHDOG_H

#include <signal.h>
#include <stdint.h>

#include "base/fail.h"

/* Not 0 once SIGTERM or SIGINT came. Loops look at it. */
extern volatile sig_atomic_t drv_stop_signal;

/*
 * Starts all three: PR_SET_PDEATHSIG, a timer that calls _exit(4) when `deadline_ns` from now have passed
 * (extended by nothing) and its threads' stacks are on standard error, and handlers for SIGTERM and SIGINT. SIGPIPE is ignored.
 */
int drv_watchdog_start(uint64_t deadline_ns, struct drv_fail *fail);

/*
 * From now on the timer stores `text` (kept by reference) at `path` before it exits: for the close of a
 * library that may hang after all has been measured. NULL takes it back.
 */
void drv_watchdog_set_report(const char *path, const char *text);

/* Moves the deadline to `deadline_ns` from now, if that is sooner. */
void drv_watchdog_shorten(uint64_t deadline_ns);

#endif
