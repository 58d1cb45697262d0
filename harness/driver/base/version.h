/* SPDX-License-Identifier: BSD-3-Clause */
/* What this program is. The values come from the build. */
#ifndef DRV_VERSION_H
#define DRV_VERSION_H

const char *drv_version(void);  /* "0.1.0" */
const char *drv_revision(void); /* "1a2b3c4", "1a2b3c4-dirty" or "unknown" */
const char *drv_compiler(void); /* "gcc 12.2.0", and the build profile when it is not release */

#endif
