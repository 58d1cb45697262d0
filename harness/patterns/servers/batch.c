/* SPDX-License-Identifier: BSD-3-Clause */
#include "servers/batch.h"

#include "traffic/requester_parts.h"

/* One batch, or as much of it as the layer takes; the rest waits for the next. Nothing stays behind unflushed. */
DRV_INLINE int start(struct drv_requester *requester, enum drv_form form)
{
	uint32_t taken = 0;
	int code;

	if (requester->ending || drv_requester_free(requester) < requester->batch)
		return 1;
	while (taken < requester->batch && !requester->ending &&
	       drv_requester_issue(requester, form, CADGE_MORE) > 0)
		taken++;
	code = taken ? requester->progress.port.engine->layer->flush(requester->ops[0].chan) : CADGE_DONE;
	if (code < 0)
		drv_requester_fail(requester, "flush", code);
	return taken > 0;
}

DRV_REQUESTER_LOOP(batches, start, NULL)

void drv_batch_calls(struct drv_requester *requester, uint32_t batch)
{
	requester->batch = batch;
	requester->loop = batches;
}
