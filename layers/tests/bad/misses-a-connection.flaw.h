/* SPDX-License-Identifier: BSD-3-Clause */
/* wait does not look for peers that connect. */
#define FLAW_NO_CONNECTION_WAKE 1
