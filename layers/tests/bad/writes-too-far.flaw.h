/* SPDX-License-Identifier: BSD-3-Clause */
/* limits writes the whole struct that it was compiled with, whatever its caller has. */
#define FLAW_WHOLE_STRUCT 1
