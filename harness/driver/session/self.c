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

/* What one process has of two roles, beside the play of the one that acts. */
struct beside {
	/* first: drv_play.beside points to it */
	struct drv_play play;
	struct drv_demux demux;
};

/* Of two roles in one process the one that acts may find its reply there without having waited. */
static enum drv_sleep sleep_of(const struct drv_play *play, const struct drv_play *beside)
{
	if (play->sleep == DRV_SLEEP_UNJUDGED || beside->sleep == DRV_SLEEP_UNJUDGED)
		return DRV_SLEEP_UNJUDGED;
	return play->sleep == DRV_SLEEP_EACH ? DRV_SLEEP_IF_WAITED : play->sleep;
}

int drv_self_prepare(struct drv_play *play, struct drv_fail *fail)
{
	const struct drv_role *role = drv_role_beside(play->pattern);
	struct drv_engine *engine = play->engine;
	struct cadge_sink *responder;
	struct beside *beside;

	if (!role)
		return play->role->prepare(play, fail);
	beside = calloc(1, sizeof(*beside));
	if (!beside)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	beside->play = *play;
	beside->play.role = role;
	beside->play.state = drv_zeroed(role->state_bytes);
	play->beside = &beside->play;
	if (!beside->play.state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	if (role->prepare(&beside->play, fail))
		return -1;
	responder = engine->sink;
	if (play->role->prepare(play, fail))
		return -1;
	play->sleep = sleep_of(play, &beside->play);
	return drv_demux_self(&beside->demux, engine, engine->sink, responder, role->drain,
			      beside->play.state, fail);
}

void drv_self_stop(struct drv_play *play)
{
	struct beside *beside = (struct beside *)play->beside;

	if (!beside)
		return;
	drv_demux_end(&beside->demux);
	if (beside->play.state && beside->play.role->stop)
		beside->play.role->stop(&beside->play);
	free(beside->play.state);
	free(beside);
	play->beside = NULL;
}

void drv_self_explain(const struct drv_play *play, struct drv_fail *fail)
{
	const struct beside *beside = (const struct beside *)play->beside;

	if (beside && beside->demux.failed)
		*fail = beside->demux.fail;
}
