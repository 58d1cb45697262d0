/* SPDX-License-Identifier: BSD-3-Clause */
/* Active Messages on UCX keep what makes them Active Messages. */
#include "cadge/layer.h"
#include "tests/styles/am.h"

/* The leaks of common/ucx.supp. */
CADGE_EXPORT const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}

int main(int argc, char **argv)
{
	return am_conformance(argc, argv);
}
