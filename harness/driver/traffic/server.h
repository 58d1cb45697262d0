/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: it answers the requests that arrive, each on the channel on which it came, until the out-of-band channel
 * says what comes next. It knows nothing of time: phases are told out of band.
 *
 * What it keeps account of it keeps by line: order of requests, buffers, and requests that wait for their answer. Each
 * channel has a line of its own, or all share one.
 */
#ifndef DRV_SERVER_H
#define DRV_SERVER_H

#include "engine/engine.h"
#include "launch/pattern.h"
#include "threads/jobs.h"
#include "traffic/check.h"
#include "traffic/demux.h"
#include "traffic/payload.h"
#include "traffic/progress.h"
#include "traffic/service.h"

/*
 * Bit of a token: of a second exchange on the same engine (see duet.h). A client's tokens hold the number of the
 * operation, so the numbers of such an exchange begin where that sets the bit.
 */
#define DRV_TOKEN_BESIDE  (UINT64_C(1) << 62)
#define DRV_BESIDE_NUMBER (UINT64_C(1) << 50)

enum drv_form {
	/* payload alone */
	DRV_FORM_BARE,
	/* a call over messages: payload, trailer of 16 bytes */
	DRV_FORM_EMULATED,
	/* the layer's own calls */
	DRV_FORM_NATIVE,
};

/* How the bytes of a reply come to the caller. In the order of drv_payload_words. */
enum drv_payload {
	/* as the layer likes best: its own calls place them, messages are looked at where the layer has them */
	DRV_PAYLOAD_USUAL,
	/* placed where the caller said; only by calls of the layer's own */
	DRV_PAYLOAD_SOLICITED,
	/* looked at where the layer has them */
	DRV_PAYLOAD_UNSOLICITED,
	/* the same, and copied from there to where the caller wants them */
	DRV_PAYLOAD_COPIED,
};
extern const char *const drv_payload_words[];

/* Who takes a reply. In the order of drv_reply_words; see requester.h. */
enum drv_reply {
	/* a continuation, in the delivery context */
	DRV_REPLY_CONT,
	/* a caller in another thread, which is blocked until the reply is there */
	DRV_REPLY_WAIT,
	/* a worker, to which the continuation is queued */
	DRV_REPLY_DEFER,
};
extern const char *const drv_reply_words[];

/* What both sides of an exchange agree on. */
struct drv_exchange {
	enum drv_form form;
	uint64_t request_bytes, reply_bytes;
	/* requests outstanding at a time, of one client */
	uint32_t depth;
	/* how many clients ask one server, and servers one client asks; 0 stands for 1 */
	uint32_t clients, servers;
	/* a server keeps account of each channel by itself, and so many clients ask it on each */
	bool by_channel;
	uint64_t seed;
	/* requests and replies are written anew and read whole */
	enum drv_touch touch;
	enum drv_payload payload;
	/* the second of two on one engine: it has buffers, tokens and numbers of its own */
	bool beside;
	enum drv_reply reply;
};

/* Bytes of the messages that carry so large a payload. */
static inline uint64_t drv_form_bytes(enum drv_form form, uint64_t payload_bytes)
{
	return payload_bytes + (form == DRV_FORM_EMULATED ? DRV_RPC_TRAILER_BYTES : 0);
}

/* One request that has no answer yet. */
struct drv_work {
	uint64_t id, key;
	/* the channel on which it came */
	uint32_t peer;
	struct cadge_reply_to reply_to;
};

struct drv_server;
/* Writes an answer of the pattern's own to `at`, with server->message.key in its head. */
typedef void (*drv_fill_fn)(const struct drv_server *server, uint8_t *at);

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

struct drv_server {
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
	/* a request's key says how many bytes its answer has: see drv_ask_key */
	bool sized;
	/* NULL: answers are heads, bodies and trailers */
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
uint32_t drv_server_outstanding(const struct drv_exchange *exchange);

/* Makes lines for one attempt, and enters a phase of full comparisons. It is the engine's sink from now on. */
int drv_server_start(struct drv_server *server, struct drv_engine *engine, struct drv_exchange exchange,
		     struct drv_fail *fail);
/* Legal on zeroes. */
void drv_server_stop(struct drv_server *server);

/*
 * From now on it works before it answers each request: inside the callback where it may answer there, else after poll.
 * `service` stays the caller's. `jobs`: other threads do the work, for as many requests as `work` has room for; they stay
 * the caller's. NULL: this thread does. To be called right after drv_server_start.
 */
void drv_server_work(struct drv_server *server, struct drv_service *service, struct drv_jobs *jobs);
/*
 * For a `recv` of the pattern's own: an answer with this key is due, and leaves after poll. One that waits still is not
 * wanted any more.
 */
DRV_INLINE void drv_server_due_latest(struct drv_server *server, uint64_t key)
{
	server->message.key = key;
	server->message.written = false;
	server->port.due = true;
}
/* From now on it answers all messages on this channel. To be called right after drv_server_start. */
void drv_server_answer_on(struct drv_server *server, struct cadge_chan *chan);

/* Ends a phase, whose counts it adds, and enters the next one. */
void drv_server_phase(struct drv_server *server, const struct drv_phase *phase, struct drv_counts *counts);

/* Answers what could not be answered at once. 0, or -1 with the reason. Called after poll, where something is due. */
int drv_server_drain(struct drv_server *server, struct drv_fail *fail);
/* The same of who was told by drv_server_due_latest alone. */
int drv_server_drain_latest(struct drv_server *server, struct drv_fail *fail);
static inline bool drv_server_due(const struct drv_server *server)
{
	return server->jobs ? drv_jobs_due(server->jobs) || server->failed : server->port.due;
}

/* The same for drv_serve_loop, where this thread does the work. */
DRV_INLINE bool drv_server_loop_due(void *arg)
{
	return ((const struct drv_server *)arg)->port.due;
}
DRV_INLINE int drv_server_loop_drain(void *arg, struct drv_fail *fail)
{
	return drv_server_drain(arg, fail);
}
DRV_INLINE int drv_server_loop_drain_latest(void *arg, struct drv_fail *fail)
{
	return drv_server_drain_latest(arg, fail);
}

/* That of a channel; also of one that a layer made up. */
DRV_INLINE struct drv_line *drv_server_line(const struct drv_server *server, uint32_t peer)
{
	if (DRV_LIKELY(server->lines_count == 1))
		return server->lines;
	return &server->lines[peer < server->lines_count ? peer : 0];
}

/* For who answers in another way: hands over an answer that is written, in buffer `slot` of the caller's. Codes as of post. */
DRV_INLINE int drv_server_hand_over(const struct drv_server *server, const struct drv_work *work, void *at,
				    uint64_t slot)
{
	const struct drv_engine *engine = server->port.engine;
	const struct cadge_iov iov = {at, server->answer_bytes};

	return server->exchange.form == DRV_FORM_NATIVE
		       ? engine->layer->reply(engine->ctx, &work->reply_to, &iov, 1, 0, server->mark | slot)
		       : engine->layer->post(server->chans[work->peer], &iov, 1, 0, server->mark | slot);
}
/* Its sink's `sent`, for a token that is none of the caller's. */
void drv_server_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);
/* That failed: the next drain says so. */
void drv_server_fail(struct drv_server *server, int code) __attribute__((cold, noinline));
/* A request beyond those that clients may have outstanding. Where losses are known it counts as lost. */
void drv_server_drop(struct drv_line *line) __attribute__((cold, noinline));

/* For `prepare`, of a role whose state begins with a struct drv_server. */
int drv_answerer_prepare(struct drv_play *play, struct drv_exchange exchange, struct drv_fail *fail);
/*
 * The same where one thing is asked at a time (ask.h). Each answer has as many bytes as the key of its request asks for,
 * at most `answer_max`. `recv`, of the pattern's own, calls drv_server_due_latest, and all answers have `answer_max`
 * bytes then.
 */
int drv_answerer_prepare_asked(struct drv_play *play, drv_recv_fn recv, size_t answer_max, bool touch,
			       struct drv_fail *fail);

/* As in struct drv_role, of such a role. */
void drv_answerer_stop(struct drv_play *play);
int drv_answerer_serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail);
int drv_answerer_drain(struct drv_play *play, struct drv_fail *fail);
int drv_answerer_serve_latest(struct drv_play *play, json_t **message_out, struct drv_fail *fail);
int drv_answerer_drain_latest(struct drv_play *play, struct drv_fail *fail);
void drv_answerer_phase(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out);

/* All members of a role table but name, prepare and the bounds of its channels. */
#define DRV_ANSWERER_ROLE                                                                                    \
	.state_bytes = sizeof(struct drv_server), .stop = drv_answerer_stop, .serve = drv_answerer_serve,    \
	.drain = drv_answerer_drain, .phase = drv_answerer_phase
/* The same where one thing is asked at a time, less `phase`. */
#define DRV_ANSWERER_ROLE_LATEST                                                                             \
	.stop = drv_answerer_stop, .serve = drv_answerer_serve_latest, .drain = drv_answerer_drain_latest

#endif
