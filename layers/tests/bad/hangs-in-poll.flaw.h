/* SPDX-License-Identifier: BSD-3-Clause */
/* The first poll that delivers something never returns. */
#define FLAW_POLL_HANG 1
