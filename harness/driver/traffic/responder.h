/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: it answers the requests that arrive, each on the channel on which it came, until the out-of-band channel
 * says what comes next. It knows nothing of time: phases are told out of band.
 *
 * What it keeps account of it keeps by line: order of requests, buffers, and requests that wait for their answer. Each
 * channel has a line of its own, or all share one.
 */
#ifndef DRV_RESPONDER_H
#define DRV_RESPONDER_H

#include "engine/engine.h"
#include "launch/pattern.h"
#include "threads/jobs.h"
#include "traffic/check.h"
#include "traffic/demux.h"
#include "traffic/exchange.h"
#include "traffic/payload.h"
#include "traffic/progress.h"
#include "measure/service.h"

/*
 * Bit of a token: of a second exchange on the same engine (see duet.h). A client's tokens hold the number of the
 * operation, so the numbers of such an exchange begin where that sets the bit.
 */
#define DRV_TOKEN_BESIDE  (UINT64_C(1) << 62)
#define DRV_BESIDE_NUMBER (UINT64_C(1) << 50)

/* One request that has no answer yet. */
struct drv_work {
	uint64_t id, key;
	/* the channel on which it came */
	uint32_t peer;
	struct cadge_reply_to reply_to;
};

struct drv_responder;
/* Writes an answer of the pattern's own to `at`, with responder->message.key in its head. */
typedef void (*drv_fill_fn)(const struct drv_responder *responder, uint8_t *at);

/* What belongs to one channel, or to all of them where they share a line. */
struct drv_line {
	struct drv_check check;
	/* of the engine's pool; the first buffer's payload */
	uint8_t *replies;
	/* indices of buffers that are ours; power of two */
	uint32_t *free_ring;
	uint32_t free_head, free_tail;
	/* the buffer whose body is written, plus one, and for which request, where the layer was busy; else 0 */
	uint32_t written;
	uint64_t written_key;
	/* ring of requests without an answer */
	struct drv_work *work;
	uint32_t work_head, work_tail;
	/* index in `work` of the request whose work is done and which has no answer yet, plus one */
	uint32_t served;
};

struct drv_responder {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct drv_line *lines;
	uint32_t lines_count;
	/* of each line: sizes of its rings, less one; buffers, and where the next one begins */
	uint32_t free_mask, work_mask, buffers;
	size_t stride;
	/* on which a message that came on a channel is answered, by that channel's number */
	struct cadge_chan *chans[DRV_PEERS_MAX];
	struct drv_exchange exchange;
	/* of a request and an answer, with their trailers */
	size_t request_bytes, answer_bytes;
	/* answers from inside the callback */
	bool in_sink;
	/*
	 * Large answers that nobody writes: the buffer that came back last leaves next. It is in the cache, as the only
	 * one of native tools is.
	 */
	bool hot;
	/* of roles that are asked one thing at a time; NULL: answers are heads and bodies */
	drv_fill_fn fill;
	/* what tokens hold beside the number of a buffer */
	uint64_t mark;
	/* where bodies are written: what all replies have in common, and the one in progress */
	struct drv_message message;

	bool failed;
	/* what happened inside a callback */
	struct drv_fail fail;

	/* what it does before it answers; NULL: nothing */
	struct drv_service *service;
	/* of other threads that do it, by index in `work` of the only line, which is no ring then; NULL: this thread does */
	struct drv_jobs *jobs;
};

/* Requests that one line may have at a time. */
uint32_t drv_responder_outstanding(const struct drv_exchange *exchange);

/* Makes lines for one attempt, and enters a phase of full comparisons. It is the engine's sink from now on. */
int drv_responder_start(struct drv_responder *responder, struct drv_engine *engine,
			struct drv_exchange exchange, struct drv_fail *fail);
/* Legal on zeroes. */
void drv_responder_stop(struct drv_responder *responder);

/*
 * From now on it works before it answers each request: inside the callback where it may answer there, else after poll.
 * `service` stays the caller's. `jobs`: other threads do the work, for as many requests as `work` has room for; they stay
 * the caller's. NULL: this thread does. To be called right after drv_responder_start.
 */
void drv_responder_work(struct drv_responder *responder, struct drv_service *service, struct drv_jobs *jobs);
/*
 * For a `recv` of the pattern's own: an answer with this key is due, and leaves after poll. One that waits still is not
 * wanted any more.
 */
DRV_INLINE void drv_responder_due_latest(struct drv_responder *responder, uint64_t key)
{
	responder->message.key = key;
	responder->message.written = false;
	responder->port.due = true;
}
/* From now on it answers all messages on this channel. To be called right after drv_responder_start. */
void drv_responder_answer_on(struct drv_responder *responder, struct cadge_chan *chan);

/* Ends a phase, whose counts it adds, and enters the next one. */
void drv_responder_phase(struct drv_responder *responder, const struct drv_phase *phase,
			 struct drv_counts *counts);

/* Answers what could not be answered at once. 0, or -1 with the reason. Called after poll, where something is due. */
int drv_responder_drain(struct drv_responder *responder, struct drv_fail *fail);
/* The same of who was told by drv_responder_due_latest alone. */
int drv_responder_drain_latest(struct drv_responder *responder, struct drv_fail *fail);
static inline bool drv_responder_due(const struct drv_responder *responder)
{
	return responder->jobs ? drv_jobs_due(responder->jobs) || responder->failed : responder->port.due;
}

/* The same for drv_serve_loop, where this thread does the work. */
DRV_INLINE bool drv_responder_loop_due(void *arg)
{
	return ((const struct drv_responder *)arg)->port.due;
}
DRV_INLINE int drv_responder_loop_drain(void *arg, struct drv_fail *fail)
{
	return drv_responder_drain(arg, fail);
}
DRV_INLINE int drv_responder_loop_drain_latest(void *arg, struct drv_fail *fail)
{
	return drv_responder_drain_latest(arg, fail);
}

/* That of a channel; also of one that a layer made up. */
DRV_INLINE struct drv_line *drv_responder_line(const struct drv_responder *responder, uint32_t peer)
{
	if (DRV_LIKELY(responder->lines_count == 1))
		return responder->lines;
	return &responder->lines[peer < responder->lines_count ? peer : 0];
}

/* For who answers in another way: hands over an answer that is written, in buffer `slot` of the caller's. Codes as of post. */
DRV_INLINE int drv_responder_hand_over(const struct drv_responder *responder, const struct drv_work *work,
				       void *at, uint64_t slot)
{
	const struct drv_engine *engine = responder->port.engine;
	const struct cadge_iov iov = {at, responder->answer_bytes};

	return responder->exchange.form == DRV_FORM_NATIVE
		       ? engine->layer->reply(engine->ctx, &work->reply_to, &iov, 1, 0,
					      responder->mark | slot)
		       : engine->layer->post(responder->chans[work->peer], &iov, 1, 0,
					     responder->mark | slot);
}
/* Its sink's `sent`, for a token that is none of the caller's. */
void drv_responder_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);
/* That failed: the next drain says so. */
void drv_responder_fail(struct drv_responder *responder, int code) __attribute__((cold, noinline));
/* A request beyond those that clients may have outstanding. Where losses are known it counts as lost. */
void drv_responder_drop(struct drv_line *line) __attribute__((cold, noinline));

/* For `prepare`, of a role whose state begins with a struct drv_responder. */
int drv_responder_role_prepare(struct drv_play *play, struct drv_exchange exchange, struct drv_fail *fail);
/*
 * The same where one thing is asked at a time (ask.h). Each answer has as many bytes as the key of its request asks for,
 * at most `answer_max`. `recv`, of the pattern's own, calls drv_responder_due_latest, and all answers have `answer_max`
 * bytes then.
 */
int drv_responder_role_prepare_asked(struct drv_play *play, drv_recv_fn recv, size_t answer_max, bool touch,
				     struct drv_fail *fail);

/* As in struct drv_role, of such a role. */
void drv_responder_role_stop(struct drv_play *play);
int drv_responder_role_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail);
int drv_responder_role_drain(struct drv_play *play, struct drv_fail *fail);
int drv_responder_role_serve_latest(struct drv_play *play, json_t **message_out, struct drv_fail *fail);
int drv_responder_role_drain_latest(struct drv_play *play, struct drv_fail *fail);
void drv_responder_role_phase(struct drv_play *play, const struct drv_phase *phase,
			      struct drv_counts *counts_out);

/* All members of a role table but name, prepare and the bounds of its channels. */
#define DRV_RESPONDER_ROLE                                                                                   \
	.state_bytes = sizeof(struct drv_responder), .stop = drv_responder_role_stop,                        \
	.serve = drv_responder_role_serve, .drain = drv_responder_role_drain,                                \
	.phase = drv_responder_role_phase
/* The same where one thing is asked at a time, less `phase`. */
#define DRV_RESPONDER_ROLE_LATEST                                                                            \
	.stop = drv_responder_role_stop, .serve = drv_responder_role_serve_latest,                           \
	.drain = drv_responder_role_drain_latest

#endif
