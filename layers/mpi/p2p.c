/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI point-to-point messages: MPI_Isend against MPI_Irecv from the named rank, posted before.
 *
 * MPI starts once a process and cannot start again, so the first open starts it and the end of the process ends it
 * (p2p_exit). Channels are told apart by tag: each connection of each context takes a new one and writes it into its
 * address. All use MPI_COMM_WORLD: nobody else speaks MPI in this process, a communicator of one's own has to be agreed on
 * by all ranks, and making one leaves a hook in Open MPI 4.1 that slows every later progress by 5 %. The first two
 * messages of a channel each way are greetings without payload: with the second both know that both ways work.
 *
 * Receives complete in the order of their posting because only the oldest is tested. Each holds the longest message; a few
 * are posted, and a message that finds none waits inside MPI, which has no flow control of its own.
 */
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <mpi.h>

#include "cadge/layer.h"
#include "common/wire.h"
#include "mpi/path.h"

enum {
	P2P_POSTED = 8,	       /* receives posted a channel */
	P2P_POSTED_LOW = 4,    /* below this they are posted at once, else when nothing else is to do */
	P2P_SPARE = 16,	       /* buffers beyond those that a caller may keep */
	P2P_EVENTS = 16,       /* most messages of a channel in one poll */
	P2P_IOV_MAX = 8,
	P2P_DEPTH_MAX = 1024,
	P2P_PEERS_MAX = 4096,
	P2P_TAGS = 1 << 20,    /* tags that one process uses in turn */
	P2P_GREETINGS = 2,
	P2P_EXIT_SECONDS = 5,  /* how long the end of the process waits for the other ranks */
};
#define P2P_POOL_BYTES (UINT64_C(1) << 30) /* most address space for buffers of each kind */

struct p2p_send {
	MPI_Request request;
	uint64_t token;
	bool greeting;
	void *staging; /* for messages in several pieces */
	struct p2p_send *next;
};

/* A receive buffer; what a caller keeps of a message is this. */
struct cadge_lend {
	MPI_Request request;
	void *data;
	struct cadge_lend *next;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	int rank, tag_in, tag_out;
	bool connected, begins, up, down;
	uint32_t greetings_sent, greetings_seen, posted, queued;
	/* Oldest first; the requests of the oldest are in oldest[], where one call tests both. */
	MPI_Request oldest[2];
	struct cadge_lend *receive_head, *receive_tail;
	struct p2p_send *send_head, *send_tail;
};
enum { P2P_RECEIVE = 0, P2P_SEND = 1 };

struct cadge_ctx {
	uint32_t peers, depth;
	enum cadge_place place;
	uint64_t message_bytes_max, eager_bytes;
	struct cadge_chan *chan;
	struct cadge_lend *lends, *free_lend;
	struct p2p_send *sends, *free_send;
	void *receive_pool, *send_pool;
	size_t receive_pool_bytes, send_pool_bytes;
	uint64_t gathered_messages;
	char interface[64]; /* what the tcp transport was told to use */
};

/* MPI in this process. */
static struct {
	pid_t pid;	  /* of the process that started it; 0: not started */
	bool unclean;	  /* something is unfinished: MPI_Finalize could wait for ever */
	uint32_t open;	  /* contexts */
	int tag;	  /* the next to use */
	int exit_status;
} p2p_world;

static void p2p_leave(int signal_number)
{
	(void)signal_number;
	_exit(p2p_world.exit_status);
}

/*
 * At the end of the process. mpirun takes a rank that leaves without MPI_Finalize for a crash, but MPI_Finalize waits for
 * all ranks: it is tried where everything was closed in order, and given up after P2P_EXIT_SECONDS.
 */
static void p2p_exit(int status, void *argument)
{
	struct sigaction action = {.sa_handler = p2p_leave};
	struct itimerval limit = {.it_value = {.tv_sec = P2P_EXIT_SECONDS}};

	(void)argument;
	if (p2p_world.pid != getpid() || p2p_world.open || p2p_world.unclean)
		return;
	p2p_world.exit_status = status;
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &limit, NULL))
		return;
	if (MPI_Finalize() != MPI_SUCCESS)
		fprintf(stderr, "cadge: MPI_Finalize failed\n");
	limit.it_value.tv_sec = 0;
	if (setitimer(ITIMER_REAL, &limit, NULL))
		fprintf(stderr, "cadge: the timer cannot be stopped\n");
}

static int p2p_refuse(const struct cadge_open_args *args, int code, const char *reason)
{
	snprintf(args->error, args->error_bytes, "%s", reason);
	return code;
}

static int p2p_start(const struct cadge_open_args *args)
{
	const char *ranks = getenv("OMPI_COMM_WORLD_SIZE");

	if (args->place == CADGE_PLACE_NET && !if_nametoindex(args->device))
		return p2p_refuse(args, CADGE_E_TRANSPORT, "there is no such network interface here");
	if (p2p_world.pid)
		return p2p_world.pid == getpid() ? CADGE_DONE :
						   p2p_refuse(args, CADGE_E_LIBRARY, "MPI was started before fork");
	if (!ranks || atoi(ranks) < 2)
		return p2p_refuse(args, CADGE_E_TRANSPORT,
				  "not started by mpirun with two or more ranks (OMPI_COMM_WORLD_SIZE)");
	/* Placement, not tuning: the data network, and the network even where both ranks share a host. mpirun's word stays. */
	if (setenv("OMPI_MCA_btl_tcp_if_include", args->device, 0) ||
	    (args->place == CADGE_PLACE_NET && setenv("OMPI_MCA_btl", "^vader,sm", 0)))
		return p2p_refuse(args, CADGE_E_MEMORY, "the environment cannot be extended");
	/*
	 * As most programs start it. MPI_THREAD_FUNNELED would allow the caller further threads without MPI, which do no
	 * harm here either, but makes Open MPI 4.1 take locks: 0.45 us become 0.70 at 8 bytes.
	 */
	if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
		return p2p_refuse(args, CADGE_E_LIBRARY, "MPI_Init failed");
	p2p_world.pid = getpid();
	if (MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != MPI_SUCCESS)
		return p2p_refuse(args, CADGE_E_LIBRARY, "MPI keeps errors fatal");
	if (on_exit(p2p_exit, NULL))
		return p2p_refuse(args, CADGE_E_MEMORY, "no room for an exit handler");
	return CADGE_DONE;
}

static void p2p_free_lend(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	lend->next = ctx->free_lend;
	ctx->free_lend = lend;
}

static void p2p_free_send(struct cadge_ctx *ctx, struct p2p_send *send)
{
	send->next = ctx->free_send;
	ctx->free_send = send;
}

/* Address space for `count` buffers, touched only where it is used; each begins at another offset of a page. */
static void *p2p_pool(uint32_t *count_inout, uint64_t buffer_bytes, size_t *stride_out, size_t *bytes_out)
{
	uint64_t stride_bytes = ((buffer_bytes + 127) / 128 * 2 + 1) * 64;
	void *pool;

	if (*count_inout * stride_bytes > P2P_POOL_BYTES)
		*count_inout = P2P_POOL_BYTES / stride_bytes > P2P_SPARE ? (uint32_t)(P2P_POOL_BYTES / stride_bytes) :
									   P2P_SPARE;
	*stride_out = stride_bytes;
	*bytes_out = *count_inout * stride_bytes;
	pool = mmap(NULL, *bytes_out, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return pool == MAP_FAILED ? NULL : pool;
}

static int p2p_make_buffers(struct cadge_ctx *ctx)
{
	uint32_t receives = ctx->depth * ctx->peers + P2P_SPARE * ctx->peers, sends = ctx->depth * ctx->peers, i;
	size_t stride_bytes;

	ctx->receive_pool = p2p_pool(&receives, ctx->message_bytes_max, &stride_bytes, &ctx->receive_pool_bytes);
	ctx->lends = calloc(receives, sizeof(*ctx->lends));
	if (!ctx->receive_pool || !ctx->lends)
		return CADGE_E_MEMORY;
	for (i = receives; i-- > 0;) {
		ctx->lends[i].data = (char *)ctx->receive_pool + i * stride_bytes;
		p2p_free_lend(ctx, &ctx->lends[i]);
	}
	/* Two more a peer for greetings. */
	sends += P2P_GREETINGS * ctx->peers;
	ctx->send_pool = p2p_pool(&sends, ctx->message_bytes_max, &stride_bytes, &ctx->send_pool_bytes);
	ctx->sends = calloc(sends, sizeof(*ctx->sends));
	if (!ctx->send_pool || !ctx->sends)
		return CADGE_E_MEMORY;
	for (i = sends; i-- > 0;) {
		ctx->sends[i].staging = (char *)ctx->send_pool + i * stride_bytes;
		p2p_free_send(ctx, &ctx->sends[i]);
	}
	return CADGE_DONE;
}

static int p2p_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan);

static void p2p_close(struct cadge_ctx *ctx)
{
	uint32_t peer;

	if (!ctx)
		return;
	for (peer = 0; ctx->chan && peer < ctx->peers; peer++)
		if (ctx->chan[peer].connected && p2p_disconnect(ctx, &ctx->chan[peer]))
			p2p_world.unclean = true;
	/* What MPI may still write to stays mapped until the process ends. */
	if (!p2p_world.unclean) {
		if (ctx->receive_pool)
			munmap(ctx->receive_pool, ctx->receive_pool_bytes);
		if (ctx->send_pool)
			munmap(ctx->send_pool, ctx->send_pool_bytes);
	}
	p2p_world.open--;
	free(ctx->lends);
	free(ctx->sends);
	free(ctx->chan);
	free(ctx);
}

/* Comes round after so many connections that nothing of the old one is left. */
static int p2p_new_tag(void)
{
	p2p_world.tag = (p2p_world.tag + 1) % P2P_TAGS;
	return p2p_world.tag;
}

static int p2p_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx;
	const char *interface;
	uint32_t peer;
	int code;

	if (args->settings_count)
		return p2p_refuse(args, CADGE_E_ARGUMENT, "this layer has no settings; Open MPI reads OMPI_MCA_* by itself");
	if (args->place == CADGE_PLACE_SELF || args->peers_max > P2P_PEERS_MAX)
		return p2p_refuse(args, CADGE_E_UNSUPPORTED, "MPI messages connect two processes");
	if (args->wait_mode == CADGE_WAIT_BLOCK)
		return p2p_refuse(args, CADGE_E_UNSUPPORTED, "MPI has no wait that sleeps: MPI_Wait polls, at best it yields");
	if (args->message_bytes_max > INT_MAX)
		return p2p_refuse(args, CADGE_E_TOO_LARGE, "MPI counts bytes in an int");
	code = p2p_start(args);
	if (code)
		return code;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return p2p_refuse(args, CADGE_E_MEMORY, "no memory");
	p2p_world.open++;
	ctx->peers = args->peers_max;
	ctx->depth = args->depth_max < P2P_DEPTH_MAX ? args->depth_max : P2P_DEPTH_MAX;
	ctx->place = args->place;
	ctx->message_bytes_max = args->message_bytes_max;
	interface = getenv("OMPI_MCA_btl_tcp_if_include");
	snprintf(ctx->interface, sizeof(ctx->interface), "%s", interface ? interface : "");
	ctx->eager_bytes = mpi_path_eager_bytes("tcp");
	if (ctx->place == CADGE_PLACE_HOST) {
		uint64_t vader = mpi_path_eager_bytes("vader"); /* called sm from version 5 */

		ctx->eager_bytes = vader ? vader : mpi_path_eager_bytes("sm");
	}
	ctx->chan = calloc(ctx->peers, sizeof(*ctx->chan));
	code = ctx->chan ? p2p_make_buffers(ctx) : CADGE_E_MEMORY;
	if (code) {
		snprintf(args->error, args->error_bytes, "no memory for messages of %llu bytes",
			 (unsigned long long)args->message_bytes_max);
		p2p_close(ctx);
		return code;
	}
	for (peer = 0; peer < ctx->peers; peer++)
		ctx->chan[peer].tag_in = p2p_new_tag();
	*ctx_out = ctx;
	return CADGE_DONE;
}

static const struct cadge_layer p2p_layer;

static void p2p_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	limits_out->caps = p2p_layer.caps & ~(ctx->place == CADGE_PLACE_HOST ? CADGE_CAP_NET : CADGE_CAP_HOST);
	limits_out->message_bytes_max = ctx->message_bytes_max;
	limits_out->rma_bytes_max = 0;
	limits_out->depth_max = ctx->depth;
	limits_out->iov_max = P2P_IOV_MAX;
	limits_out->token_bytes = 0;
	limits_out->wire_overhead_bytes = 0;
	limits_out->short_bytes_max = ctx->eager_bytes;
	limits_out->short_path = "eager";
	limits_out->long_path = "rendezvous";
}

static int p2p_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	int rank;

	if (peer >= ctx->peers)
		return CADGE_E_ARGUMENT;
	if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
		return CADGE_E_LIBRARY;
	cadge_blob_u32(&out, (uint32_t)rank);
	cadge_blob_u32(&out, (uint32_t)ctx->chan[peer].tag_in);
	if (!out.ok)
		return CADGE_E_ARGUMENT;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static int p2p_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes, struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	uint32_t rank = cadge_blob_take_u32(&in), tag = cadge_blob_take_u32(&in);
	struct cadge_chan *chan;
	int ranks, own_rank;

	if (MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &own_rank) != MPI_SUCCESS)
		return CADGE_E_LIBRARY;
	if (!in.ok || in.left_bytes || peer >= ctx->peers || ctx->chan[peer].connected || rank >= (uint32_t)ranks ||
	    tag >= P2P_TAGS)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chan[peer];
	chan->ctx = ctx;
	chan->peer = peer;
	chan->rank = (int)rank;
	chan->tag_out = (int)tag;
	chan->oldest[P2P_RECEIVE] = MPI_REQUEST_NULL;
	chan->oldest[P2P_SEND] = MPI_REQUEST_NULL;
	chan->begins = own_rank < chan->rank;
	chan->connected = true;
	*chan_out = chan;
	return CADGE_DONE;
}

/* Ends one receive: taken back if nothing came for it, else left to MPI together with its buffer. */
static void p2p_take_back(struct cadge_ctx *ctx, struct cadge_lend *lend, MPI_Request *request)
{
	int done = 0;

	if (MPI_Cancel(request) == MPI_SUCCESS && MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) {
		p2p_free_lend(ctx, lend);
		return;
	}
	p2p_world.unclean = true;
}

static int p2p_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	struct cadge_lend *lend, *next_lend;
	struct p2p_send *send, *next_send;

	for (lend = chan->receive_head; lend; lend = next_lend) {
		next_lend = lend->next;
		p2p_take_back(ctx, lend, lend == chan->receive_head ? &chan->oldest[P2P_RECEIVE] : &lend->request);
	}
	for (send = chan->send_head; send; send = next_send) {
		MPI_Request *request = send == chan->send_head ? &chan->oldest[P2P_SEND] : &send->request;
		int done = 0;

		next_send = send->next;
		if (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done)
			p2p_free_send(ctx, send);
		else
			p2p_world.unclean = true;
	}
	memset(chan, 0, sizeof(*chan));
	chan->tag_in = p2p_new_tag();
	return CADGE_DONE;
}

/* Posts receives until so many are posted. */
static int p2p_repost(struct cadge_ctx *ctx, struct cadge_chan *chan, uint32_t wanted)
{
	while (chan->posted < wanted && ctx->free_lend) {
		struct cadge_lend *lend = ctx->free_lend;
		MPI_Request *request = chan->receive_head ? &lend->request : &chan->oldest[P2P_RECEIVE];

		if (MPI_Irecv(lend->data, (int)ctx->message_bytes_max, MPI_BYTE, chan->rank, chan->tag_in, MPI_COMM_WORLD,
			      request) != MPI_SUCCESS)
			return CADGE_E_DOWN;
		ctx->free_lend = lend->next;
		lend->next = NULL;
		if (chan->receive_head)
			chan->receive_tail->next = lend;
		else
			chan->receive_head = lend;
		chan->receive_tail = lend;
		chan->posted++;
	}
	return CADGE_DONE;
}

/* DONE, QUEUED or E_DOWN. A short message is usually gone when MPI_Isend returns. */
static int p2p_send(struct cadge_chan *chan, const void *data, size_t bytes, struct p2p_send *send)
{
	struct cadge_ctx *ctx = chan->ctx;
	int done = 0;

	if (MPI_Isend(data, (int)bytes, MPI_BYTE, chan->rank, chan->tag_out, MPI_COMM_WORLD, &send->request) != MPI_SUCCESS)
		return CADGE_E_DOWN;
	if (bytes <= ctx->eager_bytes && MPI_Test(&send->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
		return CADGE_E_DOWN;
	ctx->free_send = send->next;
	if (done) {
		p2p_free_send(ctx, send);
		return CADGE_DONE;
	}
	send->next = NULL;
	chan->queued++;
	if (chan->send_head) {
		chan->send_tail->next = send;
	} else {
		chan->send_head = send;
		chan->oldest[P2P_SEND] = send->request;
	}
	chan->send_tail = send;
	return CADGE_QUEUED;
}

static int p2p_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct p2p_send *send = ctx->free_send;
	const void *data = count ? iov->base : NULL;
	size_t bytes = 0;
	uint32_t i;

	(void)flags; /* MORE needs capability BATCH */
	if (count > P2P_IOV_MAX)
		return CADGE_E_ARGUMENT;
	for (i = 0; i < count; i++)
		bytes += iov[i].bytes;
	if (bytes > ctx->message_bytes_max)
		return CADGE_E_TOO_LARGE;
	if (chan->down)
		return CADGE_E_DOWN;
	if (!chan->up || !send || chan->queued >= ctx->depth)
		return CADGE_BUSY;
	if (count > 1) {
		char *to = send->staging;

		for (i = 0; i < count; to += iov[i].bytes, i++)
			if (iov[i].bytes)
				memcpy(to, iov[i].base, iov[i].bytes);
		data = send->staging;
		ctx->gathered_messages++;
	}
	send->token = token;
	send->greeting = false;
	return p2p_send(chan, data, bytes, send);
}

static int p2p_down(struct cadge_chan *chan, struct cadge_sink *sink)
{
	if (chan->down)
		return 0;
	p2p_world.unclean = true;
	chan->up = false;
	chan->down = true;
	sink->down(sink, chan->peer, CADGE_E_DOWN);
	return 1;
}

static int p2p_sent(struct cadge_ctx *ctx, struct cadge_chan *chan, struct cadge_sink *sink)
{
	struct p2p_send *send = chan->send_head;
	uint64_t token = send->token;
	bool greeting = send->greeting;

	chan->queued--;
	chan->send_head = send->next;
	chan->oldest[P2P_SEND] = send->next ? send->next->request : MPI_REQUEST_NULL;
	p2p_free_send(ctx, send);
	if (greeting)
		return 0;
	sink->sent(sink, chan->peer, token, CADGE_DONE);
	return 1;
}

static int p2p_received(struct cadge_ctx *ctx, struct cadge_chan *chan, const MPI_Status *status, struct cadge_sink *sink)
{
	struct cadge_lend *lend = chan->receive_head;
	enum cadge_keep keep = CADGE_TAKEN;
	int bytes, events = 0;

	chan->receive_head = lend->next;
	chan->oldest[P2P_RECEIVE] = lend->next ? lend->next->request : MPI_REQUEST_NULL;
	chan->posted--;
	if (MPI_Get_count(status, MPI_BYTE, &bytes) != MPI_SUCCESS)
		return p2p_down(chan, sink);
	if (chan->greetings_seen < P2P_GREETINGS) {
		chan->greetings_seen++;
	} else {
		keep = sink->recv(sink, chan->peer, lend->data, (size_t)bytes, lend);
		events = 1;
	}
	if (keep == CADGE_TAKEN)
		p2p_free_lend(ctx, lend);
	return events;
}

/*
 * The side that begins sends its first greeting at once and the second when an answer came; the other answers. If both began,
 * both would open a TCP connection to the other at the same time, and Open MPI 4.1 sometimes gives up over that.
 */
static int p2p_greet(struct cadge_ctx *ctx, struct cadge_chan *chan, struct cadge_sink *sink)
{
	uint32_t allowed = chan->begins ? 1 + chan->greetings_seen : 2 * chan->greetings_seen;

	while (chan->greetings_sent < P2P_GREETINGS && chan->greetings_sent < allowed && ctx->free_send) {
		ctx->free_send->greeting = true;
		if (p2p_send(chan, NULL, 0, ctx->free_send) < 0)
			return p2p_down(chan, sink);
		chan->greetings_sent++;
	}
	if (chan->greetings_sent < P2P_GREETINGS || chan->greetings_seen < P2P_GREETINGS)
		return 0;
	chan->up = true;
	sink->up(sink, chan->peer);
	return 1;
}

static int p2p_poll_chan(struct cadge_ctx *ctx, struct cadge_chan *chan, struct cadge_sink *sink)
{
	MPI_Status status[2];
	int events = 0, round;

	for (round = 0; round < P2P_EVENTS; round++) {
		int done = 0, index[2] = {P2P_RECEIVE, P2P_SEND}, i, ret;

		/* Each of these makes MPI's progress once, if nothing is finished. */
		if (chan->oldest[P2P_SEND] == MPI_REQUEST_NULL)
			ret = MPI_Test(&chan->oldest[P2P_RECEIVE], &done, status);
		else
			ret = MPI_Testsome(2, chan->oldest, &done, index, status);
		if (ret != MPI_SUCCESS)
			return events + p2p_down(chan, sink);
		if (done <= 0) {
			/* Time to spare: one receive more, so that posting it delays no reply. */
			if (chan->posted < P2P_POSTED && p2p_repost(ctx, chan, chan->posted + 1))
				return events + p2p_down(chan, sink);
			break;
		}
		for (i = 0; i < done; i++)
			events += index[i] == P2P_SEND ? p2p_sent(ctx, chan, sink) :
							 p2p_received(ctx, chan, &status[i], sink);
		if (p2p_repost(ctx, chan, P2P_POSTED_LOW))
			return events + p2p_down(chan, sink);
		if (events)
			break;
	}
	return chan->up || chan->down ? events : events + p2p_greet(ctx, chan, sink);
}

static int p2p_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;
	uint32_t peer;

	for (peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];

		if (!chan->connected || chan->down)
			continue;
		if (!chan->posted && p2p_repost(ctx, chan, P2P_POSTED))
			events += p2p_down(chan, sink);
		else
			events += p2p_poll_chan(ctx, chan, sink);
	}
	return events;
}

static void p2p_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	p2p_free_lend(ctx, lend);
}

static int p2p_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	const struct cadge_ctx *ctx = chan->ctx;
	struct mpi_path path;
	bool memory, tcp, within = ctx->place == CADGE_PLACE_HOST;

	mpi_path_read(MPI_COMM_WORLD, chan->rank, &path);
	memory = strcmp(path.btl, "vader") == 0 || strcmp(path.btl, "sm") == 0;
	tcp = strncmp(path.btl, "tcp", 3) == 0;
	path_out->medium = CADGE_MEDIUM_UNKNOWN;
	if (memory)
		path_out->medium = CADGE_MEDIUM_MEMORY;
	else if (tcp)
		path_out->medium = within ? CADGE_MEDIUM_LOOPBACK : CADGE_MEDIUM_NETWORK;
	snprintf(path_out->asked, sizeof(path_out->asked), "Open MPI's default%s%s",
		 within ? " within a host (shared memory)" : " between hosts, tcp on ", within ? "" : ctx->interface);
	path_out->as_asked = within ? memory : tcp && !strchr(path.btl, ',');
	snprintf(path_out->used, sizeof(path_out->used), "pml %s; btl %s; mtl %s; osc none (no window)%s%s",
		 path.pml[0] ? path.pml : "unknown", path.btl[0] ? path.btl : "none", path.mtl[0] ? path.mtl : "none",
		 tcp ? "; btl_tcp_if_include " : "", tcp ? ctx->interface : "");
	snprintf(path_out->device, sizeof(path_out->device), "%s", tcp ? ctx->interface : "");
	snprintf(path_out->note, sizeof(path_out->note), "%s", path.method);
	return CADGE_DONE;
}

static void p2p_library(struct cadge_library *library_out)
{
	static char text[MPI_MAX_LIBRARY_VERSION_STRING], *version;
	int bytes;

	library_out->name = "Open MPI";
	library_out->symbol = (const void *)(uintptr_t)&MPI_Init;
	/* "Open MPI v4.1.4, package: ..." */
	if (!version && MPI_Get_library_version(text, &bytes) == MPI_SUCCESS) {
		text[strcspn(text, ",")] = '\0';
		version = strstr(text, " v");
		version = version ? version + 2 : text;
	}
	library_out->stated_version = version ? version : "unknown";
}

static void p2p_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	(void)ctx;
	semantics_out->message = CADGE_PROGRESS_LIBRARY;
	semantics_out->put = CADGE_PROGRESS_NONE;
	semantics_out->get = CADGE_PROGRESS_NONE;
	semantics_out->fetch_add = CADGE_PROGRESS_NONE;
}

static void p2p_counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "gathered_messages", ctx->gathered_messages);
}

static const struct cadge_layer p2p_layer = {
	.abi = CADGE_ABI,
	.bytes = sizeof(struct cadge_layer),
	.name = "mpi-p2p",
	.style = "mpi",
	.substrate = "p2p",
	.caps = CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_LEND |
		CADGE_CAP_POST_IN_SINK | CADGE_CAP_COUNTERS | CADGE_CAP_OWN_THREADS | CADGE_CAP_ONE_INIT,
	/* Short messages: into a shared fragment or the socket, out of it into the posted buffer. */
	.traits = {
		.protection = CADGE_PROTECT_RECEIVER_LIBRARY,
		.control_transfer = CADGE_CONTROL_POLL,
		.copies_on_send = 1,
		.copies_on_receive = 1,
		.multiprogramming = 1,
	},
	.open = p2p_open,
	.close = p2p_close,
	.limits = p2p_limits,
	.address = p2p_address,
	.connect = p2p_connect,
	.disconnect = p2p_disconnect,
	.post = p2p_post,
	.poll = p2p_poll,
	.describe_path = p2p_describe_path,
	.library = p2p_library,
	.semantics = p2p_semantics,
	.release = p2p_release,
	.counters = p2p_counters,
};

const struct cadge_layer *cadge_layer_entry(void)
{
	return &p2p_layer;
}
