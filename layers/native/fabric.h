/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One adapter of libfabric's messages with two types of endpoint: native-ofi has FI_EP_RDM, native-dgram FI_EP_DGRAM. Here
 * and in fabric.c is what both have: one endpoint, receives that are posted before messages come, the handshake
 * (kit/greeting.h). ofi.c and dgram.c say how messages move, and what their type grants.
 */
#ifndef CADGE_NATIVE_FABRIC_H
#define CADGE_NATIVE_FABRIC_H

#include "kit/greeting.h"
#include "wire/ofi/ofi.h"

enum {
	FABRIC_EVENTS = 16, /* most events in one poll */
	FABRIC_PARTS = 8,   /* most pieces of a message, ours included */
};

/* A send in flight. The first member is libfabric's. */
struct fabric_send {
	struct fi_context2 context;
	struct cadge_chan *chan; /* NULL after disconnect: no event */
	uint64_t token;
	struct fabric_send *next;
};

/* A receive buffer; what a caller keeps of a message is this. The first member is libfabric's. */
struct cadge_lend {
	struct fi_context2 context;
	void *data;
	struct cadge_lend *next;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	fi_addr_t addr;
	uint32_t peer;
	struct cadge_greeting greeting;
	bool connected;
	struct cadge_state state;
};

struct cadge_ctx {
	struct cadge_ofi ofi;
	uint32_t peers, depth;
	uint32_t handshakes; /* channels that are connected, and neither up nor down */
	uint32_t posted, posted_wanted;
	uint64_t message_bytes_max;
	size_t receive_bytes; /* the same with what stands before the payload */
	size_t inject_bytes, pool_bytes;
	uint32_t iov_max;
	struct cadge_chan *chan;
	struct fabric_send *sends, *free_send;
	size_t sends_count;
	struct cadge_lend *lends, *free_lend;
	uint32_t lends_count;
	void *pool;
	uint64_t stale,
		busy_posts; /* messages of other lives, slots or strangers; posts that found no room */
};

/* What a type of endpoint defines beside its slots. */
struct fabric_type {
	const struct cadge_layer *layer;
	struct cadge_ofi_needs
		needs; /* its completions are those of receives; each send that may be under way has one more */
	uint32_t depth_max;
	uint32_t receives; /* 0: as many as the caller may keep, and posted as fabric_repost is asked to */
	size_t head_bytes; /* before each payload */
	uint64_t greeting_period_ns; /* after which a greeting that found no way is tried again */
	const char *stale_counter;
};
extern const struct fabric_type fabric_type;

int fabric_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out);
void fabric_close(struct cadge_ctx *ctx);
int fabric_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout);
int fabric_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		   struct cadge_chan **chan_out);
int fabric_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan);
int fabric_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int fabric_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
int fabric_describe_path(struct cadge_chan *chan, struct cadge_path *path_out);
void fabric_counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value),
		     void *arg);
const char *fabric_why(const struct cadge_ctx *ctx);

#define FABRIC_SLOTS                                                                                         \
	.abi = CADGE_ABI, .bytes = sizeof(struct cadge_layer), .style = "native", .open = fabric_open,       \
	.close = fabric_close, .address = fabric_address, .connect = fabric_connect,                         \
	.disconnect = fabric_disconnect, .describe_path = fabric_describe_path,                              \
	.library = cadge_wire_library, .semantics = cadge_semantics_of_messages, .wait = fabric_wait,        \
	.event = fabric_event, .counters = fabric_counters, .why = fabric_why

/* Posts free buffers until `wanted` are posted. A full receive queue is no error: the next poll tries again. */
int fabric_repost(struct cadge_ctx *ctx, uint32_t wanted);

/* What fi_inject and its like returned, other than 0: BUSY, or E_DOWN with libfabric's words kept. */
static inline int fabric_refused(struct cadge_ctx *ctx, ssize_t ret)
{
	if (ret != -FI_EAGAIN)
		return cadge_ofi_refused(&ctx->ofi, ret);
	ctx->busy_posts++;
	return CADGE_BUSY;
}

/* The channel of a message that came; NULL: of another life, another slot or a stranger, and counted. */
static inline struct cadge_chan *fabric_sender(struct cadge_ctx *ctx, uint32_t stamp)
{
	const uint32_t slot = cadge_stamp_slot(stamp);
	struct cadge_chan *chan = slot < ctx->peers ? &ctx->chan[slot] : NULL;

	if (chan && cadge_stamp_fits(&chan->greeting, stamp))
		return chan;
	ctx->stale++;
	return NULL;
}

static inline int fabric_report_up(struct cadge_chan *chan, struct cadge_sink *sink)
{
	const int events = cadge_report_up(&chan->state, sink, chan->peer);

	chan->ctx->handshakes -= (uint32_t)events;
	return events;
}

#endif
