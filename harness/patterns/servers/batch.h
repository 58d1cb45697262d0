/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns whose client hands over calls in batches (BATCH): so many with MORE, then flush. It waits
 * until as many of its slots are free as a batch has.
 */
#ifndef DRV_BATCH_H
#define DRV_BATCH_H

#include "traffic/client.h"

/* As drv_client_measure, of calls alone; a batch has no more of them than may be outstanding. */
int drv_batch_measure(struct drv_client *client, uint32_t batch, uint64_t duration_ns,
		      struct drv_record *record, struct drv_fail *fail);

#endif
