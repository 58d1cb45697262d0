/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over one TCP connection through a ring. What is posted gathers in a batch, which leaves in one request when
 * the one before has left: at most one send of a channel is in flight, or the kernel could mix up their bytes. Short
 * messages are copied to the batch, of longer ones it has the addresses.
 *
 * Received is in one of two ways. Short messages come by a multishot receive into offered buffers, and are lent from
 * there; one in pieces is put together in the channel's block. Long messages would all come in pieces, so each of them
 * is received by a request of its own, straight to where it is lent from.
 */
#ifndef CADGE_SOCKETS_IO_URING_FLOW_H
#define CADGE_SOCKETS_IO_URING_FLOW_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "sockets/session/state.h"
#include "sockets/io_uring/ring.h"

enum { URING_COPY_ROOM = 64 * 1024 }; /* a batch's, for headers and short messages */

struct uring_ctx {
	struct cadge_ctx session; /* first */
	struct sock_ring ring;
	bool pending;            /* some channel may have something to submit */
	uint64_t out_of_buffers; /* receives that ended since no buffer was free */
};

/* A lent message: its buffers are the caller's again once so many bytes of the batch have left. */
struct uring_in_flight {
	uint64_t token, end_bytes;
};

struct uring_batch {
	struct iovec *iov; /* room: iov_room of the channel */
	uint32_t first, count;
	struct uring_in_flight *in_flight; /* room: depth */
	uint32_t in_flight_first, in_flight_count;
	unsigned char *copied; /* room: URING_COPY_ROOM */
	size_t copied_bytes;
	uint64_t bytes, sent_bytes;
};

struct uring_chan {
	struct cadge_chan session; /* first */
	bool started;
	uint32_t in_flight; /* completions to come */

	struct uring_batch batches[2];
	struct uring_batch *filling, *leaving; /* leaving may be NULL */
	bool sending;                          /* a send is in flight */
	uint32_t iov_room, in_flight_count;
	struct msghdr header; /* of the send */

	enum { RECEIVE_NOT, RECEIVE_MULTISHOT, RECEIVE_LONG } receiving;
	bool cancelling;    /* the multishot receive */
	bool wants_long;    /* long messages are the rule */
	bool more_waits;    /* the socket had more than was received */
	uint32_t short_run; /* short messages since the last long one, in pieces received */
};

/* What a completion is of: in the low bits of its number, above them the channel. */
enum uring_kind { URING_SEND = 1, URING_RECEIVE = 2, URING_KINDS = 7 };

static inline struct uring_chan *uring_of_session(struct cadge_chan *chan)
{
	return (struct uring_chan *)chan;
}

static inline struct uring_ctx *uring_ctx_of(const struct uring_chan *chan)
{
	return (struct uring_ctx *)chan->session.ctx;
}

static inline void uring_mark(struct uring_chan *chan, struct io_uring_sqe *sqe, enum uring_kind kind)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)chan | (uint64_t)kind);
	chan->in_flight++;
}

/* As in sock_family. */
int uring_flow_start(struct cadge_chan *chan);
int uring_flow_stop(struct cadge_chan *chan, struct cadge_sink *sink);

/* The slot. */
int uring_flow_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token);

/* Prepares what the channels that are up have to submit. */
void uring_flow_prepare(struct uring_ctx *ctx);
/* Takes one completion. Returns the number of events. */
int uring_flow_take(const struct io_uring_cqe *completion, struct cadge_sink *sink);

/* Prepares a send of what is posted, unless one is in flight (send.c). */
void uring_flow_send(struct uring_chan *chan);
int uring_flow_take_sent(struct uring_chan *chan, int result, struct cadge_sink *sink);
/* Gives back the batch's lent messages that end up to here. Returns their number. */
int uring_flow_finish(struct uring_chan *chan, struct uring_batch *batch, uint64_t end_bytes, int code,
		      struct cadge_sink *sink);

/* Prepares a receive, unless the right one is in flight (receive.c). */
void uring_flow_receive(struct uring_chan *chan);
int uring_flow_take_received(struct uring_chan *chan, const struct io_uring_cqe *completion,
			     struct cadge_sink *sink);

#endif
