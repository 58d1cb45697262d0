/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/io_uring/flow.h"

#include <errno.h>
#include <string.h>

#include "kit/bytes.h"

static void empty(struct uring_batch *batch)
{
	batch->first = batch->count = batch->in_flight_first = batch->in_flight_count = 0;
	batch->copied_bytes = 0;
	batch->bytes = batch->sent_bytes = 0;
}

static void append(struct uring_batch *batch, void *base, size_t bytes)
{
	struct iovec *last = batch->count ? &batch->iov[batch->count - 1] : NULL;

	batch->bytes += bytes;
	if (last && (unsigned char *)last->iov_base + last->iov_len == base)
		last->iov_len += bytes;
	else if (bytes)
		batch->iov[batch->count++] = (struct iovec){.iov_base = base, .iov_len = bytes};
}

static void append_copy(struct uring_batch *batch, const void *from, size_t bytes)
{
	unsigned char *at = batch->copied + batch->copied_bytes;

	if (bytes)
		memcpy(at, from, bytes);
	batch->copied_bytes += bytes;
	append(batch, at, bytes);
}

int uring_flow_post(struct cadge_chan *session, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	struct uring_chan *chan = uring_of_session(session);
	struct uring_batch *batch = chan->filling;
	unsigned char header[SOCK_HEADER_BYTES_MAX];
	size_t bytes, header_bytes, copied_bytes;
	const int code = cadge_iov_check(iov, count, SOCK_IOV_MAX, session->ctx->message_bytes_max, &bytes);

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	if (session->state != CHAN_UP)
		return session->state == CHAN_DOWN || session->state == CHAN_FAILED ? CADGE_E_DOWN
										    : CADGE_BUSY;
	if (session->stream.broken)
		return CADGE_E_DOWN;
	header_bytes = sock_header_write(header, (uint32_t)bytes);
	copied_bytes = header_bytes + (bytes <= SOCK_COPY_BYTES_MAX ? bytes : 0);
	if (batch->copied_bytes + copied_bytes > URING_COPY_ROOM ||
	    batch->count + 1 + count > chan->iov_room ||
	    (bytes > SOCK_COPY_BYTES_MAX && chan->in_flight_count == session->ctx->depth))
		return CADGE_BUSY;
	uring_ctx_of(chan)->pending = true;
	append_copy(batch, header, header_bytes);
	for (uint32_t i = 0; i < count; i++)
		if (bytes <= SOCK_COPY_BYTES_MAX)
			append_copy(batch, iov[i].base, iov[i].bytes);
		else
			append(batch, iov[i].base, iov[i].bytes);
	if (bytes <= SOCK_COPY_BYTES_MAX)
		return CADGE_DONE;
	batch->in_flight[batch->in_flight_count++] =
		(struct uring_in_flight){.token = token, .end_bytes = batch->bytes};
	chan->in_flight_count++;
	return CADGE_QUEUED;
}

/* Submits what is left of the batch that leaves. */
static void send_on(struct uring_chan *chan)
{
	struct uring_batch *batch = chan->leaving;
	struct io_uring_sqe *sqe = sock_ring_next(&uring_ctx_of(chan)->ring);
	const int fd = chan->session.fd;

	if (!sqe) { /* the next poll tries again */
		uring_ctx_of(chan)->pending = true;
		return;
	}
	if (batch->count - batch->first == 1) {
		io_uring_prep_send(sqe, fd, batch->iov[batch->first].iov_base,
				   batch->iov[batch->first].iov_len, MSG_NOSIGNAL);
	} else {
		chan->header = (struct msghdr){.msg_iov = batch->iov + batch->first,
					       .msg_iovlen = batch->count - batch->first};
		io_uring_prep_sendmsg(sqe, fd, &chan->header, MSG_NOSIGNAL);
	}
	uring_mark(chan, sqe, URING_SEND);
	chan->sending = true;
}

void uring_flow_send(struct uring_chan *chan)
{
	if (chan->sending || chan->session.stream.broken)
		return;
	if (!chan->leaving && chan->filling->count) {
		chan->leaving = chan->filling;
		chan->filling = &chan->batches[chan->leaving == chan->batches];
	}
	if (chan->leaving)
		send_on(chan);
}

int uring_flow_finish(struct uring_chan *chan, struct uring_batch *batch, uint64_t end_bytes, int code,
		      struct cadge_sink *sink)
{
	int events = 0;

	while (batch->in_flight_first < batch->in_flight_count &&
	       batch->in_flight[batch->in_flight_first].end_bytes <= end_bytes) {
		chan->in_flight_count--;
		events++;
		sink->sent(sink, chan->session.peer, batch->in_flight[batch->in_flight_first++].token, code);
	}
	return events;
}

int uring_flow_take_sent(struct uring_chan *chan, int result, struct cadge_sink *sink)
{
	struct uring_batch *batch = chan->leaving;
	struct sock_stream *stream = &chan->session.stream;
	int events;

	chan->sending = false;
	uring_ctx_of(chan)->pending = true;
	if (result < 0) {
		if (result == -EINTR || result == -EAGAIN || result == -ENOBUFS)
			return 0;
		/* Receiving ends the channel, after what the peer had sent. */
		stream->broken = true;
		stream->error = -result;
		shutdown(chan->session.fd, SHUT_RDWR);
		return 0;
	}
	batch->sent_bytes += (uint64_t)result;
	sock_iov_advance(batch->iov, batch->count, &batch->first, (size_t)result);
	events = uring_flow_finish(chan, batch, batch->sent_bytes, CADGE_DONE, sink);
	if (batch->first == batch->count) {
		empty(batch);
		chan->leaving = NULL;
	}
	return events;
}
