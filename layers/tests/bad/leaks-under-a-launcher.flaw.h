/* SPDX-License-Identifier: BSD-3-Clause */
/* open takes memory that nothing frees, in ranks of a launcher, which need not say how they ended. */
#define FLAW_LEAK_BYTES 65536
#define FLAW_CAPS       CADGE_CAP_ONE_INIT
