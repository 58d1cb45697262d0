/* SPDX-License-Identifier: BSD-3-Clause */
/* wait leaves out connections that have ended, and poll has not told of it. */
#define FLAW_NO_END_WAKE 1
