/* SPDX-License-Identifier: BSD-3-Clause */
/* open fails, and not because something is missing here. */
#define FLAW_NO_OPEN 1
