/* SPDX-License-Identifier: BSD-3-Clause */
/* No flaw: what open takes is freed, but the allocator keeps it. That is no growth. */
#define FLAW_HOLES 1
