/* SPDX-License-Identifier: BSD-3-Clause */
/* The rare paths of a loop on a layer: its start, its failures, and how it settles after them. */
#include "traffic/progress.h"

#define SETTLE_NS UINT64_C(500000000)

void drv_progress_start(struct drv_progress *progress, struct drv_engine *engine, drv_recv_fn recv,
			bool *in_flight, uint32_t slots)
{
	drv_port_start(&progress->port, engine);
	if (recv)
		progress->port.sink.recv = recv;
	progress->port.sink.sent = drv_progress_on_sent;
	progress->sink = &progress->port.sink;
	progress->in_flight = in_flight;
	progress->slots = slots;
	progress->check.reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
}

void drv_progress_fail(struct drv_progress *progress, const char *what, int code)
{
	if (!progress->failed)
		drv_engine_fail(what, code, &progress->fail);
	progress->failed = progress->port.due = true;
}

void drv_progress_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_progress *progress = (struct drv_progress *)sink;
	const uint64_t slot = token ^ progress->mark;

	(void)peer;
	if (DRV_UNLIKELY(slot >= progress->slots || !progress->in_flight[slot])) {
		drv_check_wrong(&progress->check,
				"a completion for token %016" PRIx64 " that is not outstanding", token);
		return;
	}
	progress->in_flight[slot] = false;
	progress->in_flight_count--;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		drv_progress_fail(progress, "post", code);
}

int drv_progress_poll(struct drv_progress *progress, struct drv_fail *fail)
{
	return drv_progress_turn(progress, DRV_PROGRESS_WAIT_NS, fail);
}

bool drv_progress_settle(struct drv_progress *progress, bool (*waits)(void *arg), void *arg)
{
	struct drv_engine *engine = progress->port.engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	struct drv_fail ignored;

	/* once at least: a layer whose poll fails is of no use any more, whatever is outstanding */
	do
		if (engine->layer->poll(engine->ctx, progress->sink) < 0 ||
		    (progress->other && progress->drain(progress->other, &ignored)))
			return false;
	while ((waits ? waits(arg) : progress->in_flight_count > 0) && !engine->down_code &&
	       drv_now_ns() < until_ns);
	return waits ? !waits(arg) : progress->in_flight_count == 0;
}
