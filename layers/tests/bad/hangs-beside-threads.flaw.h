/* SPDX-License-Identifier: BSD-3-Clause */
/* The first poll that delivers something never returns, and threads that take no signal are there. */
#define FLAW_POLL_HANG      1
#define FLAW_SILENT_THREADS 5
