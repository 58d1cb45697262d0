/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/self.h"

#include <stdlib.h>
#include <string.h>

#include "traffic/demux.h"

/* What one process has of two roles, beside the role run of the requester. */
struct second {
	/* first: drv_role_run.responder points to it */
	struct drv_role_run run;
	struct drv_demux demux;
};

/* Of two roles in one process the requester may find its reply there without having waited. */
static enum drv_sleep sleep_of(const struct drv_role_run *run, const struct drv_role_run *second)
{
	if (run->sleep == DRV_SLEEP_UNJUDGED || second->sleep == DRV_SLEEP_UNJUDGED)
		return DRV_SLEEP_UNJUDGED;
	return run->sleep == DRV_SLEEP_EACH ? DRV_SLEEP_IF_WAITED : run->sleep;
}

int drv_self_prepare(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct drv_role *role = drv_role_responder(run->pattern);
	struct drv_engine *engine = run->engine;
	struct cadge_sink *responder;
	struct second *second;

	if (!role)
		return run->role->prepare(run, fail);
	second = calloc(1, sizeof(*second));
	if (!second)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	second->run = *run;
	second->run.role = role;
	second->run.state = drv_zeroed(DRV_STATE_ALIGN, role->state_bytes);
	run->responder = &second->run;
	if (!second->run.state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	if (role->prepare(&second->run, fail))
		return -1;
	responder = engine->sink;
	if (run->role->prepare(run, fail))
		return -1;
	run->sleep = sleep_of(run, &second->run);
	return drv_demux_self(&second->demux, engine, engine->sink, responder, role->drain, second->run.state,
			      fail);
}

void drv_self_stop(struct drv_role_run *run)
{
	struct second *second = (struct second *)run->responder;

	if (!second)
		return;
	drv_demux_end(&second->demux);
	if (second->run.state && second->run.role->stop)
		second->run.role->stop(&second->run);
	free(second->run.state);
	free(second);
	run->responder = NULL;
}

void drv_self_explain(const struct drv_role_run *run, struct drv_fail *fail)
{
	const struct second *second = (const struct second *)run->responder;

	if (second && second->demux.failed)
		*fail = second->demux.fail;
}
