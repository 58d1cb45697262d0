/* SPDX-License-Identifier: BSD-3-Clause */
/* open takes memory that nothing frees. */
#define FLAW_LEAK_BYTES 65536
