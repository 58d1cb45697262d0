/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines: of a step, held to that of its launch, and which of them passed. */
#include <string.h>

#include "engine/engine.h"
#include "tap.h"

#define SECOND_NS UINT64_C(1000000000)

/* What is said when the deadline of a step of `span_ns` has passed, in a launch that ends in `launch_ns`. */
static const char *said(uint64_t span_ns, uint64_t launch_ns, struct drv_fail *fail)
{
	struct drv_engine engine = {.oob = NULL};

	memset(fail, 0, sizeof(*fail));
	drv_clock_start(&engine.clock, false);
	engine.launch_deadline_ns = drv_now_ns() + launch_ns;
	drv_engine_allow(&engine, span_ns);
	tap_ok(drv_engine_poll_oob(&engine, engine.deadline - 1, NULL, fail) == 0,
	       "before it nothing is said");
	tap_ok(drv_engine_poll_oob(&engine, engine.deadline, NULL, fail) < 0 && fail->reason == DRV_DEADLINE,
	       "it has passed");
	return fail->text;
}

int main(void)
{
	struct drv_fail fail;

	tap_ok(!strcmp(said(SECOND_NS, 9 * SECOND_NS, &fail), "the deadline of this step passed"),
	       "of a step: %s", fail.text);
	tap_ok(!strcmp(said(9 * SECOND_NS, SECOND_NS, &fail), "the deadline of this launch passed"),
	       "of a launch that leaves no more time: %s", fail.text);
	return tap_done();
}
