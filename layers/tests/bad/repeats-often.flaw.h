/* SPDX-License-Identifier: BSD-3-Clause */
/* Every third message of a channel arrives twice, so that no test gets far. */
#define FLAW_REPEAT_EVERY 3u
