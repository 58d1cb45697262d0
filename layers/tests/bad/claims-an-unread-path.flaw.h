/* SPDX-License-Identifier: BSD-3-Clause */
/* Its path is said not to be read back, and to be as asked all the same. */
#define FLAW_USED "not read back: the kernel does not say"
