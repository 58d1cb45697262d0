/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all loops on a layer do: poll, do what could not be done inside a callback, check the out-of-band channel at every 64th idle turn,
 * sleep in block mode where nothing came. Inlined where it is timed.
 */
#ifndef DRV_PROGRESS_H
#define DRV_PROGRESS_H

#include "engine/engine.h"
#include "traffic/check.h"

/* How long a loop that measures sleeps at a time in block mode: by so much a wake-up that was lost is late. */
#define DRV_PROGRESS_WAIT_NS UINT64_C(10000000)
#define DRV_SERVE_WAIT_NS    UINT64_C(1000000)

typedef enum cadge_keep (*drv_recv_fn)(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				       struct cadge_lend *lend);
/* Work is left over that could not be done inside a callback. */
typedef bool (*drv_due_fn)(void *arg);
/* Does it: 0, or -1 with *fail. */
typedef int (*drv_drain_fn)(void *arg, struct drv_fail *fail);

/* What every loop has. Begins its state. */
struct drv_progress {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	/* what polls call: its own sink, or that of all flows of this process */
	struct cadge_sink *sink;
	/* another flow of this process, and its work after each poll; NULL: none */
	void *other;
	drv_drain_fn drain;
	uint32_t idle;
	/* of tokens: what they hold beside the number of a buffer */
	uint64_t mark;
	/* buffers that messages leave from: which of them the layer has, and how many it has */
	bool *in_flight;
	uint32_t slots, in_flight_count;
	struct drv_check check;
	/* the first failure inside a callback */
	bool failed;
	struct drv_fail fail;
};

/* `recv` takes what comes; NULL: nothing does. `lent` has `slots` entries, and stays the caller's. */
void drv_progress_start(struct drv_progress *progress, struct drv_engine *engine, drv_recv_fn recv,
			bool *in_flight, uint32_t slots);

/* The layer failed: the next turn says so. */
void drv_progress_fail(struct drv_progress *progress, const char *what, int code)
	__attribute__((cold, noinline));

/* The sink's `sent`, set by drv_progress_start: the layer gave a buffer back. */
void drv_progress_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);

/* The layer took what lies in buffer `slot`: `code` is DONE or QUEUED. */
DRV_INLINE void drv_progress_set(struct drv_progress *progress, uint32_t slot, int code)
{
	progress->in_flight[slot] = code == CADGE_QUEUED;
	progress->in_flight_count += code == CADGE_QUEUED;
}

/*
 * After a poll that gave nothing to do. In block mode it sleeps where no event came, for `sleep_ns` at most; 0: not. 1: it
 * is time to check the out-of-band channel; 0: not yet; -1: *fail.
 */
DRV_INLINE int drv_progress_idle(struct drv_engine *engine, int events, uint64_t sleep_ns, uint32_t *idle,
				 struct drv_fail *fail)
{
	if (DRV_UNLIKELY(events < 0))
		return drv_engine_fail("poll", events, fail);
	if (sleep_ns && engine->block && events == 0)
		return drv_engine_wait(engine, sleep_ns, fail) ? -1 : 1;
	return DRV_LIKELY(++*idle & 63) ? 0 : 1;
}

/* One turn. `sleep_ns` as above. 0, or -1 with *fail. */
DRV_INLINE int drv_progress_turn(struct drv_progress *progress, uint64_t sleep_ns, struct drv_fail *fail)
{
	struct drv_engine *engine = progress->port.engine;
	const int events = engine->layer->poll(engine->ctx, progress->sink);
	int status;

	if (DRV_UNLIKELY(progress->other != NULL) && progress->drain(progress->other, fail))
		return -1;
	if (DRV_UNLIKELY(progress->failed)) {
		*fail = progress->fail;
		return -1;
	}
	status = drv_progress_idle(engine, events, sleep_ns, &progress->idle, fail);
	if (DRV_LIKELY(status <= 0))
		return status;
	return drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* The same for where a call more costs nothing: while a layer is busy, or has buffers still. */
int drv_progress_poll(struct drv_progress *progress, struct drv_fail *fail) __attribute__((noinline));

/*
 * After a failure: polls once, and for up to half a second while `waits(arg)`; NULL: while buffers are lent. Whether that is
 * over, so that nothing which it waits for can turn up any more.
 */
bool drv_progress_settle(struct drv_progress *progress, bool (*waits)(void *arg), void *arg);

/*
 * The loop of whoever works for others: polls until the out-of-band channel has a message. Compiled once for each kind of
 * work: the functions are constants where it is called, so that nothing is called inside. `begin`: before each poll;
 * NULL: nothing.
 */
DRV_INLINE int drv_poll_until_message_from(struct drv_engine *engine, struct cadge_sink *sink, void *arg,
					   void (*const begin)(void *arg), const drv_due_fn due,
					   const drv_drain_fn drain, json_t **message_out,
					   struct drv_fail *fail)
{
	const struct cadge_layer *layer = engine->layer;
	const uint32_t oob_check_mask = engine->oob_check_mask;
	uint32_t idle = 0, turns = 0;

	for (;;) {
		uint64_t now;
		int events, status;

		if (begin)
			begin(arg);
		events = layer->poll(engine->ctx, sink);
		if (DRV_UNLIKELY(due(arg)) && drain(arg, fail))
			return -1;
		if (events > 0) {
			idle = 0;
			if (DRV_LIKELY(++turns & oob_check_mask))
				continue;
		} else if (DRV_UNLIKELY(events < 0)) {
			return drv_engine_fail("poll", events, fail);
		} else if (engine->block) {
			/* also while work is due: the layer's wait ends when it has room again */
			if (drv_engine_wait(engine, DRV_SERVE_WAIT_NS * engine->idle_sleep_scale, fail))
				return -1;
			if (++idle < 2)
				continue;
		} else if (++idle & 63) {
			continue;
		}
		now = drv_clock_now(&engine->clock);
		/* the first look of an idle while only starts its time */
		if (idle == 64 && !engine->block)
			engine->oob_next = now + engine->oob_period;
		status = drv_engine_poll_oob(engine, now, message_out, fail);
		if (status)
			return status < 0 ? -1 : 0;
	}
}

DRV_INLINE int drv_poll_until_message(struct drv_engine *engine, struct cadge_sink *sink, void *arg,
				      const drv_due_fn due, const drv_drain_fn drain, json_t **message_out,
				      struct drv_fail *fail)
{
	return drv_poll_until_message_from(engine, sink, arg, NULL, due, drain, message_out, fail);
}

#endif
