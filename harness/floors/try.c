/* SPDX-License-Identifier: BSD-3-Clause */
/* A short exchange, to choose between variants by what they take here and now. */
#include <stdlib.h>

#include "floor.h"

#define WINDOW_NS    UINT64_C(1000000)
#define LOST_NS      (UINT64_C(20) * FLOOR_NS_PER_MS)
#define DEADLINE_NS  (UINT64_C(5) * FLOOR_NS_PER_S)
#define BUFFER_SPARE 8192u

static int try_loop(struct floor_loop *loop, uint64_t *median_ns_out)
{
	struct floor_run *run = loop->run;
	json_t *stop;
	int status;

	if (run->endpoint == 1)
		return run->floor->server(loop);
	status = run->floor->client(loop);
	stop = json_pack("{s:s}", "m", "stop");
	if (!stop)
		return drv_fail_set(&loop->fail, DRV_MEMORY, "no memory for a message");
	if (!status)
		status = drv_oob_send(run->oob, stop, drv_now_ns() + DEADLINE_NS, &loop->fail);
	json_decref(stop);
	if (loop->done)
		*median_ns_out = drv_clock_to_ns(&run->clock, loop->warmup.median);
	return status;
}

int floor_try(struct floor_run *run, uint64_t bytes, uint64_t cap_ns, uint64_t *median_ns_out,
	      struct drv_fail *fail)
{
	const struct drv_point point = {.pattern = DRV_PINGPONG,
					.request_bytes = bytes,
					.reply_bytes = bytes,
					.depth = 1,
					.duration_ns = cap_ns,
					.deadline_ns = DEADLINE_NS};
	struct floor_loop *loop = calloc(1, sizeof(*loop));
	const size_t room = (size_t)bytes + BUFFER_SPARE;
	int status = -1;

	*median_ns_out = UINT64_MAX;
	if (!loop)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a point");
	loop->run = run;
	loop->point = &point;
	loop->bytes = (size_t)bytes;
	loop->seed = drv_mix(run->launch.seed, 0);
	loop->mode = FLOOR_WARMUP;
	loop->out = floor_memory(room);
	loop->in = floor_memory(room);
	if (!loop->out || !loop->in) {
		drv_fail_set(fail, DRV_MEMORY, "no memory for messages of %zu bytes", loop->bytes);
		goto out;
	}
	/* Endpoint 1 begins before endpoint 0 does. */
	if ((run->endpoint == 1 && run->floor->begin(loop, fail)) ||
	    drv_oob_barrier(run->oob, "try", NULL, drv_now_ns() + DEADLINE_NS, fail) ||
	    (run->endpoint == 0 && run->floor->begin(loop, fail)))
		goto out;
	loop->deadline = drv_clock_now(&run->clock) + drv_clock_to_ticks(&run->clock, DEADLINE_NS);
	loop->op_deadline = drv_clock_to_ticks(&run->clock, LOST_NS);
	drv_warmup_start(&loop->warmup, drv_clock_now(&run->clock),
			 drv_clock_to_ticks(&run->clock, WINDOW_NS), drv_clock_to_ticks(&run->clock, cap_ns));
	status = try_loop(loop, median_ns_out);
	if (status)
		*fail = loop->fail;
out:
	floor_memory_free(loop->out, room);
	floor_memory_free(loop->in, room);
	free(loop);
	return status;
}
