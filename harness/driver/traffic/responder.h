/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: it answers the requests that arrive, each on the channel on which it came, until the out-of-band channel
 * says what comes next. It knows nothing of time: phases are announced out of band.
 *
 * What it keeps account of it keeps by line: order of requests, buffers, and requests that wait for their answer. Each
 * channel has a line of its own, or all share one.
 */
#ifndef DRV_RESPONDER_H
#define DRV_RESPONDER_H

#include "engine/engine.h"
#include "launch/pattern.h"
#include "threads/workers.h"
#include "traffic/check.h"
#include "traffic/demux.h"
#include "traffic/exchange.h"
#include "traffic/payload.h"
#include "traffic/progress.h"
#include "measure/service.h"

/*
 * Bit of a token: of a second exchange on the same engine (see two_flows.h). A client's tokens hold the number of the
 * operation, so the numbers of such an exchange begin where that sets the bit.
 */
#define DRV_TOKEN_FLOW_1  (UINT64_C(1) << 62)
#define DRV_FLOW_1_NUMBER (UINT64_C(1) << 50)

/* One request that has no answer yet. */
struct drv_request {
	uint64_t id, key;
	/* the channel on which it came */
	uint32_t peer;
	struct cadge_reply_to reply_to;
};

struct drv_responder;
struct drv_worker_pool;
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
	struct drv_request *requests;
	uint32_t requests_head, requests_tail;
	/* index in `requests` of the request whose work is done and which has no answer yet, plus one */
	uint32_t served;
};

struct drv_responder {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct drv_line *lines;
	uint32_t lines_count;
	/* of each line: sizes of its rings, less one; buffers, and where the next one begins */
	uint32_t free_mask, requests_mask, buffers;
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
	bool reuse_last;
	/* what tokens hold beside the number of a buffer */
	uint64_t mark;
	/* where bodies are written: what all replies have in common, and the one in progress */
	struct drv_message message;

	bool failed;
	/* what happened inside a callback */
	struct drv_fail fail;

	/*
	 * What it does before it answers: inside the callback where it may answer there, else after poll. The caller's, set
	 * after drv_responder_start. NULL: nothing.
	 */
	struct drv_service *service;
	/* other threads that work for its requests: see below; NULL: none */
	struct drv_worker_pool *pool;
	void (*collect)(struct drv_worker_pool *pool);
	/* with a pool: requests may be waiting for this thread's answer */
	bool waits;
};

/* Requests that one line may have at a time. */
uint32_t drv_responder_outstanding(const struct drv_exchange *exchange);

/* Makes lines for one attempt, and enters a phase of full comparisons. It is the engine's sink from now on. */
int drv_responder_start(struct drv_responder *responder, struct drv_engine *engine,
			struct drv_exchange exchange, struct drv_fail *fail);
/* Legal on zeroes. */
void drv_responder_stop(struct drv_responder *responder);

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

/*
 * Answers what could not be answered at once, of a struct drv_responder. 0, or -1 with the reason. Called after poll, where
 * something is due.
 */
int drv_responder_drain(void *responder, struct drv_fail *fail);
/* The same of who was told by drv_responder_due_latest alone. */
int drv_responder_drain_latest(void *responder, struct drv_fail *fail);
/* For drv_poll_until_message: whether something is. */
DRV_INLINE bool drv_responder_loop_due(void *arg)
{
	return ((const struct drv_responder *)arg)->port.due;
}

/* That of a channel; also of one that a layer made up. */
DRV_INLINE struct drv_line *drv_responder_line(const struct drv_responder *responder, uint32_t peer)
{
	if (DRV_LIKELY(responder->lines_count == 1))
		return responder->lines;
	return &responder->lines[peer < responder->lines_count ? peer : 0];
}

/* For who answers in another way: hands over an answer that is written, in buffer `slot` of the caller's. Codes as of post. */
DRV_INLINE int drv_responder_hand_over(const struct drv_responder *responder,
				       const struct drv_request *request, void *at, uint64_t slot)
{
	const struct drv_engine *engine = responder->port.engine;
	const struct cadge_iov iov = {at, responder->answer_bytes};

	return responder->exchange.form == DRV_FORM_NATIVE
		       ? engine->layer->reply(engine->ctx, &request->reply_to, &iov, 1, 0,
					      responder->mark | slot)
		       : engine->layer->post(responder->chans[request->peer], &iov, 1, 0,
					     responder->mark | slot);
}
/* Its sink's `sent`, for a token that is none of the caller's. */
void drv_responder_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);
/* Writes and hands over an answer. False: the layer has no room now. */
bool drv_responder_answer(struct drv_responder *responder, const struct drv_request *request);
/* That failed: the next drain says so. */
void drv_responder_fail(struct drv_responder *responder, int code) __attribute__((cold, noinline));
/* A request beyond those that clients may have outstanding. Where losses are known it counts as lost. */
void drv_responder_drop(struct drv_line *line) __attribute__((cold, noinline));

/* The next buffer that is ours; there is one. */
DRV_INLINE uint32_t drv_responder_take_buffer(const struct drv_responder *responder, struct drv_line *line,
					      uint8_t **at_out)
{
	const uint32_t index = line->free_ring[line->free_head++ & responder->free_mask];

	*at_out = line->replies + (size_t)index * responder->stride;
	return index;
}

/* It is the next one. */
DRV_INLINE void drv_responder_put_back(const struct drv_responder *responder, struct drv_line *line,
				       uint32_t index)
{
	line->free_ring[--line->free_head & responder->free_mask] = index;
}

/* Writes an answer of the pattern's own, of responder->answer_bytes, to `at`, with responder->message.key in its head. */
typedef void (*drv_write_answer_fn)(const struct drv_responder *responder, uint8_t *at);

/*
 * Hands over the answer that is due; a busy layer is asked again with the same buffer. `write_answer`, a constant: NULL:
 * answers are heads and bodies.
 */
DRV_INLINE int drv_responder_drain_with(struct drv_responder *responder,
					const drv_write_answer_fn write_answer, struct drv_fail *fail)
{
	const struct drv_engine *engine = responder->port.engine;
	struct drv_line *line = responder->lines;
	uint32_t index;
	uint8_t *at;
	int code;

	if (DRV_UNLIKELY(responder->failed)) {
		*fail = responder->fail;
		return -1;
	}
	if (DRV_UNLIKELY(line->free_head == line->free_tail))
		return 0;
	index = drv_responder_take_buffer(responder, line, &at);
	if (write_answer) {
		const struct cadge_iov iov = {at, responder->answer_bytes};

		write_answer(responder, at);
		code = engine->layer->post(responder->chans[0], &iov, 1, 0, responder->mark | index);
	} else {
		responder->message.at = at;
		code = drv_message_post(engine, responder->chans[0], &responder->message,
					responder->mark | index);
	}
	if (DRV_UNLIKELY(code == CADGE_BUSY)) {
		drv_responder_put_back(responder, line, index);
		return 0;
	}
	responder->port.due = false;
	if (code == CADGE_QUEUED)
		return 0;
	line->free_ring[line->free_tail++ & responder->free_mask] = index;
	if (DRV_LIKELY(code == CADGE_DONE))
		return 0;
	drv_responder_fail(responder, code);
	*fail = responder->fail;
	return -1;
}

/*
 * A responder whose requests other threads work for: its workers, or its role's other threads by a queue that all of them look
 * at (the policies of workers.h). The thread that owns the context passes a request on and gives the answer to the layer.
 *
 * With copies, a worker checks a copy of the request, does what the service does and writes the answer. Without, the owner
 * checks the request as it arrives and writes the answer, and a worker does only what the pattern says.
 *
 * Requests of one channel that several threads work for may be answered in another order than they came: it counts them.
 */
/* Bit of a token: of an answer that another thread has written. */
#define DRV_TOKEN_POOL (UINT64_C(1) << 61)

/* After so many polls in a row that brought requests a thread passes some on, where it may answer in place as well. */
#define DRV_POOL_BUSY_POLLS 8u

/* One request that was passed on, by job. */
struct drv_pool_request {
	struct drv_request request;
	/* of its channel's requests */
	uint64_t place;
	/* with copies, of the engine's memory: the payload, and where the answer is written */
	uint8_t *copy, *reply;
	/* with copies: head, and once somebody has worked for it body, are what the client wrote */
	bool good;
};

struct drv_worker_pool {
	struct drv_responder *responder;
	/* what the responder's sink did before it passed anything on */
	struct cadge_sink in_place;
	struct drv_jobs jobs;
	struct drv_pool_request *requests;
	bool copies;
	/* by channel: requests that came, and the last of them that was answered, plus one */
	struct {
		uint64_t came, answered;
	} lines[DRV_PEERS_MAX];
	/* requests that came, as of the last look; looks in a row that found more */
	uint64_t came, came_before;
	uint32_t busy_polls;
	/* answers out of order */
	uint64_t reordered;
};

/*
 * From now on the responder, which was started, passes requests on. `work` does in a worker what is to be done for
 * pool->requests[job]; NULL: with copies. `common`: the queue of the shared policy, zeroed, the caller's until all have
 * stopped. drv_responder_drain then works for what other threads passed on as well, and answers what others have worked
 * for. To be ended with drv_worker_pool_stop in any case, before the responder.
 */
int drv_worker_pool_start(struct drv_worker_pool *pool, struct drv_responder *responder,
			  enum drv_policy policy, drv_worker_fn work, void *arg, struct drv_queue *common,
			  struct drv_fail *fail);
/* Legal on zeroes. */
void drv_worker_pool_stop(struct drv_worker_pool *pool);

/* Passes a request on; false: there is no room for it. */
bool drv_worker_pool_pass(struct drv_worker_pool *pool, const void *data, size_t bytes,
			  const struct drv_request *request);
/* Whether there is something for drv_responder_drain. */
static inline bool drv_worker_pool_due(const struct drv_worker_pool *pool)
{
	return drv_jobs_due(&pool->jobs) || pool->responder->waits || pool->responder->failed;
}

/* For `prepare`, of a role whose state begins with a struct drv_responder. */
int drv_responder_role_prepare(struct drv_role_run *run, struct drv_exchange exchange, struct drv_fail *fail);
/*
 * The same where one thing is asked at a time (ask.h). Each answer has as many bytes as the key of its request asks for,
 * at most `answer_max`. `recv`, of the pattern's own, calls drv_responder_due_latest, and all answers have `answer_max`
 * bytes then.
 */
int drv_responder_role_prepare_asked(struct drv_role_run *run, drv_recv_fn recv, size_t answer_max,
				     bool touch, struct drv_fail *fail);

/* As in struct drv_role, of such a role. */
void drv_responder_role_stop(struct drv_role_run *run);
int drv_responder_role_serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail);
int drv_responder_role_serve_latest(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail);
void drv_responder_role_phase(struct drv_role_run *run, const struct drv_phase *phase,
			      struct drv_counts *counts_out);

/* All members of a role table but name, prepare and the bounds of its channels. */
#define DRV_RESPONDER_ROLE                                                                                   \
	.state_bytes = sizeof(struct drv_responder), .stop = drv_responder_role_stop,                        \
	.serve = drv_responder_role_serve, .drain = drv_responder_drain, .phase = drv_responder_role_phase
/* The same where one thing is asked at a time, less `phase`. */
#define DRV_RESPONDER_ROLE_LATEST                                                                            \
	.stop = drv_responder_role_stop, .serve = drv_responder_role_serve_latest,                           \
	.drain = drv_responder_drain_latest

#endif
