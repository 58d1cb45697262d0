/* SPDX-License-Identifier: BSD-3-Clause */
/* flush kills the process: the suite must say so and go on. */
#define FLAW_FLUSH_CRASH 1
