/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When an operation over something unreliable is lost: after 100 times what is usual, within reason. What is lost is
 * counted, not timed; what comes after all is late: counted, dropped. One rule for layers and floors.
 */
#ifndef DRV_LOSS_H
#define DRV_LOSS_H

#include <stdint.h>

#define DRV_LOSS_MAX_NS UINT64_C(200000000)
/* longer than the scheduler keeps a process waiting */
#define DRV_LOSS_MIN_NS UINT64_C(20000000)

/* After a loss of messages without identity nothing more is sent until so long nothing came in, at most so long. */
#define DRV_QUIET_NS     UINT64_C(2000000)
#define DRV_QUIET_MAX_NS UINT64_C(20000000)

/* The deadline of an operation once a warm-up found the usual time; `median_ns` is 0 when it found none. */
static inline uint64_t drv_loss_deadline_ns(uint64_t median_ns)
{
	if (!median_ns || median_ns > DRV_LOSS_MAX_NS / 100)
		return DRV_LOSS_MAX_NS;
	return median_ns * 100 < DRV_LOSS_MIN_NS ? DRV_LOSS_MIN_NS : median_ns * 100;
}

#endif
