/* SPDX-License-Identifier: BSD-3-Clause */
/* Every 997th message of a channel arrives twice. */
#define FLAW_REPEAT_EVERY 997u
