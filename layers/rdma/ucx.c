/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma-ucx: put, get, fetch-add and flush of UCP, and messages through the mailbox of wire/ over put.
 * Whether a peer's memory is mapped here is asked from ucp_rkey_ptr, and that is what `semantics` states.
 *
 * A direct put does not wake a sleeper, so in block mode the mailbox sends a notification, an active message,
 * after each write. Where the target's library carries out the write (TCP), the write itself wakes it and
 * becomes visible only in its own progress: a notification would be a second message for nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "cadge/layer.h"
#include "wire/mailbox.h"
#include "wire/ucx/ucx.h"
#include "wire/ucx/path.h"
#include "wire/ucx/rma.h"
#include "kit/bytes.h"

#define PEERS_MAX       (CADGE_UCX_IDS / 4)
#define DEPTH_MAX       4096u
#define BYTES_MAX       (UINT64_C(1) << 30)
#define MAILBOX_RECORDS 224u /* more than the mailbox ever has under way */
#define KEY_BYTES_MAX   1024u
#define POLLS_SKIPPED   16u

_Static_assert(CADGE_MAILBOX_NOTE_BYTES == CADGE_UCX_NOTE_BYTES, "a notification is one note");

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_ucx_rma rma; /* rma.ep is NULL: not connected */
	struct cadge_mailbox *mailbox;
	struct cadge_remote *area; /* of the peer's mailbox */
	uint32_t peer;
	uint32_t outstanding; /* of the caller's operations in this life */
	unsigned int id_in, id_out;
	bool broken, writes_wake;
	size_t key_bytes; /* of our mailbox's area */
	uint8_t key[KEY_BYTES_MAX];
};

struct cadge_ctx {
	struct cadge_ucx ucx;
	struct cadge_ucx_memory memory;
	struct cadge_sink *sink;
	int events;
	unsigned int skipped; /* polls without progress of the library */
	uint32_t peers, depth;
	enum cadge_wait_mode wait_mode;
	uint64_t message_bytes_max;
	struct cadge_mailbox_shape shape;
	uint8_t *areas, *staging; /* of the mailboxes of all peers */
	bool direct, asked;       /* the memory of all peers so far is mapped here; a peer was asked */
	bool device_atomics;      /* over verbs: the lanes to all peers so far have atomic operations */
	struct cadge_chan chans[];
};

#define CAPS                                                                                                 \
	(CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |  \
	 CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_PUT | CADGE_CAP_GET |      \
	 CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP | CADGE_CAP_MEM_ALLOC | CADGE_CAP_COUNTERS |           \
	 CADGE_CAP_OWN_THREADS | CADGE_CAP_WHY)

static const struct cadge_option rdma_options[] = {
	CADGE_UCX_OPTION_TRANSPORTS,
	{NULL, NULL, NULL},
};

/* ---- the mailbox on top ---- */

static int mailbox_put(void *link, const void *local, size_t bytes, uint64_t offset_bytes,
		       struct cadge_mailbox_op *op)
{
	struct cadge_chan *chan = link;

	return cadge_ucx_put(&chan->rma, local, bytes, chan->area, offset_bytes, op, 0);
}

static int mailbox_quiet(void *link, struct cadge_mailbox_op *op)
{
	struct cadge_chan *chan = link;

	return cadge_ucx_flush(&chan->rma, op, 0);
}

static int mailbox_notify(void *link, const void *note)
{
	struct cadge_chan *chan = link;

	return chan->writes_wake ? CADGE_DONE : cadge_ucx_note(&chan->rma, chan->id_out, note, link);
}

static const struct cadge_mailbox_ops polling_ops = {mailbox_put, mailbox_quiet, NULL, NULL};
static const struct cadge_mailbox_ops sleeping_ops = {mailbox_put, mailbox_quiet, NULL, mailbox_notify};

static ucs_status_t on_note(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
			    const ucp_am_recv_param_t *param)
{
	struct cadge_chan *chan = arg;

	(void)header, (void)header_bytes;
	if (bytes == CADGE_MAILBOX_NOTE_BYTES && !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))
		cadge_mailbox_notified(chan->mailbox, data);
	return UCS_OK;
}

/*
 * The tag is an operation of the mailbox, NULL for one of the caller, the channel itself for a failed note.
 */
static void on_done(void *user, void *tag, uint64_t token, int code)
{
	struct cadge_chan *chan = user;

	if (code < 0 && !*chan->ctx->ucx.why)
		snprintf(chan->ctx->ucx.why, sizeof(chan->ctx->ucx.why), "a one-sided operation failed (%d)",
			 code);
	if (tag == chan) {
		cadge_mailbox_fail(chan->mailbox);
	} else if (tag) {
		cadge_mailbox_done(tag, code);
	} else {
		chan->outstanding--;
		chan->ctx->events++;
		chan->ctx->sink->sent(chan->ctx->sink, chan->peer, token, code);
	}
}

static int rdma_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	(void)flags;
	return cadge_mailbox_post(chan->mailbox, iov, count, token);
}

static void look(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		ctx->events += cadge_mailbox_poll(ctx->chans[i].mailbox, ctx->sink);
}

/* Looks into the mailboxes first: what lies there needs no library. That runs when they are empty, or every
 * 16th time. */
static int rdma_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	ctx->sink = sink;
	ctx->events = 0;
	look(ctx);
	if (!ctx->events || ++ctx->skipped >= POLLS_SKIPPED) {
		ctx->skipped = 0;
		if (ucp_worker_progress(ctx->ucx.worker))
			look(ctx);
	}
	return ctx->events;
}

static bool may_sleep(struct cadge_ctx *ctx)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		if (!cadge_mailbox_may_sleep(ctx->chans[i].mailbox))
			return false;
	return true;
}

static int rdma_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	return may_sleep(ctx) ? cadge_ucx_wait(&ctx->ucx, timeout_ns) : CADGE_DONE;
}

static int rdma_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	return ctx->ucx.wake_fd < 0 || may_sleep(ctx) ? cadge_ucx_event(&ctx->ucx, fd_out, due_ns_out)
						      : CADGE_BUSY;
}

/* ---- memory and one-sided operations of the caller ---- */

static void *rdma_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	return cadge_ucx_mem_alloc(&ctx->memory, bytes);
}

static void rdma_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	(void)bytes;
	cadge_ucx_mem_free(&ctx->memory, base);
}

static int rdma_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		       uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_blob_out out = {.at = key, .room_bytes = *key_bytes_inout, .ok = true};
	int code;

	(void)flags;
	if (rights != CADGE_MAY_ALL || peer != CADGE_ALL_PEERS)
		return CADGE_E_UNSUPPORTED; /* RIGHTS: UCX's keys open memory to whoever has them */
	code = cadge_ucx_expose(&ctx->memory, base, bytes, &out, region_out);
	if (code == CADGE_DONE)
		*key_bytes_inout = out.used_bytes;
	return code;
}

static void rdma_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	cadge_ucx_unexpose(&ctx->memory, region);
}

static int rdma_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		       uint32_t flags, struct cadge_remote **remote_out)
{
	struct cadge_blob_in in = {.at = key, .left_bytes = key_bytes, .ok = true};

	(void)intent, (void)flags;
	return chan->rma.ep ? cadge_ucx_attach(&chan->rma, &in, remote_out) : CADGE_E_DOWN;
}

static void rdma_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	cadge_ucx_detach(remote);
}

/* DONE where the channel takes an operation on these bytes. */
static int may_start(const struct cadge_chan *chan, const struct cadge_remote *remote, uint64_t offset_bytes,
		     uint64_t bytes)
{
	if (chan->broken || !chan->rma.ep)
		return CADGE_E_DOWN;
	if (remote && bytes > BYTES_MAX)
		return CADGE_E_TOO_LARGE;
	if (remote && (remote->rma != &chan->rma || offset_bytes > remote->bytes ||
		       bytes > remote->bytes - offset_bytes))
		return CADGE_E_ARGUMENT;
	return chan->outstanding < chan->ctx->depth ? CADGE_DONE : CADGE_BUSY;
}

static int count(struct cadge_chan *chan, int code)
{
	chan->outstanding += code == CADGE_QUEUED;
	return code;
}

static int rdma_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		    uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	int code = may_start(chan, remote, offset_bytes, bytes);

	if (code != CADGE_DONE)
		return code;
	if (flags & CADGE_NOTIFY)
		return CADGE_E_UNSUPPORTED;
	return count(chan, cadge_ucx_put(&chan->rma, local, bytes, remote, offset_bytes, NULL, token));
}

static int rdma_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		    uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	int code = may_start(chan, remote, offset_bytes, bytes);

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	return count(chan, cadge_ucx_get(&chan->rma, local, bytes, remote, offset_bytes, NULL, token));
}

static int rdma_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
			  struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	int code = may_start(chan, remote, offset_bytes, sizeof(addend));

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	if ((remote->base + offset_bytes) % sizeof(addend))
		return CADGE_E_ARGUMENT;
	return count(chan,
		     cadge_ucx_fetch_add(&chan->rma, addend, before_out, remote, offset_bytes, NULL, token));
}

static int rdma_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired,
			     uint64_t *before_out, struct cadge_remote *remote, uint64_t offset_bytes,
			     uint32_t flags, uint64_t token)
{
	int code = may_start(chan, remote, offset_bytes, sizeof(desired));

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	if ((remote->base + offset_bytes) % sizeof(desired))
		return CADGE_E_ARGUMENT;
	return count(chan, cadge_ucx_compare_swap(&chan->rma, expected, desired, before_out, remote,
						  offset_bytes, NULL, token));
}

static int rdma_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	int code = may_start(chan, NULL, 0, 0);

	(void)flags;
	return code == CADGE_DONE ? count(chan, cadge_ucx_flush(&chan->rma, NULL, token)) : code;
}

/* ---- connecting ---- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct cadge_chan *chan = arg;

	if (chan->rma.ep != ep)
		return;
	cadge_ucx_failed(&chan->ctx->ucx, "the connection", status);
	chan->broken = true;
	cadge_mailbox_fail(chan->mailbox);
}

static int rdma_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	struct cadge_chan *chan;
	int code = CADGE_DONE;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	if (ctx->ucx.wake_fd >= 0 && chan->id_in == CADGE_UCX_IDS)
		code = cadge_ucx_take_id(&ctx->ucx, on_note, chan, 0, &chan->id_in);
	if (code != CADGE_DONE)
		return code;
	cadge_mailbox_card(chan->mailbox, card);
	cadge_blob_u32(&out, chan->id_in);
	cadge_blob_raw(&out, card, sizeof(card));
	cadge_blob_bytes(&out, chan->key, chan->key_bytes);
	cadge_blob_bytes(&out, ctx->ucx.address, ctx->ucx.address_bytes);
	if (!out.ok)
		return CADGE_E_TOO_LARGE;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static void chan_end(struct cadge_chan *chan)
{
	cadge_ucx_detach_all(&chan->rma);
	chan->area = NULL;
	cadge_ucx_disconnect(&chan->ctx->ucx, chan->rma.ep);
	chan->rma.ep = NULL;
}

/*
 * What the lanes say. All of them TCP: whatever is written to the peer passes through its library, which has to read it, and so
 * wakes it. Over verbs a lane for atomic operations is the device's; without one UCX sends them as messages.
 */
static void ask_lanes(struct cadge_chan *chan)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct cadge_ucx_path path;

	chan->writes_wake = false;
	if (cadge_ucx_path_of(chan->rma.ep, "", &path) != CADGE_DONE)
		return;
	chan->writes_wake = path.network && !path.other;
	ctx->device_atomics = ctx->ucx.verbs && path.atomics && (!ctx->asked || ctx->device_atomics);
}

static int rdma_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true}, key = {.ok = true};
	const uint32_t id = cadge_blob_take_u32(&in);
	const void *card = cadge_blob_take(&in, CADGE_MAILBOX_CARD_BYTES), *address;
	struct cadge_chan *chan;
	size_t address_bytes;
	int code;

	key.at = cadge_blob_take_bytes(&in, &key.left_bytes);
	address = cadge_blob_take_bytes(&in, &address_bytes);
	if (!in.ok || in.left_bytes || !address_bytes || id > CADGE_UCX_IDS || peer >= ctx->peers ||
	    ctx->chans[peer].rma.ep)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	code = cadge_ucx_connect(&ctx->ucx, address, on_error, chan, &chan->rma.ep);
	if (code != CADGE_DONE)
		return code;
	chan->id_out = id;
	chan->broken = false;
	chan->outstanding = 0;
	ask_lanes(chan);
	code = cadge_ucx_attach(&chan->rma, &key, &chan->area);
	if (code == CADGE_DONE)
		code = cadge_mailbox_attach(chan->mailbox, card, CADGE_MAILBOX_CARD_BYTES, chan);
	if (code != CADGE_DONE) {
		chan_end(chan);
		return code;
	}
	ctx->direct = chan->area->mapped && (!ctx->asked || ctx->direct);
	ctx->asked = true;
	*chan_out = chan;
	return CADGE_DONE;
}

static int rdma_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	if (chan->ctx != ctx || !chan->rma.ep)
		return CADGE_E_ARGUMENT;
	if (chan->id_in != CADGE_UCX_IDS && cadge_ucx_give_id(&ctx->ucx, chan->id_in) != CADGE_DONE)
		return CADGE_E_LIBRARY;
	chan->id_in = CADGE_UCX_IDS;
	chan->rma.life++;
	cadge_mailbox_detach(chan->mailbox);
	chan_end(chan);
	return CADGE_DONE;
}

static int rdma_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct cadge_path path = {.bytes = sizeof(path)};
	int code = chan->rma.ep ? cadge_ucx_describe(&ctx->ucx, chan->rma.ep, &path) : CADGE_E_DOWN;

	if (code != CADGE_DONE)
		return code;
	snprintf(path.note, sizeof(path.note), "%s%s",
		 ctx->direct      ? "put, get and atomics: loads and stores to mapped memory of the target"
		 : ctx->ucx.verbs ? (ctx->device_atomics ? "put, get and atomics: carried out by the device"
							 : "put and get: carried out by the device; atomics: "
							   "by the target's library")
				  : "put, get and atomics: carried out by the target's library",
		 ctx->ucx.wake_fd < 0 ? ""
		 : chan->writes_wake  ? "; that wakes it, so no notifications (block)"
				      : "; notification after each write (block)");
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

/* ---- life of a context ---- */

static void rdma_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (uint32_t i = 0; i < ctx->peers; i++) {
		ctx->chans[i].rma.life++;
		if (ctx->chans[i].rma.ep && !ctx->chans[i].broken) /* broken ones go with the worker */
			cadge_ucx_disconnect(&ctx->ucx, ctx->chans[i].rma.ep);
	}
	cadge_ucx_drain(&ctx->ucx);
	for (uint32_t i = 0; i < ctx->peers; i++)
		ctx->ucx.unfinished |= ctx->chans[i].rma.under_way != 0;
	cadge_ucx_memory_destroy(&ctx->memory);
	cadge_ucx_close(&ctx->ucx);
	for (uint32_t i = 0; i < ctx->peers; i++) {
		cadge_mailbox_destroy(ctx->chans[i].mailbox);
		cadge_ucx_rma_fini(&ctx->chans[i].rma);
	}
	free(ctx->staging);
	free(ctx);
}

static int make_chan(struct cadge_ctx *ctx, uint32_t peer)
{
	const size_t area_bytes = cadge_mailbox_area_bytes(&ctx->shape);
	struct cadge_chan *chan = &ctx->chans[peer];
	struct cadge_blob_out key = {.at = chan->key, .room_bytes = sizeof(chan->key), .ok = true};
	struct cadge_region *region;
	struct cadge_mailbox_config config = {
		.shape = ctx->shape,
		.ops = ctx->ucx.wake_fd >= 0 ? &sleeping_ops : &polling_ops,
		.area = ctx->areas + peer * area_bytes,
		.staging = ctx->staging + peer * cadge_mailbox_staging_bytes(&ctx->shape, true),
		.put_anywhere = true,
		.peer = peer,
		.depth_max = ctx->depth,
		.message_bytes_max = ctx->message_bytes_max,
	};
	int code;

	chan->ctx = ctx;
	chan->peer = peer;
	chan->id_in = CADGE_UCX_IDS;
	code = cadge_ucx_rma_init(&chan->rma, &ctx->memory, ctx->depth + MAILBOX_RECORDS, on_done, chan);
	if (code != CADGE_DONE)
		return code;
	code = cadge_ucx_expose(&ctx->memory, config.area, area_bytes, &key, &region);
	if (code != CADGE_DONE)
		return code;
	chan->key_bytes = key.used_bytes;
	if (getrandom(&config.key, sizeof(config.key), 0) != sizeof(config.key))
		return CADGE_E_ABSENT;
	return cadge_mailbox_create(&config, &chan->mailbox);
}

static int make_mailboxes(struct cadge_ctx *ctx, uint32_t peers)
{
	int code = CADGE_DONE;

	ctx->memory.context = ctx->ucx.context;
	ctx->areas = cadge_ucx_mem_alloc(&ctx->memory, peers * cadge_mailbox_area_bytes(&ctx->shape));
	ctx->staging = aligned_alloc(64, peers * cadge_mailbox_staging_bytes(&ctx->shape, true));
	if (!ctx->areas || !ctx->staging)
		return CADGE_E_MEMORY;
	while (code == CADGE_DONE && ctx->peers < peers)
		code = make_chan(ctx, ctx->peers++);
	return code;
}

/*
 * Mapped memory is written and flushed in a few dozen nanoseconds, less than the check of a ring entry costs
 * from here on; elsewhere quiet is a round trip, and short messages may be as long as the mailbox allows.
 */
#define MAPPED_SHORT_BYTES 640u

static void choose_shape(struct cadge_ctx *ctx)
{
	const bool two_paths = ctx->direct && ctx->message_bytes_max > MAPPED_SHORT_BYTES;
	const uint64_t long_bytes = 8192; /* long for every shape */

	cadge_mailbox_shape(ctx->depth,
			    two_paths && ctx->message_bytes_max < long_bytes ? long_bytes
									     : ctx->message_bytes_max,
			    &ctx->shape);
	if (two_paths)
		ctx->shape.short_bytes = MAPPED_SHORT_BYTES;
}

static int rdma_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	const uint64_t features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 |
				  (args->wait_mode == CADGE_WAIT_BLOCK ? UCP_FEATURE_AM : 0);
	struct cadge_ctx *ctx;
	int code = cadge_open_check(args, CAPS, rdma_options, PEERS_MAX);

	if (code != CADGE_DONE)
		return code;
	ctx = calloc(1, sizeof(*ctx) + args->peers_max * sizeof(ctx->chans[0]));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	ctx->depth = (uint32_t)cadge_least(args->depth_max, DEPTH_MAX);
	ctx->wait_mode = args->wait_mode;
	ctx->message_bytes_max = cadge_least(args->message_bytes_max, BYTES_MAX);
	ctx->direct = args->place == CADGE_PLACE_HOST && !*cadge_setting_of(args, "transports", "");
	choose_shape(ctx);
	code = cadge_ucx_open(args, features, &ctx->ucx);
	if (code == CADGE_DONE) {
		code = make_mailboxes(ctx, args->peers_max);
		if (code != CADGE_DONE)
			cadge_refuse(args, code, "no memory for the mailboxes of %u peers", args->peers_max);
	}
	if (code != CADGE_DONE) {
		rdma_close(ctx);
		return code;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static void rdma_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(CAPS, ctx->ucx.place, ctx->wait_mode),
		.message_bytes_max = ctx->message_bytes_max,
		.rma_bytes_max = BYTES_MAX,
		.depth_max = ctx->depth,
		.iov_max = CADGE_MAILBOX_IOV_MAX,
		.wire_overhead_bytes = (uint32_t)cadge_mailbox_overhead_bytes(),
		.short_bytes_max = ctx->shape.short_bytes,
		.short_path = "mailbox, one write",
		.long_path = "mailbox, writes of pieces, quiet, a write that describes each",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

static void rdma_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const enum cadge_progress progress =
		ctx->direct || ctx->ucx.verbs ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;
	const enum cadge_progress atomics =
		ctx->direct || ctx->device_atomics ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_LIBRARY;

	const struct cadge_semantics semantics = {.message = CADGE_PROGRESS_CADGE,
						  .put = progress,
						  .get = progress,
						  .fetch_add = atomics,
						  .compare_swap = atomics};

	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void rdma_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = CADGE_PROTECT_SENDER_LIBRARY,
		.control_transfer = CADGE_CONTROL_POLL,
		.flow = CADGE_FLOW_CREDITS,
		.order = CADGE_ORDER_CHANNEL,
		.waker = ctx->wait_mode == CADGE_WAIT_BLOCK ? CADGE_WAKER_CADGE : CADGE_WAKER_NONE,
		.granule_bytes = ctx->shape.chunk_bytes,
		.copies_on_send = 2,
		.multiprogramming = 1,
		.thread_role = cadge_ucx_thread_role(&ctx->ucx),
		.threads_max = CADGE_UCX_THREADS,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *rdma_why(const struct cadge_ctx *ctx)
{
	return ctx->ucx.why;
}

static void rdma_counters(const struct cadge_ctx *ctx,
			  void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	for (uint32_t i = 0; i < ctx->peers; i++)
		cadge_mailbox_counters(ctx->chans[i].mailbox, each, arg);
}

static const struct cadge_layer rdma_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "rdma-ucx",
	.style = "rdma",
	.substrate = "ucx",
	.caps = CAPS,
	.options = rdma_options,
	.open = rdma_open,
	.close = rdma_close,
	.limits = rdma_limits,
	.address = rdma_address,
	.connect = rdma_connect,
	.disconnect = rdma_disconnect,
	.post = rdma_post,
	.poll = rdma_poll,
	.describe_path = rdma_describe_path,
	.library = cadge_ucx_library,
	.semantics = rdma_semantics,
	.traits = rdma_traits,
	.wait = rdma_wait,
	.event = rdma_event,
	.expose = rdma_expose,
	.unexpose = rdma_unexpose,
	.attach = rdma_attach,
	.detach = rdma_detach,
	.put = rdma_put,
	.get = rdma_get,
	.fetch_add = rdma_fetch_add,
	.compare_swap = rdma_compare_swap,
	.quiet = rdma_quiet,
	.mem_alloc = rdma_mem_alloc,
	.mem_free = rdma_mem_free,
	.counters = rdma_counters,
	.why = rdma_why,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &rdma_layer;
}
