/* SPDX-License-Identifier: BSD-3-Clause */
/* limits promise at most 64 outstanding operations, and 4096 are accepted. */
#define FLAW_QUEUE_ENTRIES 4096u
