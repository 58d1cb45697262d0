/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract on Active Messages: a message is a request, a call is a request and its reply. What fits into a packet is a
 * medium message, which is read where it came. Longer things are transfers: arguments and messages into a stretch of the
 * receiver's segment whose places the sender deals out, results into one of the caller's own, where the caller set a place
 * aside; a result that is longer than the caller expected is fetched by a second request.
 */
#ifndef CADGE_AM_ADAPTER_H
#define CADGE_AM_ADAPTER_H

#include "am/am.h"
#include "am/places.h"
#include "wire/style.h"

#define OUTSTANDING AM_PLACES /* requests to a peer; calls as well */

/* Handlers, and their words. */
enum {
	MESSAGE = 1, /* place, if it is long */
	FREED,       /* place */
	CALL,        /* procedure, call, place for the result (in lines), its bytes; place, if it is long */
	RESULT,      /* call, code; place of the arguments, if they were long */
	LATER,       /* call, bytes; place as above: the result is longer than expected */
	FETCH,       /* call, place for the result (in lines) or NOWHERE */
};
#define NOWHERE UINT32_MAX

struct call {
	bool used, fetch; /* its result has to be fetched */
	uint64_t token;
	int place; /* of the result; -1: none */
	uint64_t later_bytes;
};

/* A result that waits for the caller to fetch it. */
struct waiting {
	bool used;
	struct cadge_iov iov[CADGE_STYLE_IOV_MAX];
	uint32_t count;
	uint64_t token;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	struct cadge_state state;
	struct am_places there; /* in the peer's segment, for what we send */
	uint64_t there_at;      /* where they begin */
	struct am_places here;  /* in our segment, for results */
	uint64_t here_at;
	struct call call[OUTSTANDING];
	struct waiting waiting[OUTSTANDING];
};

/* The call whose handler runs. */
struct serving {
	struct am_token *token;
	struct cadge_chan *chan;
	uint32_t call, room_lines, room_bytes;
	int place; /* of its arguments; -1: none */
	bool answered;
};

struct cadge_ctx {
	struct am *am;
	struct am_endpoint *endpoint;
	struct cadge_sink *sink;
	struct cadge_style_asked asked;
	void *received; /* see cadge_style_received; NULL: messages are read where they came */
	struct serving serving;
	uint64_t stretch_bytes; /* of messages, and of results, of a peer */
	uint32_t peers;
	uint32_t fetches; /* calls whose result has to be fetched */
	int events;
	struct cadge_chan chans[];
};

#define AM_CAPS                                                                                              \
	((CADGE_STYLE_CAPS & ~(CADGE_CAP_ORDERED | CADGE_CAP_POST_IN_SINK)) | CADGE_CAP_FLOW_CONTROL |       \
	 CADGE_CAP_RPC | CADGE_CAP_REPLY_IN_SINK)

#define AM_SLOTS                                                                                             \
	.semantics = cadge_semantics_of_messages, .call = cadge_slot_call, .reply = cadge_slot_reply,        \
	.fail = cadge_slot_fail

/* ---- messages.c ---- */

/* Its handlers, and that of what comes back: of calls too, which it passes on. */
void am_messages_register(struct am_endpoint *endpoint);

/* ---- calls.c ---- */

int cadge_slot_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
		    const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token);
int cadge_slot_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to,
		     const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token);
int cadge_slot_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags);

void am_calls_register(struct am_endpoint *endpoint);
/* Asks for results that were longer than expected. */
void am_calls_fetch(struct cadge_ctx *ctx);
/* No result will come for the calls of this channel. */
void am_calls_end(struct cadge_chan *chan, int code);
/* The call of a request that came back. */
void am_call_returned(struct cadge_chan *chan, const uint32_t *words, uint32_t count);

#endif
