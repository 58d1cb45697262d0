/* SPDX-License-Identifier: BSD-3-Clause */
/* flush never returns: the suite must say so and go on. */
#define FLAW_FLUSH_HANG 1
