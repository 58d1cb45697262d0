/* SPDX-License-Identifier: BSD-3-Clause */
/* The adapter as one unit: it is compiled once for each flaw, and most of that time goes into the headers. */
#include "base.c"
#include "receive.c"
#include "send.c"
