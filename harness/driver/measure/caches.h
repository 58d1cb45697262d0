/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRV_CACHES_H
#define DRV_CACHES_H

#include <stdint.h>

/*
 * How many bytes of data all caches that the first processor reaches hold together, by what the kernel says below `folder`
 * (DRV_CACHES_FOLDER). 0: it says nothing, or not of all of them.
 */
#define DRV_CACHES_FOLDER "/sys/devices/system/cpu/cpu0/cache"
uint64_t drv_caches_bytes(const char *folder);

#endif
