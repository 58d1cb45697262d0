/* SPDX-License-Identifier: BSD-3-Clause */
/* PM on UCX keeps what makes it PM. */
#include "cadge/layer.h"
#include "tests/styles/pm.h"

/* The leaks of common/ucx.supp. */
CADGE_EXPORT const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}

int main(int argc, char **argv)
{
	return pm_conformance(argc, argv);
}
