/* SPDX-License-Identifier: BSD-3-Clause */
/* A poll that finds nothing sleeps for 50 us. */
#define FLAW_SLEEP_NS 50000
