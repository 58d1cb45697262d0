/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One attempt at a point. Endpoint 0 coordinates: it tells all others what comes next, and each answers.
 *
 *	begin -> VERIFY -> phase -> WARMUP -> phase -> MEASURE -> phase -> VERIFY -> finish
 *
 * "begin" is answered with "ready", "phase", "finish" and "cancel" with "counts". Where other endpoints act as well,
 * "act" starts a step at all of them, and "acted" is the answer.
 */
#ifndef DRV_ATTEMPT_H
#define DRV_ATTEMPT_H

#include "launch/pattern.h"
#include "session/result.h"

/* How long the end of an attempt may take after its deadline. */
#define DRV_GRACE_NS UINT64_C(2000000000)

/*
 * Endpoint 0: makes one attempt that was granted. The outcome is in `attempt` (status, reason, all counts). 0: the
 * launch can go on; -1: it cannot, and attempt->fail says why.
 */
int drv_attempt_run(struct drv_engine *engine, size_t index, struct drv_attempt *attempt,
		    struct drv_phases *phases);

/* All others: takes part in attempts until endpoint 0 says that it is done. */
int drv_serve(struct drv_engine *engine, uint64_t deadline_ns, struct drv_fail *fail);

#endif
