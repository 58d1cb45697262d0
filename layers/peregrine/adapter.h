/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Peregrine engine behind the contract, once for all of its wires: native calls, replies and delegation;
 * a message is a call without a result. A layer file states its table with PEREGRINE_LAYER and nothing else.
 */
#ifndef CADGE_PEREGRINE_ADAPTER_H
#define CADGE_PEREGRINE_ADAPTER_H

#include "kit/adapter.h"

/* What every wire can do; a wire adds where it reaches. */
#define PEREGRINE_CAPS                                                                                       \
	(CADGE_CAP_RELIABLE | CADGE_CAP_FLOW_CONTROL | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT |             \
	 CADGE_CAP_RPC | CADGE_CAP_DELEGATE | CADGE_CAP_REPLY_IN_SINK | CADGE_CAP_REPLY_LATER |              \
	 CADGE_CAP_BATCH | CADGE_CAP_COUNTERS | CADGE_CAP_WHY | CADGE_CAP_EVENT_FD)

extern const struct cadge_option peregrine_options[];

/* What differs from wire to wire. */
struct peregrine_wire {
	const char *name;
	uint64_t caps;
	enum cadge_protection protection;
	enum cadge_waker waker; /* of a context that blocks */
	uint32_t copies_on_send;
};

int peregrine_open(const struct peregrine_wire *wire, const struct cadge_open_args *args,
		   struct cadge_ctx **ctx_out);
void peregrine_close(struct cadge_ctx *ctx);
void peregrine_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out);
int peregrine_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout);
int peregrine_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		      struct cadge_chan **chan_out);
int peregrine_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan);
int peregrine_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		   uint64_t token);
int peregrine_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int peregrine_describe_path(struct cadge_chan *chan, struct cadge_path *path_out);
void peregrine_library(struct cadge_library *library_out);
void peregrine_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out);
int peregrine_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int peregrine_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
int peregrine_flush(struct cadge_chan *chan);
int peregrine_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
		   const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token);
int peregrine_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, const struct cadge_iov *iov,
		    uint32_t count, uint32_t flags, uint64_t token);
int peregrine_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags);
int peregrine_delegate(struct cadge_chan *to, const struct cadge_reply_to *reply_to, uint32_t op,
		       const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token);
void peregrine_counters(const struct cadge_ctx *ctx,
			void (*each)(void *arg, const char *name, uint64_t value), void *arg);
const char *peregrine_why(const struct cadge_ctx *ctx);
void *peregrine_mem_alloc(struct cadge_ctx *ctx, size_t bytes);
void peregrine_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes);

#define PEREGRINE_LAYER(WIRE, REACH, PROTECTION, WAKER, COPIES_ON_SEND)                                      \
	static const struct peregrine_wire wire = {WIRE, PEREGRINE_CAPS | (REACH), PROTECTION, WAKER,        \
						   COPIES_ON_SEND};                                          \
	static int wire_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)                 \
	{                                                                                                    \
		return peregrine_open(&wire, args, ctx_out);                                                 \
	}                                                                                                    \
	static const struct cadge_layer layer = {                                                            \
		.abi = CADGE_ABI,                                                                            \
		.bytes = sizeof(layer),                                                                      \
		.name = "peregrine-" WIRE,                                                                   \
		.style = "peregrine",                                                                        \
		.substrate = WIRE,                                                                           \
		.caps = PEREGRINE_CAPS | (REACH),                                                            \
		.options = peregrine_options,                                                                \
		.open = wire_open,                                                                           \
		.close = peregrine_close,                                                                    \
		.limits = peregrine_limits,                                                                  \
		.address = peregrine_address,                                                                \
		.connect = peregrine_connect,                                                                \
		.disconnect = peregrine_disconnect,                                                          \
		.post = peregrine_post,                                                                      \
		.poll = peregrine_poll,                                                                      \
		.describe_path = peregrine_describe_path,                                                    \
		.library = peregrine_library,                                                                \
		.semantics = cadge_semantics_of_messages,                                                    \
		.traits = peregrine_traits,                                                                  \
		.wait = peregrine_wait,                                                                      \
		.event = peregrine_event,                                                                    \
		.flush = peregrine_flush,                                                                    \
		.call = peregrine_call,                                                                      \
		.reply = peregrine_reply,                                                                    \
		.fail = peregrine_fail,                                                                      \
		.delegate = peregrine_delegate,                                                              \
		.counters = peregrine_counters,                                                              \
		.why = peregrine_why,                                                                        \
		.mem_alloc = (REACH) & CADGE_CAP_MEM_ALLOC ? peregrine_mem_alloc : NULL,                     \
		.mem_free = (REACH) & CADGE_CAP_MEM_ALLOC ? peregrine_mem_free : NULL,                       \
	};                                                                                                   \
	const struct cadge_layer *cadge_layer_entry(void)                                                    \
	{                                                                                                    \
		return &layer;                                                                               \
	}

#endif
