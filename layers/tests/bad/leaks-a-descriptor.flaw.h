/* SPDX-License-Identifier: BSD-3-Clause */
/* close forgets the listening socket. */
#define FLAW_LEAK 1
