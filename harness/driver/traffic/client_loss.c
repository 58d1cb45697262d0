/* SPDX-License-Identifier: BSD-3-Clause */
/* What is lost, and what comes late: over an unreliable layer each operation has a deadline. */
#include "traffic/client_parts.h"
#include "traffic/loss.h"

void drv_client_stray(struct drv_client *client, const char *what, size_t bytes)
{
	if (!client->reliable && client->late < client->lost)
		client->late++;
	else
		drv_check_wrong(&client->check, "%s of %zu bytes: no operation outstanding", what, bytes);
}

/* After a loss of messages without identity: nothing more is sent until what is on its way has come in. */
static int quieten(struct drv_client *client, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;
	const uint64_t quiet_ns = DRV_QUIET_NS;
	const uint64_t latest_ns = drv_now_ns() + DRV_QUIET_MAX_NS;
	uint64_t until_ns = drv_now_ns() + quiet_ns;

	while (drv_now_ns() < until_ns && drv_now_ns() < latest_ns) {
		const uint64_t late = client->late;
		const int events = engine->layer->poll(engine->ctx, client->sink);

		if (events < 0)
			return drv_engine_fail("poll", events, fail);
		if (client->late != late)
			until_ns = drv_now_ns() + quiet_ns;
		if (events == 0 && engine->block && drv_engine_wait(engine, quiet_ns, fail))
			return -1;
	}
	return 0;
}

/* Over an unreliable layer: operations past their deadline are lost, their slots start again. */
static int expire(struct drv_client *client, uint64_t now, struct drv_fail *fail)
{
	const struct drv_engine *engine = client->port.engine;
	const bool bare = client->exchange.form == DRV_FORM_BARE;

	for (uint32_t index = 0; index < client->exchange.depth; index++) {
		struct drv_slot *slot = &client->slots[index];

		if (!slot->waiting || now - slot->start < client->op_deadline)
			continue;
		slot->waiting = false;
		client->lost++;
		if (client->taker.on) {
			drv_taker_give(client, index, DRV_TAKER_LOST | (slot->lent ? DRV_TAKER_SENDING : 0));
			continue;
		}
		if (bare && quieten(client, fail))
			return -1;
		slot->start = drv_clock_now(&engine->clock);
		if (!slot->lent)
			drv_client_make_ready(client, index);
	}
	if (client->taker.on) /* who takes replies looks at the time */
		return 0;
	if (client->mode == DRV_MODE_WARMUP && drv_warmup_expired(&client->warmup, now))
		client->ending = true;
	if (client->mode >= DRV_MODE_MEASURE && client->mode != DRV_MODE_PACED && now >= client->end)
		client->ending = true;
	return 0;
}

int drv_client_look(struct drv_client *client, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);

	if (!client->reliable && expire(client, now, fail))
		return -1;
	return drv_engine_look(engine, now, NULL, fail);
}

int drv_client_close(struct drv_client *client, struct drv_fail *fail)
{
	return client->lost > client->late ? quieten(client, fail) : 0;
}
