/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/io_uring/flow.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum {
	LONG_BYTES = 32 * 1024, /* from here on a message is received by a request of its own */
	SHORT_RUN = 16,         /* so many short pieces, and multishot is worth its cancellation */
};

void uring_flow_receive(struct uring_chan *chan)
{
	struct uring_ctx *ctx = uring_ctx_of(chan);
	struct sock_stream *stream = &chan->session.stream;
	struct io_uring_sqe *sqe;
	size_t room_bytes, frame;

	if (chan->receiving == RECEIVE_MULTISHOT && chan->wants_long && !chan->cancelling) {
		sqe = sock_ring_next(&ctx->ring);
		if (sqe) {
			io_uring_prep_cancel64(sqe, (uint64_t)(uintptr_t)chan | URING_RECEIVE, 0);
			io_uring_sqe_set_data64(sqe, 0);
		}
		chan->cancelling = sqe;
	}
	if (chan->receiving != RECEIVE_NOT)
		return;
	room_bytes = chan->wants_long ? sock_stream_room(stream) : SOCK_BLOCK_BYTES;
	sqe = room_bytes ? sock_ring_next(&ctx->ring) : NULL;
	if (!sqe) { /* out of memory or of submissions: the next poll tries again */
		ctx->pending = true;
		return;
	}
	if (chan->wants_long) {
		/* The rest of a message is there all at once or not at all. */
		frame = sock_stream_frame_bytes(stream);
		io_uring_prep_recv(sqe, chan->session.fd, stream->block->data + stream->tail, room_bytes,
				   frame && frame == stream->tail - stream->head + room_bytes ? MSG_WAITALL
											      : 0);
		chan->receiving = RECEIVE_LONG;
	} else {
		io_uring_prep_recv_multishot(sqe, chan->session.fd, NULL, 0, 0);
		sqe->flags |= IOSQE_BUFFER_SELECT;
		sqe->buf_group = SOCK_RING_GROUP;
		chan->receiving = RECEIVE_MULTISHOT;
	}
	/* Looking at once is for nothing where the last look emptied the socket. */
	if (!chan->more_waits)
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	uring_mark(chan, sqe, URING_RECEIVE);
}

/* Puts bytes behind what the channel's block has of a message, and delivers what they complete. */
static int put_together(struct sock_stream *stream, const unsigned char *data, size_t bytes,
			struct cadge_sink *sink)
{
	int events = 0, code;

	while (bytes) {
		size_t room_bytes = sock_stream_room(stream);

		if (!room_bytes)
			return CADGE_E_MEMORY;
		if (room_bytes > bytes)
			room_bytes = bytes;
		memcpy(stream->block->data + stream->tail, data, room_bytes);
		stream->tail += room_bytes;
		data += room_bytes;
		bytes -= room_bytes;
		code = sock_stream_deliver(stream, sink, INT_MAX);
		if (code < 0)
			return code;
		events += code;
	}
	return events;
}

/* A piece of the stream lies in a buffer. Whole messages are lent from there. */
static int take_piece(struct uring_chan *chan, uint32_t number, size_t bytes, struct cadge_sink *sink)
{
	struct sock_ring *ring = &uring_ctx_of(chan)->ring;
	struct sock_stream *stream = &chan->session.stream;
	struct cadge_lend *const block = ring->offered[number], *const own = stream->block;
	const unsigned char *data = sock_ring_data(block);
	int events = 0, code;

	if (stream->head == stream->tail) {
		const size_t head = stream->head;

		stream->block = block;
		stream->head = SOCK_BLOCK_START;
		stream->tail = SOCK_BLOCK_START + bytes;
		events = sock_stream_deliver(stream, sink, INT_MAX);
		data = block->data + stream->head;
		bytes = stream->tail - stream->head;
		stream->block = own;
		stream->head = stream->tail = head;
	}
	if (events >= 0 && bytes) {
		code = put_together(stream, data, bytes, sink);
		events = code < 0 ? code : events + code;
	}
	code = sock_ring_offer(ring, number);
	return code < 0 ? code : events;
}

/* Which way of receiving suits what comes now. */
static void choose_way(struct uring_chan *chan)
{
	const struct sock_stream *stream = &chan->session.stream;
	const size_t frame = sock_stream_frame_bytes(stream);

	if ((frame ? frame : stream->last_frame_bytes) >= LONG_BYTES) {
		chan->short_run = 0;
		chan->wants_long = true;
	} else if (chan->wants_long && ++chan->short_run == SHORT_RUN) {
		chan->wants_long = false;
	}
	if (chan->wants_long && chan->receiving == RECEIVE_MULTISHOT)
		uring_ctx_of(chan)->pending = true;
}

int uring_flow_take_received(struct uring_chan *chan, const struct io_uring_cqe *completion,
			     struct cadge_sink *sink)
{
	struct sock_stream *stream = &chan->session.stream;
	const uint32_t number = completion->flags >> IORING_CQE_BUFFER_SHIFT;
	const bool buffered = completion->flags & IORING_CQE_F_BUFFER;
	int events;

	chan->more_waits = completion->flags & IORING_CQE_F_SOCK_NONEMPTY;
	if (!(completion->flags & IORING_CQE_F_MORE)) {
		chan->receiving = RECEIVE_NOT;
		chan->cancelling = false;
		uring_ctx_of(chan)->pending = true;
	}
	if (completion->res > 0) {
		if (buffered) {
			events = take_piece(chan, number, (size_t)completion->res, sink);
		} else {
			stream->tail += (size_t)completion->res;
			events = sock_stream_deliver(stream, sink, INT_MAX);
		}
		if (events < 0)
			return sock_handshake_end(&chan->session, sink, events);
		choose_way(chan);
		return events;
	}
	events = buffered ? sock_ring_offer(&uring_ctx_of(chan)->ring, number) : 0;
	uring_ctx_of(chan)->out_of_buffers += completion->res == -ENOBUFS;
	/* No buffer is free, or it was cancelled: the next poll asks again, and finds what is there. */
	chan->more_waits = true;
	if (events == 0 && (completion->res == -ENOBUFS || completion->res == -ECANCELED ||
			    completion->res == -EINTR || completion->res == -EAGAIN))
		return 0;
	if (!stream->broken)
		stream->error = -completion->res;
	stream->broken = true;
	return sock_handshake_end(&chan->session, sink, events < 0 ? events : CADGE_E_DOWN);
}
