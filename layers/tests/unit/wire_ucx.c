/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire on UCX keeps what common/wire.h says. */
#include "cadge/layer.h"
#include "tests/wire/wire_tests.h"

/* The leaks of common/ucx.supp. */
CADGE_EXPORT const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}

int main(int argc, char **argv)
{
	return wire_conformance(argc, argv);
}
