/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rights that whoever started this process lent it to open what it measures: capabilities in its ambient set
 * (capabilities(7)), which a user's process has in no other way.
 */
#ifndef DRV_RIGHTS_H
#define DRV_RIGHTS_H

#include "base/fail.h"

/*
 * Gives up every capability of this process where some were lent; root, and a program with file capabilities, keep
 * theirs. To be called while there is one thread: capabilities are a thread's own. 0, or -1 with a reason.
 */
int drv_rights_drop(struct drv_fail *fail);

#endif
