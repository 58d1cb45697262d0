/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * native-ucx: UCP active messages as they are.
 *
 * A message is one active message without a header of ours. Who sent it is told by its id: the receiver puts
 * an id of its own choice in the address that it gives to each peer, and an id is used for one life of a
 * channel, so what is still under way when a channel ends is not taken for a message of the next one. A
 * greeting is an active message *with* a header; it makes `up` symmetric.
 *
 * Eager messages are given to the sink inside UCX's handler. For rendezvous the data are fetched into a
 * landing buffer; when none is free the offer waits, which holds the sender back.
 */
#include <stdlib.h>

#include "cadge/layer.h"
#include "wire/ucx/ucx.h"
#include "wire/ucx/landing.h"
#include "wire/ucx/path.h"
#include "kit/bytes.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define IOV_MAX_ENTRIES     4u
/* several entries are gathered by us up to here (faster), by UCX above (faster there) */
#define BOUNCE_BYTES      512u
#define MESSAGE_BYTES_MAX (UINT64_C(1) << 30)
#define DEPTH_MAX         4096u
#define ROUNDS            8u

_Static_assert(sizeof(ucp_dt_iov_t) == sizeof(struct cadge_iov) &&
		       offsetof(ucp_dt_iov_t, length) == offsetof(struct cadge_iov, bytes),
	       "an iov of ours is an iov of theirs");

struct op {
	struct op *next; /* free list of the channel, or finished list of the context */
	struct cadge_chan *chan;
	uint64_t token;
	uint32_t life; /* of the channel when posted: events of an earlier life are dropped */
	int code;
	bool wanted; /* the caller waits for an event */
	bool out;    /* the library has it */
	ucp_dt_iov_t iov[IOV_MAX_ENTRIES];
	unsigned char bounce[BOUNCE_BYTES];
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	ucp_ep_h ep; /* NULL: not connected */
	struct op *idle;
	unsigned int id_out; /* what the peer wants us to send with */
	unsigned int id_in;  /* what we gave to the peer, or CADGE_UCX_IDS */
	uint32_t peer;
	uint32_t life;
	size_t bytes_max; /* of a message */
	bool up, greeted, broken, down_reported;
};

struct cadge_ctx {
	struct cadge_ucx ucx;
	struct cadge_sink *sink;
	int events;
	bool events_pending; /* something below waits for deliver_events */
	bool lend;
	enum cadge_wait_mode wait_mode;
	unsigned int rounds; /* of progress in one poll */
	uint32_t peers, depth;
	size_t message_bytes_max;
	struct op *ops, *finished;
	struct cadge_ucx_landings *landings;
	struct cadge_chan chans[];
};

#define CAPS                                                                                                 \
	(CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_FLOW_CONTROL |                      \
	 CADGE_CAP_POST_IN_SINK | CADGE_CAP_LEND | CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD |                     \
	 CADGE_CAP_OWN_THREADS | CADGE_CAP_WHY)

static const struct cadge_option ucx_options[] = {
	CADGE_UCX_OPTION_TRANSPORTS,
	{"lend", "no",
	 "yes: received data can be kept without a copy, at the cost of a descriptor for each message"},
	{NULL, NULL, NULL},
};

/* ---- receiving ---- */

static void chan_break(struct cadge_chan *chan)
{
	chan->broken = true;
	chan->ctx->events_pending = true;
}

static void chan_up(struct cadge_chan *chan)
{
	if (chan->up || chan->broken)
		return;
	chan->up = true;
	chan->ctx->events++;
	chan->ctx->sink->up(chan->ctx->sink, chan->peer);
}

static enum cadge_keep on_landed(void *user, uint32_t life, void *data, size_t bytes, ucs_status_t status)
{
	struct cadge_chan *chan = user;
	struct cadge_ctx *ctx = chan->ctx;

	ctx->events_pending = true; /* a buffer may have become free for an offer that waits */
	if (life != chan->life || !ctx->sink)
		return CADGE_TAKEN;
	if (status != UCS_OK) {
		cadge_ucx_failed(&ctx->ucx, "a receive", status);
		chan_break(chan);
		return CADGE_TAKEN;
	}
	ctx->events++;
	return ctx->sink->recv(ctx->sink, chan->peer, data, bytes, ctx->lend ? data : NULL);
}

static ucs_status_t on_offer(struct cadge_chan *chan, void *offer, size_t bytes)
{
	if (chan->ep && cadge_ucx_land(chan->ctx->landings, offer, bytes, chan, chan->life))
		return UCS_INPROGRESS;
	chan_break(chan); /* a peer that does not keep to our limits */
	return UCS_OK;
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
			       const ucp_am_recv_param_t *param)
{
	struct cadge_chan *chan = arg;
	struct cadge_ctx *ctx = chan->ctx;
	struct cadge_lend *lend;

	(void)header;
	if (UNLIKELY(header_bytes != 0)) {
		chan->greeted = true;
		if (ctx->sink && chan->ep)
			chan_up(chan); /* now, since a message may follow at once */
		return UCS_OK;
	}
	if (UNLIKELY((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0))
		return on_offer(chan, data, bytes);
	if (UNLIKELY(!ctx->sink))
		return UCS_OK; /* closing */
	lend = ctx->lend ? data : NULL;
	ctx->events++;
	return ctx->sink->recv(ctx->sink, chan->peer, data, bytes, lend) == CADGE_KEEP ? UCS_INPROGRESS
										       : UCS_OK;
}

static void ucx_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	if (!cadge_ucx_landing_owns(ctx->landings, lend)) {
		ucp_am_data_release(ctx->ucx.worker, lend);
		return;
	}
	cadge_ucx_landing_free(ctx->landings, lend);
	ctx->events_pending = true;
}

/* ---- sending ---- */

static void op_retire(struct op *op)
{
	op->wanted = op->out = false;
	CADGE_POOL_GIVE(op->chan->idle, op);
}

static void op_finish(struct op *op)
{
	struct cadge_chan *chan = op->chan;
	const bool wanted = op->wanted && op->life == chan->life;
	const uint64_t token = op->token;
	const int code = op->code;

	op_retire(op); /* first, so that the sink may post */
	if (!wanted)
		return;
	chan->ctx->events++;
	chan->ctx->sink->sent(chan->ctx->sink, chan->peer, token, code);
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
	struct op *op = arg;
	struct cadge_chan *chan = op->chan;

	ucp_request_free(request);
	op->code = cadge_ucx_code(status);
	if (status != UCS_OK && op->life == chan->life) {
		cadge_ucx_failed(&chan->ctx->ucx, "a send", status);
		chan_break(chan);
	}
	if (chan->ctx->sink || op->life != chan->life) {
		op_finish(op);
		return;
	}
	op->next = chan->ctx->finished; /* a library call outside of poll finished it */
	chan->ctx->finished = op;
	chan->ctx->events_pending = true;
}

/* What the library answered to `op`, which it keeps when the send goes on. */
static __attribute__((noinline)) int post_goes_on(struct op *op, void *request, uint64_t token, bool copied)
{
	struct cadge_chan *chan = op->chan;
	int code;

	if (UCS_PTR_IS_ERR(request)) {
		code = cadge_ucx_failed(&chan->ctx->ucx, "a send", UCS_PTR_STATUS(request));
		if (code == CADGE_E_DOWN)
			chan_break(chan);
		return code;
	}
	chan->idle = op->next;
	op->token = token;
	op->life = chan->life;
	op->wanted = !copied;
	op->out = true;
	return copied ? CADGE_DONE : CADGE_QUEUED;
}

/* More entries than one: gathered by us where short, else by the library. */
static __attribute__((noinline)) int post_several(struct cadge_chan *chan, const struct cadge_iov *iov,
						  uint32_t count, uint64_t token)
{
	struct op *op = chan->idle;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = on_sent,
		.user_data = op,
	};
	size_t bytes;
	const int code = cadge_iov_check(iov, count, IOV_MAX_ENTRIES, chan->ctx->message_bytes_max, &bytes);
	bool copied;
	void *request;

	if (code != CADGE_DONE)
		return code;
	copied = bytes <= BOUNCE_BYTES;
	if (copied) {
		cadge_iov_gather(iov, count, op->bounce);
		request = ucp_am_send_nbx(chan->ep, chan->id_out, NULL, 0, op->bounce, bytes, &param);
	} else {
		memcpy(op->iov, iov, count * sizeof(*iov));
		param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
		param.datatype = ucp_dt_make_iov();
		request = ucp_am_send_nbx(chan->ep, chan->id_out, NULL, 0, op->iov, count, &param);
	}
	return request ? post_goes_on(op, request, token, copied) : CADGE_DONE;
}

/* The usual case, one entry that leaves at once, is kept as short as it can be. */
static int ucx_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	struct op *op = chan->idle;
	ucp_request_param_t param;
	void *request;

	(void)flags;
	if (UNLIKELY(!op || !chan->up))
		return chan->broken ? CADGE_E_DOWN : CADGE_BUSY;
	if (UNLIKELY(count != 1))
		return post_several(chan, iov, count, token);
	if (UNLIKELY(iov->bytes > chan->bytes_max))
		return CADGE_E_TOO_LARGE;
	param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
	param.cb.send = on_sent;
	param.user_data = op;
	request = ucp_am_send_nbx(chan->ep, chan->id_out, NULL, 0, iov->base, iov->bytes, &param);
	return UNLIKELY(request) ? post_goes_on(op, request, token, false) : CADGE_DONE;
}

/* ---- progress ---- */

/* What could not be delivered where it happened: ups and downs, late sends, offers that waited. */
static __attribute__((noinline)) void deliver_events(struct cadge_ctx *ctx)
{
	struct op *op;

	ctx->events_pending = false;
	while ((op = ctx->finished)) {
		ctx->finished = op->next;
		op_finish(op);
	}
	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = &ctx->chans[i];

		if (!chan->ep)
			continue;
		if (chan->greeted)
			chan_up(chan);
		if (chan->broken && !chan->down_reported) {
			chan->down_reported = true;
			chan->up = false;
			ctx->events++;
			ctx->sink->down(ctx->sink, i, CADGE_E_DOWN);
		}
	}
	cadge_ucx_landings_resume(ctx->landings);
}

/*
 * Looks several times before it says that there is nothing: a spinning caller then pays less for coming
 * back.
 */
static int ucx_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	ctx->sink = sink;
	ctx->events = 0;
	for (unsigned int round = ctx->rounds; round && !ctx->events; round--) {
		ucp_worker_progress(ctx->ucx.worker);
		if (UNLIKELY(ctx->events_pending))
			deliver_events(ctx);
	}
	ctx->sink = NULL;
	return ctx->events;
}

static int ucx_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	return ctx->events_pending ? CADGE_DONE : cadge_ucx_wait(&ctx->ucx, timeout_ns);
}

static int ucx_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	return ctx->events_pending && ctx->ucx.wake_fd >= 0 ? CADGE_BUSY
							    : cadge_ucx_event(&ctx->ucx, fd_out, due_ns_out);
}

/* ---- connecting ---- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct cadge_chan *chan = arg;

	if (chan->ep != ep)
		return;
	cadge_ucx_failed(&chan->ctx->ucx, "the connection", status);
	chan_break(chan);
}

static int ucx_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	struct cadge_chan *chan;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	if (chan->id_in == CADGE_UCX_IDS) {
		int code = cadge_ucx_take_id(&ctx->ucx, on_message, chan,
					     ctx->lend ? UCP_AM_FLAG_PERSISTENT_DATA : 0, &chan->id_in);

		if (code != CADGE_DONE)
			return code;
	}
	cadge_blob_u32(&out, chan->id_in);
	cadge_blob_bytes(&out, ctx->ucx.address, ctx->ucx.address_bytes);
	if (!out.ok)
		return CADGE_E_TOO_LARGE;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int ucx_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out)
{
	static const unsigned char greeting[4] = {'c', 'd', 'g', '1'};
	const ucp_request_param_t param = {.op_attr_mask = 0};
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	unsigned int id = cadge_blob_take_u32(&in);
	size_t address_bytes;
	const void *address = cadge_blob_take_bytes(&in, &address_bytes);
	struct cadge_chan *chan;
	void *request;
	int code;

	if (!in.ok || in.left_bytes || id >= CADGE_UCX_IDS || !address_bytes || peer >= ctx->peers ||
	    ctx->chans[peer].ep)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	code = cadge_ucx_connect(&ctx->ucx, address, on_error, chan, &chan->ep);
	if (code != CADGE_DONE)
		return code;
	chan->id_out = id;
	chan->broken = chan->down_reported = chan->up = false;
	request = ucp_am_send_nbx(chan->ep, id, greeting, sizeof(greeting), NULL, 0, &param);
	if (UCS_PTR_IS_ERR(request)) {
		cadge_ucx_disconnect(&ctx->ucx, chan->ep);
		chan->ep = NULL;
		return cadge_ucx_code(UCS_PTR_STATUS(request));
	}
	if (request)
		ucp_request_free(request);
	ctx->events_pending = true; /* the peer's greeting may have come before */
	*chan_out = chan;
	return CADGE_DONE;
}

/*
 * The life number keeps late events away; what the library still sends goes on in the background, since UCX
 * cannot cancel a send on an endpoint without error handling.
 */
static int ucx_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (chan->ctx != ctx || !chan->ep)
		return CADGE_E_ARGUMENT;
	if (cadge_ucx_give_id(&ctx->ucx, chan->id_in) != CADGE_DONE)
		return CADGE_E_LIBRARY;
	chan->id_in = CADGE_UCX_IDS;
	chan->life++;
	chan->greeted = chan->up = false;
	cadge_ucx_disconnect(&ctx->ucx, chan->ep);
	chan->ep = NULL;
	return CADGE_DONE;
}

static int ucx_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	return chan->ep ? cadge_ucx_describe(&chan->ctx->ucx, chan->ep, path_out) : CADGE_E_DOWN;
}

/* ---- life of a context ---- */

/* The library still holds a buffer of the caller or of ours, to be sent or to be filled. */
static bool unfinished(const struct cadge_ctx *ctx)
{
	for (size_t i = 0; ctx->ops && i < (size_t)ctx->peers * ctx->depth; i++)
		if (ctx->ops[i].out)
			return true;
	return ctx->landings && cadge_ucx_landings_used(ctx->landings);
}

/*
 * What the caller left unfinished is not carried on with: UCX 1.18 ends the process when the peer closes its
 * connection while a rendezvous goes on.
 */
static void ucx_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	ctx->ucx.unfinished = unfinished(ctx);
	for (uint32_t i = 0; i < ctx->peers; i++) {
		ctx->chans[i].life++;
		if (ctx->chans[i].ep && !ctx->chans[i].broken &&
		    !ctx->ucx.unfinished) /* broken ones go with the worker */
			cadge_ucx_disconnect(&ctx->ucx, ctx->chans[i].ep);
	}
	cadge_ucx_drain(&ctx->ucx);
	ctx->ucx.unfinished = unfinished(ctx); /* what a life left behind when it ended may have come back */
	cadge_ucx_close(&ctx->ucx);
	cadge_ucx_landings_destroy(ctx->landings);
	free(ctx->ops);
	free(ctx);
}

/* Everything that the path will need. */
static bool make_pools(struct cadge_ctx *ctx)
{
	const uint32_t ops = ctx->peers * ctx->depth;
	uint32_t fetching_max;

	ctx->ops = calloc(ops, sizeof(*ctx->ops));
	/*
	 * Within a host to fetch is to copy, on this processor: one after the other they land where the one before did,
	 * in the cache. With several peers a dead one must not hold up the others.
	 */
	fetching_max = ctx->ucx.place == CADGE_PLACE_HOST && ctx->peers == 1 ? 1 : 4 * ops;
	ctx->landings = cadge_ucx_landings_create(ctx->ucx.worker, ctx->message_bytes_max, 4 * ops,
						  fetching_max, on_landed);
	if (!ctx->ops || !ctx->landings)
		return false;
	for (uint32_t i = 0; i < ctx->peers; i++) {
		ctx->chans[i] = (struct cadge_chan){
			.ctx = ctx, .peer = i, .id_in = CADGE_UCX_IDS, .bytes_max = ctx->message_bytes_max};
		for (uint32_t k = 0; k < ctx->depth; k++) {
			struct op *op = &ctx->ops[(size_t)i * ctx->depth + k];

			op->chan = &ctx->chans[i];
			op_retire(op);
		}
	}
	return true;
}

static int ucx_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	static const struct cadge_setting_rule rules[] = {
		{.name = "lend", .kind = CADGE_SETTING_FLAG, .offset = offsetof(struct cadge_ctx, lend)},
		{.name = NULL},
	};
	struct cadge_ctx *ctx;
	int code = cadge_open_check(args, CAPS, ucx_options, CADGE_UCX_IDS / 4);

	if (code != CADGE_DONE)
		return code;
	ctx = calloc(1, sizeof(*ctx) + args->peers_max * sizeof(ctx->chans[0]));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->depth = (uint32_t)cadge_least(args->depth_max, DEPTH_MAX);
	ctx->wait_mode = args->wait_mode;
	ctx->rounds = args->wait_mode == CADGE_WAIT_POLL ? ROUNDS : 1;
	ctx->message_bytes_max = (size_t)cadge_least(args->message_bytes_max, MESSAGE_BYTES_MAX);
	code = cadge_settings_read(args, rules, ctx);
	if (code == CADGE_DONE)
		code = cadge_ucx_open(args, UCP_FEATURE_AM, &ctx->ucx);
	if (code == CADGE_DONE) {
		ctx->peers = args->peers_max;
		if (!make_pools(ctx))
			code = cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers",
					    args->peers_max);
	}
	if (code != CADGE_DONE) {
		ucx_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

/* What UCX says of the first channel that is up. False where none is, or UCX does not say. */
static bool sends_of(const struct cadge_ctx *ctx, struct cadge_ucx_path *path_out)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		if (ctx->chans[i].up)
			return cadge_ucx_path_of(ctx->chans[i].ep, ctx->ucx.device, path_out) == CADGE_DONE &&
			       *path_out->sends;
	return false;
}

static void ucx_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	static const char either[] = "eager or rendezvous, as the library decides";
	struct cadge_ucx_path path = {.rendezvous_bytes = 0};
	const bool known = sends_of(ctx, &path);
	const char *shorter = path.all_rendezvous ? "rendezvous" : "eager";
	const char *longer = path.all_rendezvous || path.rendezvous_bytes ? "rendezvous" : "eager";
	const uint64_t eager_bytes_max =
		known && path.rendezvous_bytes ? path.rendezvous_bytes - 1 : ctx->message_bytes_max;
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(CAPS, ctx->ucx.place, ctx->wait_mode) &
			~(ctx->lend ? 0 : CADGE_CAP_LEND),
		.message_bytes_max = ctx->message_bytes_max,
		.depth_max = ctx->depth,
		.iov_max = IOV_MAX_ENTRIES,
		.wire_overhead_bytes = 8, /* UCX's own active message header; none of ours */
		.short_bytes_max = cadge_least(eager_bytes_max, ctx->message_bytes_max),
		.short_path = known ? shorter : either,
		.long_path = known ? longer : either,
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static void ucx_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_RECEIVER_LIBRARY,
		.control_transfer = CADGE_CONTROL_HANDLER,
		.flow = CADGE_FLOW_LIBRARY,
		.waker = ctx->wait_mode == CADGE_WAIT_BLOCK ? CADGE_WAKER_LIBRARY : CADGE_WAKER_NONE,
		.copies_on_send = 1,
		.multiprogramming = 1,
		.thread_role = cadge_ucx_thread_role(&ctx->ucx),
		.threads_max = CADGE_UCX_THREADS,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *ucx_why(const struct cadge_ctx *ctx)
{
	return ctx->ucx.why;
}

static const struct cadge_layer ucx_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "native-ucx",
	.style = "native",
	.substrate = "ucx",
	.caps = CAPS,
	.options = ucx_options,
	.open = ucx_open,
	.close = ucx_close,
	.limits = ucx_limits,
	.address = ucx_address,
	.connect = ucx_connect,
	.disconnect = ucx_disconnect,
	.post = ucx_post,
	.poll = ucx_poll,
	.describe_path = ucx_describe_path,
	.library = cadge_wire_library,
	.semantics = cadge_semantics_of_messages,
	.traits = ucx_traits,
	.wait = ucx_wait,
	.event = ucx_event,
	.release = ucx_release,
	.why = ucx_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &ucx_layer;
}
