/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of a stream. Messages leave as fast as the layer takes them, with at most `depth` of them
 * lent to the layer at a time. A run ends with an end message that carries the count; it is over when the
 * receiver has confirmed, through the layer, how many messages it has: over a reliable layer that is all of
 * them.
 */
#ifndef DRV_STREAM_H
#define DRV_STREAM_H

#include "client.h"

struct drv_stream {
	struct drv_port port;
	const struct drv_point *point;
	uint64_t seed;
	bool reliable;
	uint8_t *memory;   /* of the engine's pool */
	uint8_t *messages; /* first slot's payload */
	uint8_t *control;  /* the end message */
	size_t stride;
	bool *lent;    /* by slot; the last entry is the control message */
	uint32_t slot; /* next to use */
	uint32_t lents, idle;
	uint64_t next_number;
	uint64_t posted, key_sum; /* since the attempt began */
	uint64_t run_posted;
	uint32_t run;
	bool confirmed, failed;
	uint64_t confirmed_count; /* messages that the receiver had when it confirmed */
	uint64_t confirmed_at;    /* ticks */
	uint64_t mismatches, waits;
	struct drv_warmup warmup;
	struct drv_server *server; /* place self */
	struct cadge_sink *sink;
	struct drv_fail fail;
	char mismatch[160];
};

int drv_stream_start(struct drv_stream *stream, struct drv_engine *engine, const struct drv_point *point,
		     uint64_t seed, struct drv_server *server, struct drv_fail *fail);
void drv_stream_stop(struct drv_stream *stream);

/*
 * As for the client. Verify sends one message from each slot (as many as drv_full_messages) with a full
 * body.
 */
int drv_stream_verify(struct drv_stream *stream, uint64_t phase, struct drv_fail *fail);
int drv_stream_warmup(struct drv_stream *stream, uint64_t cap_ns, struct drv_fail *fail);
int drv_stream_measure(struct drv_stream *stream, struct drv_attempt *attempt, struct drv_fail *fail);
bool drv_stream_settle(struct drv_stream *stream);

/* Callback that the one-process sink hands on. */
enum cadge_keep drv_stream_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend);
void drv_stream_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);

#endif
