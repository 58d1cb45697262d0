/* SPDX-License-Identifier: BSD-3-Clause */
/* For programs whose ranks use UCX: whole stacks, by which wire/ucx/ucx.supp knows UCX's leaks. */
#include "cadge/layer.h"

CADGE_EXPORT const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}
