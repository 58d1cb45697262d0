/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of rdma-mpi that move bytes; see mpi.c. */
#include "rdma/mpi_flow.h"

#include <poll.h>

#include "wire/mpi/window.h"
#include "wire/mpi/world.h"

#if defined(__GNUC__) && !defined(__clang__)
/* MPICH 4 declares the statuses of MPI_Testsome as an array, of which its MPI_STATUSES_IGNORE is a short one to gcc. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

static bool rma_went_well(struct cadge_ctx *ctx, const char *call, int ret)
{
	return __builtin_expect(ret == MPI_SUCCESS, 1) ||
	       mpi_world_why(call, ret, ctx->why, sizeof(ctx->why));
}

/* What MPI was given: DONE where it is complete, else QUEUED, and poll will find it. Takes the first of the pool. */
static int rma_begun(struct cadge_ctx *ctx, MPI_Request request, struct rma_op op)
{
	struct rma_op *kept = ctx->free;
	int done = 0;

	if (!rma_went_well(ctx, "MPI_Test", MPI_Test(&request, &done, MPI_STATUS_IGNORE)))
		return CADGE_E_DOWN;
	if (done)
		return CADGE_DONE;
	ctx->free = kept->next;
	op.word = kept->word; /* where MPI was told that it lies */
	*kept = op;
	ctx->requests[ctx->outstanding] = request;
	ctx->ops[ctx->outstanding++] = kept;
	return CADGE_QUEUED;
}

static int rma_write(struct cadge_chan *chan, const void *local, size_t bytes, uint64_t offset_bytes,
		     uint64_t token, struct cadge_mailbox_op *owner)
{
	struct cadge_ctx *ctx = chan->ctx;
	MPI_Request request;

	if (!ctx->free || chan->held)
		return CADGE_BUSY;
	if (!rma_went_well(ctx, "MPI_Rput",
			   MPI_Rput(local, (int)bytes, MPI_BYTE, chan->rank, (MPI_Aint)offset_bytes,
				    (int)bytes, MPI_BYTE, mpi_window(), &request)))
		return CADGE_E_DOWN;
	chan->begun++;
	return rma_begun(ctx, request, (struct rma_op){.chan = chan, .token = token, .owner = owner});
}

/* MPI has no request for "visible there": MPI_Win_flush (MPI-3.1, section 11.5.4) returns when it is so. */
static int rma_flush(struct cadge_chan *chan)
{
	struct cadge_ctx *ctx = chan->ctx;

	ctx->flushes++;
	return rma_went_well(ctx, "MPI_Win_flush", MPI_Win_flush(chan->rank, mpi_window())) ? CADGE_DONE
											    : CADGE_E_DOWN;
}

/*
 * Where the target's library has to run, a flush would wait for it, and no slot may. So the quiet waits until a get that
 * was begun after all writes has come back: the target has just run and has them all, and the flush is short. A flush
 * is of every write of the target, and so would wait for those that were begun after that get: where there are
 * some, no more are begun until a get has come back that was begun after them.
 */
static int rma_quiet(struct cadge_chan *chan, uint64_t token, struct cadge_mailbox_op *owner)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct rma_op *op = ctx->free;

	if (ctx->direct)
		return rma_flush(chan);
	if (!op)
		return CADGE_BUSY;
	ctx->free = op->next;
	*op = (struct rma_op){
		.kind = RMA_QUIET, .chan = chan, .token = token, .owner = owner, .covers = chan->begun};
	*chan->quiets_end = op;
	chan->quiets_end = &op->next;
	return CADGE_QUEUED;
}

static int rma_mailbox_put(void *link, const void *local, size_t bytes, uint64_t offset_bytes,
			   struct cadge_mailbox_op *op)
{
	struct cadge_chan *chan = link;

	return rma_write(chan, local, bytes, chan->area_offset_bytes + offset_bytes, 0, op);
}

static int rma_mailbox_quiet(void *link, struct cadge_mailbox_op *op)
{
	return rma_quiet(link, 0, op);
}

const struct cadge_mailbox_ops rdma_mpi_mailbox_ops = {.put = rma_mailbox_put, .quiet = rma_mailbox_quiet};

static int rma_tell(struct cadge_ctx *ctx, const struct rma_op *op, int code)
{
	if (op->owner) {
		cadge_mailbox_done(op->owner, code);
		return 0;
	}
	ctx->sink->sent(ctx->sink, op->chan->peer, op->token, code);
	return 1;
}

/* A probe came back: whatever waits for it is flushed together. */
static int rma_reached(struct cadge_chan *chan, uint64_t covers)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct rma_op *quiets = chan->quiets, *next;
	int events = 0, code;

	chan->reached = covers > chan->reached ? covers : chan->reached;
	if (!quiets || quiets->covers > chan->reached)
		return 0;
	chan->held = chan->reached < chan->begun;
	if (chan->held)
		return 0;
	code = rma_flush(chan);
	chan->quiets = NULL;
	chan->quiets_end = &chan->quiets;
	for (; quiets; quiets = next) {
		const struct rma_op op = *quiets;

		next = quiets->next;
		CADGE_POOL_GIVE(ctx->free, quiets);
		events += rma_tell(ctx, &op, code);
	}
	return events;
}

static int rma_finish(struct cadge_ctx *ctx, const struct rma_op *op)
{
	if (!op->chan)
		return 0;
	return op->kind == RMA_PROBE ? rma_reached(op->chan, op->covers) : rma_tell(ctx, op, CADGE_DONE);
}

/* Finds what is complete, and gives it to `finish`; NULL: to nobody. Returns the number of events, or E_LIBRARY. */
static int rma_completions(struct cadge_ctx *ctx, int (*finish)(struct cadge_ctx *, const struct rma_op *))
{
	struct rma_op done[RMA_EVENTS];
	int at[RMA_EVENTS], count, kept = 0, found = 0, events = 0, i;
	const int tested = ctx->outstanding < RMA_EVENTS ? ctx->outstanding : RMA_EVENTS;

	if (!rma_went_well(ctx, "MPI_Testsome",
			   MPI_Testsome(tested, ctx->requests, &count, at, MPI_STATUSES_IGNORE)))
		return CADGE_E_LIBRARY;
	if (count <= 0)
		return 0;
	/* what is complete leaves both lists before anyone hears of it, and may begin something new */
	for (i = 0; i < ctx->outstanding; i++) {
		if (i < tested && ctx->requests[i] == MPI_REQUEST_NULL) {
			done[found++] = *ctx->ops[i];
			CADGE_POOL_GIVE(ctx->free, ctx->ops[i]);
			continue;
		}
		ctx->requests[kept] = ctx->requests[i];
		ctx->ops[kept++] = ctx->ops[i];
	}
	ctx->outstanding = kept;
	for (i = 0; finish && i < found; i++)
		events += finish(ctx, &done[i]);
	return events;
}

/*
 * Lets go what MPI gathers, and sees how far the target has come, by a get of one word. Osc pt2pt (4.1) sends none of its
 * small writes before a flush or a get with a request, though their own requests are complete.
 */
static int rma_push(struct cadge_ctx *ctx)
{
	int events = 0;

	for (uint32_t peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];
		struct rma_op *op = ctx->free;
		MPI_Request request;
		int code;

		if (!chan->connected || !op ||
		    (chan->probed == chan->begun && (!chan->quiets || chan->reached < chan->probed)))
			continue;
		if (!rma_went_well(ctx, "MPI_Rget",
				   MPI_Rget(&op->word, sizeof(op->word), MPI_BYTE, chan->rank,
					    (MPI_Aint)chan->area_offset_bytes, sizeof(op->word), MPI_BYTE,
					    mpi_window(), &request)))
			return CADGE_E_LIBRARY;
		chan->probed = chan->begun;
		code = rma_begun(ctx, request,
				 (struct rma_op){.kind = RMA_PROBE, .chan = chan, .covers = chan->begun});
		if (code < 0)
			return CADGE_E_LIBRARY;
		if (code == CADGE_DONE)
			events += rma_reached(chan, chan->begun);
	}
	return events;
}

/* Any call will do: it is what lets the library answer others. */
static int rma_serve(struct cadge_ctx *ctx)
{
	int unused;

	return rma_went_well(
		       ctx, "MPI_Iprobe",
		       MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &unused, MPI_STATUS_IGNORE))
		       ? 0
		       : CADGE_E_LIBRARY;
}

int rdma_mpi_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0, completed;
	uint32_t peer;

	ctx->sink = sink;
	if (!ctx->direct) {
		events = rma_push(ctx);
		if (events < 0)
			return events;
	}
	if (ctx->outstanding) {
		completed = rma_completions(ctx, rma_finish);
		if (completed < 0)
			return completed;
		events += completed;
	} else if (!ctx->direct || ++ctx->idle_polls % RMA_IDLE_POLLS == 0) {
		if (rma_serve(ctx) < 0)
			return CADGE_E_LIBRARY;
	}
	for (peer = 0; peer < ctx->peers; peer++)
		if (ctx->chan[peer].connected)
			events += cadge_mailbox_poll(ctx->chan[peer].mailbox, sink);
	return events;
}

void rdma_mpi_forget(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	while (chan->quiets) {
		struct rma_op *op = CADGE_POOL_TAKE(chan->quiets);

		CADGE_POOL_GIVE(ctx->free, op);
	}
	chan->quiets_end = &chan->quiets;
	chan->begun = chan->probed = chan->reached = 0;
	chan->held = false;
	for (int i = 0; i < ctx->outstanding; i++)
		if (ctx->ops[i]->chan == chan)
			ctx->ops[i]->chan = NULL;
}

/* Peers whose flush has just begun wait for this library, and cannot go on without it: so it answers for a moment more. */
bool rdma_mpi_drain(struct cadge_ctx *ctx)
{
	const int lingers = ctx->direct ? 0 : RMA_LINGER_MS;

	for (int rounds = 0; rounds < (ctx->outstanding ? RMA_DRAIN_MS : lingers); rounds++)
		if (rma_completions(ctx, NULL) < 0 || rma_serve(ctx) < 0 || poll(NULL, 0, 1) < 0)
			return false;
	return !ctx->outstanding;
}

int rdma_mpi_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		  uint64_t token)
{
	(void)flags; /* MORE needs capability BATCH */
	return cadge_mailbox_post(chan->mailbox, iov, count, token);
}

static bool rma_inside(const struct cadge_remote *remote, size_t bytes, uint64_t offset_bytes)
{
	return bytes <= remote->bytes && offset_bytes <= remote->bytes - bytes;
}

int rdma_mpi_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		 uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	if (flags & CADGE_NOTIFY)
		return CADGE_E_UNSUPPORTED;
	if (bytes > RMA_BYTES_MAX)
		return CADGE_E_TOO_LARGE;
	if (!rma_inside(remote, bytes, offset_bytes))
		return CADGE_E_ARGUMENT;
	return bytes ? rma_write(chan, local, bytes, remote->offset_bytes + offset_bytes, token, NULL)
		     : CADGE_DONE;
}

int rdma_mpi_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		 uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	MPI_Request request;

	(void)flags;
	if (bytes > RMA_BYTES_MAX)
		return CADGE_E_TOO_LARGE;
	if (!rma_inside(remote, bytes, offset_bytes))
		return CADGE_E_ARGUMENT;
	if (!bytes)
		return CADGE_DONE;
	if (!ctx->free)
		return CADGE_BUSY;
	if (!rma_went_well(ctx, "MPI_Rget",
			   MPI_Rget(local, (int)bytes, MPI_BYTE, chan->rank,
				    (MPI_Aint)(remote->offset_bytes + offset_bytes), (int)bytes, MPI_BYTE,
				    mpi_window(), &request)))
		return CADGE_E_DOWN;
	return rma_begun(ctx, request, (struct rma_op){.chan = chan, .token = token});
}

/* MPI's own fetch-and-op has no request; where it would have to wait, its longer form has one. */
int rdma_mpi_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		       struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	const MPI_Aint at = (MPI_Aint)(remote->offset_bytes + offset_bytes);
	MPI_Request request;

	(void)flags;
	if (!rma_inside(remote, sizeof(uint64_t), offset_bytes) || offset_bytes % sizeof(uint64_t))
		return CADGE_E_ARGUMENT;
	if (ctx->direct)
		return rma_went_well(ctx, "MPI_Fetch_and_op",
				     MPI_Fetch_and_op(&addend, before_out, MPI_UINT64_T, chan->rank, at,
						      MPI_SUM, mpi_window())) &&
				       rma_went_well(ctx, "MPI_Win_flush_local",
						     MPI_Win_flush_local(chan->rank, mpi_window()))
			       ? CADGE_DONE
			       : CADGE_E_DOWN;
	if (!ctx->free)
		return CADGE_BUSY;
	ctx->free->word = addend;
	if (!rma_went_well(ctx, "MPI_Rget_accumulate",
			   MPI_Rget_accumulate(&ctx->free->word, 1, MPI_UINT64_T, before_out, 1, MPI_UINT64_T,
					       chan->rank, at, 1, MPI_UINT64_T, MPI_SUM, mpi_window(),
					       &request)))
		return CADGE_E_DOWN;
	return rma_begun(ctx, request, (struct rma_op){.chan = chan, .token = token});
}

/* MPI has no request for it, and waits: see mpi_window_swaps. */
int rdma_mpi_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
			  struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;

	(void)flags, (void)token;
	if (!ctx->swaps)
		return CADGE_E_UNSUPPORTED;
	if (!rma_inside(remote, sizeof(uint64_t), offset_bytes) || offset_bytes % sizeof(uint64_t))
		return CADGE_E_ARGUMENT;
	return rma_went_well(ctx, "MPI_Compare_and_swap",
			     MPI_Compare_and_swap(&desired, &expected, before_out, MPI_UINT64_T, chan->rank,
						  (MPI_Aint)(remote->offset_bytes + offset_bytes),
						  mpi_window())) &&
			       rma_went_well(ctx, "MPI_Win_flush_local",
					     MPI_Win_flush_local(chan->rank, mpi_window()))
		       ? CADGE_DONE
		       : CADGE_E_DOWN;
}

int rdma_mpi_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	(void)flags;
	return rma_quiet(chan, token, NULL);
}
