/* SPDX-License-Identifier: BSD-3-Clause */
/* One bit of the last byte of every 997th message is turned. */
#define FLAW_FLIP_EVERY 997u
