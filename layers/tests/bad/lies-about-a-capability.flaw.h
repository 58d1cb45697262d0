/* SPDX-License-Identifier: BSD-3-Clause */
/* BATCH is claimed, and flush says done, but sends nothing. */
#define FLAW_FLUSH_LIES 1
