/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls in batches (BATCH): so many with MORE, then flush. The requester waits until as many of its slots are free as a batch
 * has.
 */
#ifndef DRV_BATCH_H
#define DRV_BATCH_H

#include "traffic/requester.h"

/* From now on it calls in batches, but for verification; a batch has no more calls than may be outstanding. */
void drv_batch_calls(struct drv_requester *requester, uint32_t batch);

#endif
