/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/io_uring/flow.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

enum {
	IOV_ROOM_MAX = 1024,      /* UIO_MAXIOV, which the kernel takes at a time */
	STOP_STEP_NS = 50 * 1000, /* between two checks of what was cancelled */
};

void uring_flow_prepare(struct uring_ctx *ctx)
{
	ctx->pending = false;
	for (uint32_t i = 0; i < ctx->session.up_count; i++) {
		struct uring_chan *chan = uring_of_session(ctx->session.up[i]);

		uring_flow_send(chan);
		uring_flow_receive(chan);
	}
}

int uring_flow_take(const struct io_uring_cqe *completion, struct cadge_sink *sink)
{
	const uint64_t number = completion->user_data;
	struct uring_chan *chan = (struct uring_chan *)(uintptr_t)(number & ~(uint64_t)URING_KINDS);

	if (!chan)
		return 0;
	chan->in_flight -= !(completion->flags & IORING_CQE_F_MORE);
	return (number & URING_KINDS) == URING_SEND ? uring_flow_take_sent(chan, completion->res, sink)
						    : uring_flow_take_received(chan, completion, sink);
}

static int room_for_batch(struct uring_batch *batch, uint32_t iov_room, uint32_t depth)
{
	batch->iov = calloc(iov_room, sizeof(*batch->iov));
	batch->in_flight = calloc(depth, sizeof(*batch->in_flight));
	batch->copied = malloc(URING_COPY_ROOM);
	return batch->iov && batch->in_flight && batch->copied ? CADGE_DONE : CADGE_E_MEMORY;
}

int uring_flow_start(struct cadge_chan *session)
{
	struct uring_chan *chan = uring_of_session(session);
	const struct cadge_ctx *ctx = session->ctx;
	/* On a non-blocking socket the kernel would answer EAGAIN in place of waiting. */
	const int flags = fcntl(session->fd, F_GETFL);

	if (flags < 0 || fcntl(session->fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return CADGE_E_DOWN;
	chan->iov_room = (uint32_t)cadge_least((uint64_t)ctx->depth * (SOCK_IOV_MAX + 1), IOV_ROOM_MAX);
	if (sock_stream_init(&session->stream, session->fd, session->peer, 1, ctx->message_bytes_max,
			     &session->ctx->blocks) < 0 ||
	    room_for_batch(&chan->batches[0], chan->iov_room, ctx->depth) < 0 ||
	    room_for_batch(&chan->batches[1], chan->iov_room, ctx->depth) < 0)
		return CADGE_E_MEMORY;
	chan->filling = &chan->batches[0];
	chan->more_waits = true;
	chan->started = true;
	uring_ctx_of(chan)->pending = true;
	return CADGE_DONE;
}

/* Marks the completions of a channel that ends as nobody's. Those of others stay for poll. */
static void disown(struct uring_chan *chan)
{
	struct sock_ring *ring = &uring_ctx_of(chan)->ring;
	struct io_uring_cqe *completion;
	unsigned head;

	io_uring_for_each_cqe(&ring->io, head, completion)
	{
		if ((completion->user_data & ~(uint64_t)URING_KINDS) != (uint64_t)(uintptr_t)chan)
			continue;
		completion->user_data = 0;
		chan->in_flight -= !(completion->flags & IORING_CQE_F_MORE);
		/* A buffer lost for want of memory is one fewer, and the next to want memory is told. */
		if (completion->flags & IORING_CQE_F_BUFFER)
			(void)sock_ring_offer(ring, completion->flags >> IORING_CQE_BUFFER_SHIFT);
	}
}

/*
 * The kernel may use the channel's memory and the caller's until each request has completed. All of them wait for the
 * socket, and such are cancelled at once.
 */
static void cancel_all(struct uring_chan *chan)
{
	const struct timespec step = {.tv_nsec = STOP_STEP_NS};
	struct sock_ring *ring = &uring_ctx_of(chan)->ring;
	bool asked = false;

	disown(chan);
	while (chan->in_flight) {
		struct io_uring_sqe *sqe = asked ? NULL : sock_ring_next(ring);

		if (sqe) {
			io_uring_prep_cancel_fd(sqe, chan->session.fd, IORING_ASYNC_CANCEL_ALL);
			io_uring_sqe_set_data64(sqe, 0);
			asked = true;
		}
		io_uring_submit_and_get_events(&ring->io);
		disown(chan);
		if (chan->in_flight)
			nanosleep(&step, NULL);
	}
}

int uring_flow_stop(struct cadge_chan *session, struct cadge_sink *sink)
{
	struct uring_chan *chan = uring_of_session(session);
	int events = 0;

	if (chan->started) {
		/* What was posted last has not been handed over: now or never. */
		if (!sink && session->state == CHAN_UP)
			uring_flow_send(chan);
		io_uring_submit(&uring_ctx_of(chan)->ring.io);
		cancel_all(chan);
		for (int i = 0; i < 2 && sink; i++) /* first what was to leave first */
			events += uring_flow_finish(chan,
						    i               ? chan->filling
						    : chan->leaving ? chan->leaving
								    : chan->filling,
						    UINT64_MAX, CADGE_E_DOWN, sink);
		chan->started = false;
	}
	if (sink)
		return events;
	sock_stream_free(&session->stream);
	for (int i = 0; i < 2; i++) {
		free(chan->batches[i].iov);
		free(chan->batches[i].in_flight);
		free(chan->batches[i].copied);
	}
	return 0;
}
