/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/self.h"

#include <stdlib.h>
#include <string.h>

#include "traffic/demux.h"

#define STATE_ALIGN 4096u

void *drv_zeroed(size_t bytes)
{
	const size_t whole = (bytes + STATE_ALIGN) / STATE_ALIGN * STATE_ALIGN;
	void *made = aligned_alloc(STATE_ALIGN, whole);

	return made ? memset(made, 0, whole) : NULL;
}

/* What one process has of two roles, beside the play of the active one. */
struct passive {
	/* first: drv_play.passive points to it */
	struct drv_play play;
	struct drv_demux demux;
};

/* Of two roles in one process the one that acts may find its reply there without having waited. */
static enum drv_sleep sleep_of(const struct drv_play *play, const struct drv_play *passive)
{
	if (play->sleep == DRV_SLEEP_UNJUDGED || passive->sleep == DRV_SLEEP_UNJUDGED)
		return DRV_SLEEP_UNJUDGED;
	return play->sleep == DRV_SLEEP_EACH ? DRV_SLEEP_IF_WAITED : play->sleep;
}

int drv_self_prepare(struct drv_play *play, struct drv_fail *fail)
{
	const struct drv_role *role = drv_role_passive(play->pattern);
	struct drv_engine *engine = play->engine;
	struct cadge_sink *responder;
	struct passive *passive;

	if (!role)
		return play->role->prepare(play, fail);
	passive = calloc(1, sizeof(*passive));
	if (!passive)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	passive->play = *play;
	passive->play.role = role;
	passive->play.state = drv_zeroed(role->state_bytes);
	play->passive = &passive->play;
	if (!passive->play.state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	if (role->prepare(&passive->play, fail))
		return -1;
	responder = engine->sink;
	if (play->role->prepare(play, fail))
		return -1;
	play->sleep = sleep_of(play, &passive->play);
	return drv_demux_self(&passive->demux, engine, engine->sink, responder, role->drain,
			      passive->play.state, fail);
}

void drv_self_stop(struct drv_play *play)
{
	struct passive *passive = (struct passive *)play->passive;

	if (!passive)
		return;
	drv_demux_end(&passive->demux);
	if (passive->play.state && passive->play.role->stop)
		passive->play.role->stop(&passive->play);
	free(passive->play.state);
	free(passive);
	play->passive = NULL;
}

void drv_self_explain(const struct drv_play *play, struct drv_fail *fail)
{
	const struct passive *passive = (const struct passive *)play->passive;

	if (passive && passive->demux.failed)
		*fail = passive->demux.fail;
}
