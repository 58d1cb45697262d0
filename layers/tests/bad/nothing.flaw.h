/* SPDX-License-Identifier: BSD-3-Clause */
/* No flaw: this one must pass the whole suite, or the others prove nothing. */
