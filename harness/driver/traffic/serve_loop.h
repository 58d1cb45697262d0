/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of an endpoint that works for others: polls the layer until the out-of-band channel has a message. To be
 * compiled once for each kind of work: `due` and `drain` are constants where it is called, so that nothing is called
 * inside.
 *
 *	due(arg):	work is left over that could not be done inside a callback
 *	drain(arg):	does it: 0, or -1 with *fail_of(arg)
 */
#ifndef DRV_SERVE_LOOP_H
#define DRV_SERVE_LOOP_H

#include "engine/engine.h"

#define DRV_SERVE_WAIT_NS UINT64_C(1000000)

typedef bool (*drv_due_fn)(void *arg);
typedef int (*drv_drain_fn)(void *arg, struct drv_fail *fail);

DRV_INLINE int drv_serve_loop(struct drv_engine *engine, struct cadge_sink *sink, void *arg,
			      const drv_due_fn due, const drv_drain_fn drain, json_t **message_out,
			      struct drv_fail *fail)
{
	const struct cadge_layer *layer = engine->layer;
	const uint32_t look_mask = engine->look_mask;
	uint32_t idle = 0, turns = 0;

	for (;;) {
		const int events = layer->poll(engine->ctx, sink);

		if (DRV_UNLIKELY(due(arg)) && drain(arg, fail))
			return -1;
		if (events > 0) {
			idle = 0;
			if (DRV_LIKELY(++turns & look_mask))
				continue;
		} else if (DRV_UNLIKELY(events < 0)) {
			return drv_engine_fail("poll", events, fail);
		} else if (engine->block) {
			/* also while work is due: the layer's wait ends when it has room again */
			if (drv_engine_wait(engine, DRV_SERVE_WAIT_NS * engine->nap_factor, fail))
				return -1;
			if (++idle < 2)
				continue;
		} else if (++idle & 63) {
			continue;
		}
		{
			const uint64_t now = drv_clock_now(&engine->clock);
			int status;

			/* the first look of an idle while only starts its time */
			if (idle == 64 && !engine->block)
				engine->oob_next = now + engine->oob_period;
			status = drv_engine_look(engine, now, message_out, fail);
			if (status)
				return status < 0 ? -1 : 0;
		}
	}
}

#endif
