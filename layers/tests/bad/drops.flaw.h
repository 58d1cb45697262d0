/* SPDX-License-Identifier: BSD-3-Clause */
/* Every 997th post of a channel is said to be done and goes nowhere. */
#define FLAW_DROP_EVERY 997u
