/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/self.h"

#include <stdlib.h>
#include <string.h>

#include "traffic/demux.h"

/* What one process has of two roles, beside the play of the active one. */
struct passive {
	/* first: drv_role_run.passive points to it */
	struct drv_role_run run;
	struct drv_demux demux;
};

/* Of two roles in one process the one that acts may find its reply there without having waited. */
static enum drv_sleep sleep_of(const struct drv_role_run *run, const struct drv_role_run *passive)
{
	if (run->sleep == DRV_SLEEP_UNJUDGED || passive->sleep == DRV_SLEEP_UNJUDGED)
		return DRV_SLEEP_UNJUDGED;
	return run->sleep == DRV_SLEEP_EACH ? DRV_SLEEP_IF_WAITED : run->sleep;
}

int drv_self_prepare(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct drv_role *role = drv_role_passive(run->pattern);
	struct drv_engine *engine = run->engine;
	struct cadge_sink *responder;
	struct passive *passive;

	if (!role)
		return run->role->prepare(run, fail);
	passive = calloc(1, sizeof(*passive));
	if (!passive)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	passive->run = *run;
	passive->run.role = role;
	passive->run.state = drv_zeroed(DRV_STATE_ALIGN, role->state_bytes);
	run->passive = &passive->run;
	if (!passive->run.state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	if (role->prepare(&passive->run, fail))
		return -1;
	responder = engine->sink;
	if (run->role->prepare(run, fail))
		return -1;
	run->sleep = sleep_of(run, &passive->run);
	return drv_demux_self(&passive->demux, engine, engine->sink, responder, role->drain,
			      passive->run.state, fail);
}

void drv_self_stop(struct drv_role_run *run)
{
	struct passive *passive = (struct passive *)run->passive;

	if (!passive)
		return;
	drv_demux_end(&passive->demux);
	if (passive->run.state && passive->run.role->stop)
		passive->run.role->stop(&passive->run);
	free(passive->run.state);
	free(passive);
	run->passive = NULL;
}

void drv_self_explain(const struct drv_role_run *run, struct drv_fail *fail)
{
	const struct passive *passive = (const struct passive *)run->passive;

	if (passive && passive->demux.failed)
		*fail = passive->demux.fail;
}
