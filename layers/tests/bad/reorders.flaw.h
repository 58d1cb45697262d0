/* SPDX-License-Identifier: BSD-3-Clause */
/* Every 997th message of a channel arrives after the next one. */
#define FLAW_SWAP_EVERY 997u
