/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that exchange requests and replies: the serving side. It answers whatever arrives on one
 * channel, or with several clients on the channel on which it came, until the out-of-band channel says what comes next.
 * It knows nothing of time: phases are told out of band.
 */
#ifndef DRV_SERVER_H
#define DRV_SERVER_H

#include "traffic/demux.h"
#include "engine/engine.h"
#include "threads/jobs.h"
#include "traffic/check.h"
#include "traffic/service.h"
#include "traffic/payload.h"

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

struct drv_server {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	/* on which a message that came on a channel is answered, by that channel's number */
	struct cadge_chan *chans[DRV_PEERS_MAX];
	struct drv_exchange exchange;
	/* answers from inside the callback */
	bool in_sink;
	/* what tokens hold beside the number of a buffer */
	uint64_t mark;
	struct drv_check check;

	/* of the engine's pool; the first buffer's payload */
	uint8_t *replies;
	size_t stride;
	uint32_t buffers;
	/* indices of buffers that are ours; power of two */
	uint32_t *free_ring;
	uint32_t free_head, free_tail, free_mask;
	/*
	 * Large answers that nobody writes: the buffer that came back last leaves next. It is in the cache, as the only
	 * one of native tools is.
	 */
	bool hot;
	/* where bodies are written: what all replies have in common, and the one in progress */
	struct drv_message message;
	/* the buffer whose body is written, plus one, and for which request, where the layer was busy; else 0 */
	uint32_t written;
	uint64_t written_key;
	/* ring of requests without an answer */
	struct drv_work *work;
	uint32_t work_head, work_tail, work_mask;

	bool failed;
	/* what happened inside a callback */
	struct drv_fail fail;

	/* what it does before it answers; NULL: nothing */
	struct drv_service *service;
	/* of other threads that do it, by index in `work`, which is no ring then; NULL: this thread does */
	struct drv_jobs *jobs;
	/* index in `work` of the request whose work is done and which has no answer yet, plus one */
	uint32_t served;
};

/* Requests that a server may have on its channel at a time. */
uint32_t drv_server_outstanding(const struct drv_exchange *exchange);

/* Makes buffers for one attempt. */
int drv_server_start(struct drv_server *server, struct drv_engine *engine, struct drv_exchange exchange,
		     struct drv_fail *fail);
/*
 * The same for one of several channels of a context, see cluster.h. `replies`: drv_server_bytes of the engine's pool, the
 * caller's, for the length of the attempt.
 */
int drv_server_start_on(struct drv_server *server, struct drv_engine *engine, uint32_t channel,
			uint8_t *replies, struct drv_exchange exchange, struct drv_fail *fail);
size_t drv_server_bytes(const struct drv_exchange *exchange);
/*
 * From now on it works before it answers each request: inside the callback where it may answer there, else after poll.
 * To be called right after drv_server_start. `service` stays the caller's.
 */
void drv_server_serve(struct drv_server *server, struct drv_service *service);
/* From now on it answers all messages on this one. To be called right after drv_server_start. */
void drv_server_answer_on(struct drv_server *server, struct cadge_chan *chan);
/* The same where other threads do the work: `jobs`, as many as `work` has room for; they stay the caller's. */
void drv_server_serve_by(struct drv_server *server, struct drv_service *service, struct drv_jobs *jobs);
void drv_server_stop(struct drv_server *server);

/* Enters a phase: full comparison or not, and which. */
void drv_server_phase(struct drv_server *server, bool full, uint64_t phase);

/* Serves until a message comes from out of band: *message_out is a new reference. */
int drv_server_run(struct drv_server *server, json_t **message_out, struct drv_fail *fail);

/* Answers what could not be answered at once. 0, or -1 with the reason. Called after poll. */
int drv_server_drain(struct drv_server *server, struct drv_fail *fail);

/* Callbacks that a sink of several servers hands on. */
enum cadge_keep drv_server_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend);
void drv_server_on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			const struct cadge_reply_to *reply_to);
/* The same for a server that works before it answers. */
enum cadge_keep drv_server_on_recv_serving(struct cadge_sink *sink, uint32_t peer, const void *data,
					   size_t bytes, struct cadge_lend *lend);
void drv_server_on_call_serving(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args,
				size_t bytes, const struct cadge_reply_to *reply_to);
void drv_server_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code);

#endif
