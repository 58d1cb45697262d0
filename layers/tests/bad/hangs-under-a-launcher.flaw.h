/* SPDX-License-Identifier: BSD-3-Clause */
/* The first poll that delivers something never returns, in ranks that a launcher started. */
#define FLAW_POLL_HANG 1
#define FLAW_CAPS      CADGE_CAP_ONE_INIT
