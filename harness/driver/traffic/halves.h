/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Place self, for patterns with loops of their own: one sink for the side that asks and the side that answers, which
 * tells each event whose it is. Answers carry the seed inverted in their heads, and tokens of the answering side a bit.
 */
#ifndef DRV_HALVES_H
#define DRV_HALVES_H

#include "engine/engine.h"
#include "traffic/payload.h"

#define DRV_TOKEN_ANSWER (UINT64_C(1) << 63)

struct drv_halves {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_sink *asking, *answering;
	uint64_t seed;
};

static inline enum cadge_keep drv_halves_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
						 size_t bytes, struct cadge_lend *lend)
{
	const struct drv_halves *halves = (const struct drv_halves *)sink;
	const bool is_answer =
		bytes >= DRV_HEAD_BYTES && drv_load64((const uint8_t *)data + 8) == ~halves->seed;
	struct cadge_sink *side = is_answer ? halves->asking : halves->answering;

	return side->recv(side, peer, data, bytes, lend);
}

static inline void drv_halves_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	const struct drv_halves *halves = (const struct drv_halves *)sink;
	struct cadge_sink *side = token & DRV_TOKEN_ANSWER ? halves->answering : halves->asking;

	side->sent(side, peer, token, code);
}

/* From now on it is the engine's sink. Both sides have been started, and stay the caller's. */
static inline void drv_halves_start(struct drv_halves *halves, struct drv_engine *engine,
				    struct cadge_sink *asking, struct cadge_sink *answering, uint64_t seed)
{
	drv_port_start(&halves->port, engine);
	halves->port.sink.recv = drv_halves_on_recv;
	halves->port.sink.sent = drv_halves_on_sent;
	halves->asking = asking;
	halves->answering = answering;
	halves->seed = seed;
	engine->sink = &halves->port.sink;
}

#endif
