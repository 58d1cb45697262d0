/* SPDX-License-Identifier: BSD-3-Clause */
/* One role in one attempt: its state, its steps, what it counted. */
#include "play.h"

#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "verify.h"

#define STATE_ALIGN 4096u

uint64_t drv_attempt_seed(const struct drv_launch *launch, size_t index)
{
	return drv_mix(launch->seed, index + 1);
}

const struct drv_role *drv_play_role(const struct drv_engine *engine, const struct drv_point *point)
{
	if (engine->self)
		return point->pattern->self;
	return drv_role_find(point->pattern, engine->launch->endpoints[engine->endpoint].role);
}

int drv_play_start(struct drv_play *play, struct drv_engine *engine, size_t index, struct drv_record *record,
		   struct drv_fail *fail)
{
	const struct drv_point *point = &engine->launch->points[index];
	const struct drv_role *role = drv_play_role(engine, point);
	const size_t bytes = (role->state_bytes + STATE_ALIGN) / STATE_ALIGN * STATE_ALIGN;

	*play = (struct drv_play){
		.engine = engine,
		.pattern = point->pattern,
		.role = role,
		.parameters = point->parameters,
		.seed = drv_attempt_seed(engine->launch, index),
		.duration_ns = point->duration_ns,
		.record = record,
		.state = aligned_alloc(STATE_ALIGN, bytes),
	};
	if (!play->state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an attempt");
	memset(play->state, 0, bytes);
	return role->prepare(play, fail);
}

void drv_play_stop(struct drv_play *play)
{
	if (!play->state)
		return;
	play->role->stop(play);
	free(play->state);
	play->state = NULL;
}

int drv_play_step(struct drv_play *play, enum drv_step step, uint64_t serial, struct drv_usage *usage_out,
		  struct drv_fail *fail)
{
	const struct drv_role *role = play->role;
	struct drv_usage before, after;
	int status;

	memset(usage_out, 0, sizeof(*usage_out));
	switch (step) {
	case DRV_STEP_VERIFY: return role->verify(play, serial, fail);
	case DRV_STEP_WARMUP: return role->warmup(play, drv_warmup_cap_ns(play->duration_ns), fail);
	case DRV_STEP_MEASURE: break;
	}
	drv_usage_read(&before);
	status = role->measure(play, fail);
	drv_usage_read(&after);
	*usage_out = drv_usage_since(&before, &after);
	return status;
}

void drv_play_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	memset(counts_out, 0, sizeof(*counts_out));
	play->role->phase(play, phase, counts_out);
	drv_usage_read(&counts_out->usage);
}

bool drv_play_settle(struct drv_play *play)
{
	return !play->role->settle || play->role->settle(play);
}

int drv_play_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;
	const struct drv_idle *idle = drv_engine_idle(engine);

	if (play->role->serve)
		return play->role->serve(play, message_out, fail);
	return drv_oob_receive(engine->oob, idle, engine->deadline_ns, message_out, fail);
}
