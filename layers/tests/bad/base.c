/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, connecting, memory, and the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base.h"

struct address_blob {
	uint64_t id;
	uint32_t slot; /* of the reader at the writer */
	struct sockaddr_un at;
};

static int refuse(const struct cadge_open_args *args, int code, const char *reason)
{
	snprintf(args->error, args->error_bytes, "%s", reason);
	return code;
}

static int listen_at(struct cadge_ctx *ctx, struct sockaddr_un *at)
{
	ctx->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (ctx->listener < 0)
		return -1;
	at->sun_family = AF_UNIX;
	snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "cadge-%s-%016llx", BAD_NAME,
		 (unsigned long long)ctx->id);
	return bind(ctx->listener, (const void *)at, sizeof(*at)) < 0 || listen(ctx->listener, PEERS_MAX) < 0
		       ? -1
		       : 0;
}

static void base_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	for (unsigned int i = 0; i < PEERS_MAX; i++) {
		struct cadge_chan *chan = &ctx->chans[i];

		if (ctx->strangers[i] >= 0)
			close(ctx->strangers[i]);
		if (!chan->queue)
			continue;
		queue_drop(chan);
		reserved_drop(chan);
		free(chan->queue);
		free(chan->late);
		if (chan->fd >= 0)
			close(chan->fd);
	}
	if (ctx->epoll >= 0)
		close(ctx->epoll);
#ifndef FLAW_LEAK
	if (ctx->listener >= 0)
		close(ctx->listener);
#endif
	while (ctx->free) {
		struct cadge_lend *next = ctx->free->next;

		free(ctx->free);
		ctx->free = next;
	}
	free(ctx);
}

#ifdef FLAW_LEAK_BYTES
static void leak(void)
{
	void *volatile memory = malloc(FLAW_LEAK_BYTES); /* volatile: the compiler may not leave it out */

	if (memory)
		memset(memory, 1, FLAW_LEAK_BYTES);
}
#endif

#ifdef FLAW_HOLES
/* Of the pieces, more with each call, all are freed but the last, which keeps the heap from shrinking. */
static void leave_holes(void)
{
	static void *pieces[8192], **kept;
	static size_t count;

	count += count + 64 < sizeof(pieces) / sizeof(pieces[0]) ? 64 : 0;
	for (size_t i = 0; i < count; i++)
		pieces[i] = calloc(1, 1024);
	for (size_t i = 0; i + 1 < count; i++)
		free(pieces[i]);
	if (pieces[count - 1]) {
		*(void ***)pieces[count - 1] = kept; /* it can still be reached: no leak */
		kept = pieces[count - 1];
	}
}
#endif

static int base_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct sockaddr_un at = {0};
	struct cadge_ctx *ctx;

	if (args->place != CADGE_PLACE_HOST)
		return refuse(args, CADGE_E_UNSUPPORTED,
			      "sockets of the Unix domain join processes of one host only");
	if (args->memory_kind != CADGE_MEMORY_HOST)
		return refuse(args, CADGE_E_UNSUPPORTED, "sockets take host memory only");
	if (args->settings_count)
		return refuse(args, CADGE_E_ARGUMENT, "there are no settings");
	if (args->peers_max > PEERS_MAX)
		return refuse(args, CADGE_E_ARGUMENT, "more peers than this adapter can have");
#ifdef FLAW_NO_OPEN
	return refuse(args, CADGE_E_LIBRARY, "this adapter never opens");
#endif
#ifdef FLAW_LEAK_BYTES
	leak();
#endif
#ifdef FLAW_HOLES
	leave_holes();
#endif
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return refuse(args, CADGE_E_MEMORY, "no memory for a context");
	for (unsigned int i = 0; i < PEERS_MAX; i++)
		ctx->strangers[i] = ctx->chans[i].fd = -1;
	ctx->listener = ctx->epoll = -1;
	ctx->block = args->wait_mode == CADGE_WAIT_BLOCK;
	if (getrandom(&ctx->id, sizeof(ctx->id), 0) != (ssize_t)sizeof(ctx->id) || listen_at(ctx, &at) < 0) {
		base_close(ctx);
		return refuse(args, CADGE_E_LIBRARY, "cannot listen on a socket");
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}

static int base_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct address_blob address = {.id = ctx->id, .slot = peer};
	socklen_t length = sizeof(address.at);

	if (peer >= PEERS_MAX || *bytes_inout < sizeof(address))
		return CADGE_E_ARGUMENT;
	if (getsockname(ctx->listener, (void *)&address.at, &length) < 0)
		return CADGE_E_LIBRARY;
	memcpy(blob, &address, sizeof(address));
	*bytes_inout = sizeof(address);
	return CADGE_DONE;
}

static int base_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan_out)
{
	struct address_blob address;
	struct cadge_chan *chan;

	if (peer >= PEERS_MAX || bytes != sizeof(address) || ctx->chans[peer].used)
		return CADGE_E_ARGUMENT;
	memcpy(&address, blob, sizeof(address));
	chan = &ctx->chans[peer];
	memset(chan, 0, sizeof(*chan));
	chan->fd = -1;
	chan->queue = calloc(QUEUE_ROOM, sizeof(*chan->queue));
	if (!chan->queue)
		return CADGE_E_MEMORY;
	chan->ctx = ctx;
	chan->peer = peer;
	chan->remote_id = address.id;
	chan->remote_slot = address.slot;
	chan->remote = address.at;
	chan->dials = ctx->id < address.id;
	chan->used = true;
	*chan_out = chan;
	return CADGE_DONE;
}

static int base_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	for (unsigned int i = 0; i < PENDING_MAX; i++)
		if (ctx->pending[i].used && ctx->pending[i].peer == chan->peer)
			ctx->pending[i].used = false;
	queue_drop(chan);
	reserved_drop(chan);
	free(chan->queue);
	free(chan->late);
	if (chan->fd >= 0)
		close(chan->fd);
	memset(chan, 0, sizeof(*chan));
	chan->fd = -1;
	return CADGE_DONE;
}

#ifndef FLAW_USED
#define FLAW_USED "AF_UNIX, SOCK_SEQPACKET"
#endif

static int base_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_path path = {.medium = CADGE_MEDIUM_LOOPBACK,
					.as_asked = 1,
					.asked = "sockets of this host",
					.used = FLAW_USED};

	(void)chan;
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

static void base_library(struct cadge_library *library_out)
{
	static struct utsname uts;
	const struct cadge_library library = {.name = "Linux sockets", .stated_version = uts.release};

	if (!uts.release[0] && uname(&uts) < 0)
		snprintf(uts.release, sizeof(uts.release), "0");
	cadge_fill(library_out, &library, sizeof(library));
}

static void base_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const struct cadge_semantics semantics = {.message = CADGE_PROGRESS_LIBRARY,
						  .put = CADGE_PROGRESS_LIBRARY,
						  .get = CADGE_PROGRESS_LIBRARY,
						  .fetch_add = CADGE_PROGRESS_LIBRARY,
						  .compare_swap = CADGE_PROGRESS_LIBRARY};

	(void)ctx;
	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

static void base_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {.protection = CADGE_PROTECT_SENDER_LIBRARY,
					    .control_transfer =
						    ctx->block ? CADGE_CONTROL_INTERRUPT : CADGE_CONTROL_POLL,
					    .flow = CADGE_FLOW_LIBRARY,
					    .order = CADGE_ORDER_CHANNEL,
					    .waker = ctx->block ? CADGE_WAKER_KERNEL : CADGE_WAKER_NONE,
					    .copies_on_send = 1,
					    .multiprogramming = 1};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

static const char *base_why(const struct cadge_ctx *ctx)
{
	return ctx->why;
}

static int base_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		       uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	struct cadge_remote remote = {.bytes = bytes, .rights = rights};

	(void)flags;
	if (*key_bytes_inout < sizeof(remote) || !rights || (rights & ~CADGE_MAY_ALL) ||
	    (peer != CADGE_ALL_PEERS && (peer >= PEERS_MAX || !ctx->chans[peer].used)))
		return CADGE_E_ARGUMENT;
	if (peer != CADGE_ALL_PEERS)
		remote.for_id = ctx->chans[peer].remote_id;
	while (remote.region < REGIONS_MAX && ctx->regions[remote.region].base)
		remote.region++;
	if (remote.region == REGIONS_MAX)
		return CADGE_E_MEMORY;
	ctx->regions[remote.region] = (struct cadge_region){.base = base, .bytes = bytes};
	memcpy(key, &remote, sizeof(remote));
	*key_bytes_inout = sizeof(remote);
	*region_out = &ctx->regions[remote.region];
	return CADGE_DONE;
}

static void base_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	(void)ctx;
	memset(region, 0, sizeof(*region));
}

static int base_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		       uint32_t flags, struct cadge_remote **remote_out)
{
	struct cadge_remote *remote = malloc(sizeof(*remote));

	(void)flags;
	if (!remote)
		return CADGE_E_MEMORY;
	if (key_bytes != sizeof(*remote)) {
		free(remote);
		return CADGE_E_ARGUMENT;
	}
	memcpy(remote, key, sizeof(*remote));
	if ((intent & ~remote->rights) || (remote->for_id && remote->for_id != chan->ctx->id)) {
		free(remote);
		return CADGE_E_REFUSED;
	}
	remote->rights = intent;
	*remote_out = remote;
	return CADGE_DONE;
}

static void base_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan;
	free(remote);
}

static void *base_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)ctx;
	return base == MAP_FAILED ? NULL : base;
}

static void base_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	(void)ctx;
	munmap(base, bytes);
}

static int base_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	(void)ctx;
	return base && bytes ? CADGE_DONE : CADGE_E_ARGUMENT;
}

static void base_counters(const struct cadge_ctx *ctx,
			  void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "copies", ctx->copies);
}

#ifndef FLAW_CAPS
#define FLAW_CAPS 0
#endif
#define CAPS                                                                                                 \
	(FLAW_CAPS | CADGE_CAP_HOST | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |      \
	 CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_RPC | CADGE_CAP_DELEGATE |     \
	 CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_MEM_ALLOC | CADGE_CAP_MEM_REG |     \
	 CADGE_CAP_BATCH | CADGE_CAP_COUNTERS | CADGE_CAP_REPLY_IN_SINK | CADGE_CAP_REPLY_LATER |            \
	 CADGE_CAP_RIGHTS | CADGE_CAP_NOTIFY | CADGE_CAP_COMPARE_SWAP | CADGE_CAP_RESERVE |                  \
	 CADGE_CAP_EVENT_FD | CADGE_CAP_WHY)

static void base_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.bytes = limits_out->bytes,
		.caps = ctx->block ? CAPS : CAPS & ~(CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD),
		.message_bytes_max = PAYLOAD_MAX,
		.rma_bytes_max = RMA_MAX,
		.depth_max = DEPTH_CLAIMED,
		.iov_max = IOV_MAX_ENTRIES,
		.token_bytes = 16,
		.wire_overhead_bytes = sizeof(struct packet_head),
		.short_bytes_max = PAYLOAD_MAX,
		.short_path = "one packet",
		.long_path = "one packet",
	};

#ifdef FLAW_WHOLE_STRUCT
	memcpy(limits_out, &limits, sizeof(limits));
#else
	cadge_fill(limits_out, &limits, sizeof(limits));
#endif
}

static const struct cadge_layer base_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = BAD_NAME,
	.style = "bad",
	.substrate = BAD_FAULT,
	.caps = CAPS,
	.open = base_open,
	.close = base_close,
	.limits = base_limits,
	.address = base_address,
	.connect = base_connect,
	.disconnect = base_disconnect,
	.post = base_post,
	.poll = base_poll,
	.describe_path = base_describe_path,
	.library = base_library,
	.semantics = base_semantics,
	.traits = base_traits,
	.wait = base_wait,
	.event = base_event,
	.release = base_release,
	.flush = base_flush,
	.reserve = base_reserve,
	.commit = base_commit,
	.cancel = base_cancel,
	.call = base_call,
	.reply = base_reply,
	.fail = base_fail,
	.delegate = base_delegate,
	.expose = base_expose,
	.unexpose = base_unexpose,
	.attach = base_attach,
	.detach = base_detach,
	.put = base_put,
	.get = base_get,
	.fetch_add = base_fetch_add,
	.compare_swap = base_compare_swap,
	.quiet = base_quiet,
	.mem_alloc = base_mem_alloc,
	.mem_free = base_mem_free,
	.mem_reg = base_mem_reg,
	.mem_dereg = base_mem_reg,
	.counters = base_counters,
	.why = base_why,
};

CADGE_EXPORT const struct cadge_layer *cadge_layer_entry(void)
{
	return &base_layer;
}
