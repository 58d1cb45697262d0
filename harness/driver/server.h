/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The serving side of pingpong, rpc and stream: answers or counts whatever arrives until the out-of-band
 * channel says what comes next. It knows nothing of time: phases are the client's, told out of band.
 */
#ifndef DRV_SERVER_H
#define DRV_SERVER_H

#include "engine.h"
#include "verify.h"

enum drv_form {
	DRV_FORM_BARE,     /* pingpong: payload alone */
	DRV_FORM_EMULATED, /* rpc over messages: 16-byte header, payload */
	DRV_FORM_NATIVE,   /* rpc by the layer's own calls */
	DRV_FORM_STREAM,   /* one direction */
};

/* The emulated RPC header, little endian: id (8 bytes), kind (4), magic (4). */
#define DRV_RPC_MAGIC   UINT32_C(0x67644143)
#define DRV_RPC_REQUEST 1u
#define DRV_RPC_REPLY   2u

/* The control message of a stream: magic, kind and run, count; 24 bytes, or 32 where the stream's messages
 * have 24. */
#define DRV_STREAM_MAGIC   UINT64_C(0x6d61657274534443)
#define DRV_STREAM_END     1u
#define DRV_STREAM_CONFIRM 2u

static inline size_t drv_control_bytes(uint64_t message_bytes)
{
	return message_bytes == 24 ? 32 : 24;
}

/* One request that has no answer yet. */
struct drv_work {
	uint64_t id, key;
	struct cadge_reply_to reply_to;
};

struct drv_server {
	struct drv_port port;
	const struct drv_point *point;
	enum drv_form form;
	uint64_t seed;
	bool in_sink;   /* answers from inside the callback */
	bool by_number; /* requests must come in the order of their numbers */
	bool reliable;
	bool full;      /* this phase compares whole payloads */
	uint64_t phase; /* tells the full phases apart */

	uint8_t *memory;  /* of the engine's pool */
	uint8_t *replies; /* first buffer's payload */
	size_t stride;
	uint32_t buffers;    /* how many */
	uint32_t *free_ring; /* indices of buffers that are ours; power of two */
	uint32_t free_head, free_tail, free_mask;
	struct drv_work *work; /* ring of requests without an answer */
	uint32_t work_head, work_tail, work_mask;

	uint64_t next_number;
	uint64_t executions, key_sum; /* since the attempt began */
	uint64_t checked, full_checked, mismatches;

	/* stream */
	uint32_t run;            /* serial of the run in progress */
	uint64_t run_executions; /* messages of this run */
	uint64_t run_expected;   /* told by the end message; UINT64_MAX before */
	bool confirm_due;
	uint64_t confirm_count;

	bool failed;
	struct drv_fail fail; /* what happened inside a callback */
	char mismatch[160];   /* the first one, in words */
};

/* Makes buffers for one attempt. `form` follows from the point and what both ends can. */
int drv_server_start(struct drv_server *server, struct drv_engine *engine, const struct drv_point *point,
		     uint64_t seed, struct drv_fail *fail);
void drv_server_stop(struct drv_server *server);

/* Enters a phase: full comparison or not; runs are numbered by the client. */
void drv_server_phase(struct drv_server *server, bool full, uint64_t phase);

/* Serves until a message comes from the client: *message_out is a new reference. */
int drv_server_run(struct drv_server *server, json_t **message_out, struct drv_fail *fail);

/* Answers what could not be answered at once. 0, or -1. Called after poll. */
int drv_server_drain(struct drv_server *server);

/* The form of a point between ends that can `both`. */
enum drv_form drv_form_of(const struct drv_point *point, const struct drv_ability *both);

/* Callbacks that the one-process sink hands on. */
enum cadge_keep drv_server_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend);
void drv_server_on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			const struct cadge_reply_to *reply_to);
void drv_server_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);

#endif
