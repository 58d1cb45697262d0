/* SPDX-License-Identifier: BSD-3-Clause */
/* See rights.h. */
#include "session/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_ambient_rights(void)
{
	/* the kernel answers -1 for a capability that it does not know */
	for (int capability = 0; capability < 64; capability++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1)
			return true;
	return false;
}

int drv_rights_drop(struct drv_fail *fail)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (!has_ambient_rights())
		return 0;
	/* without permitted and inheritable ones the kernel empties the ambient set as well */
	if (syscall(SYS_capset, &header, none) < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "rights that were lent cannot be given up: %s",
				    strerror(errno));
	return 0;
}
