/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending, receiving and greeting of mpi-p2p; see p2p.c. */
#include "mpi/p2p_flow.h"

#include <stdio.h>
#include <string.h>

#include "kit/bytes.h"

/* True where the call went well; else keeps MPI's words for what happened. */
static bool p2p_went_well(struct cadge_ctx *ctx, const char *call, int ret)
{
	return __builtin_expect(ret == MPI_SUCCESS, 1) ||
	       mpi_world_why(call, ret, ctx->why, sizeof(ctx->why));
}

/* Returns a free receive buffer: of this channel, of none, or, so that no channel starves, of another one; else NULL. */
static struct cadge_lend *p2p_take_lend(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	struct cadge_lend **from = chan->free_lend ? &chan->free_lend : &ctx->free_lend, *lend;
	uint32_t peer;

	for (peer = 0; !*from && !chan->posted && peer < ctx->peers; peer++)
		from = &ctx->chan[peer].free_lend;
	lend = *from;
	if (lend)
		*from = lend->next;
	return lend;
}

/* A persistent receive: made once, it starts with a quarter fewer instructions than MPI_Irecv takes. */
static bool p2p_bind(struct cadge_ctx *ctx, struct cadge_lend *lend, struct cadge_chan *chan)
{
	if (lend->chan && MPI_Request_free(&lend->request) != MPI_SUCCESS)
		return false;
	lend->chan = NULL;
	if (!p2p_went_well(ctx, "MPI_Recv_init",
			   MPI_Recv_init(lend->data, (int)ctx->message_bytes_max, MPI_BYTE, chan->rank,
					 chan->tag_in, MPI_COMM_WORLD, &lend->request)))
		return false;
	lend->chan = chan;
	return true;
}

/* Posts receives until so many are posted. */
static int p2p_repost(struct cadge_ctx *ctx, struct cadge_chan *chan, uint32_t wanted)
{
	while (chan->posted < wanted) {
		struct cadge_lend *lend = p2p_take_lend(ctx, chan);

		if (!lend)
			break;
		if ((lend->chan != chan && !p2p_bind(ctx, lend, chan)) ||
		    !p2p_went_well(ctx, "MPI_Start", MPI_Start(&lend->request))) {
			mpi_p2p_release(ctx, lend);
			return CADGE_E_DOWN;
		}
		lend->next = NULL;
		if (chan->receive_head) {
			chan->receive_tail->next = lend;
		} else {
			chan->receive_head = lend;
			chan->oldest[P2P_RECEIVE] = lend->request;
		}
		chan->receive_tail = lend;
		chan->posted++;
	}
	return CADGE_DONE;
}

/*
 * DONE, QUEUED or E_DOWN. A short message has usually left when MPI_Isend returns. Asking costs MPI's progress where it
 * has not, so lengths that are found waiting with nothing before them are not asked for again.
 */
static int p2p_send(struct cadge_chan *chan, const void *data, size_t bytes, struct p2p_send *send)
{
	struct cadge_ctx *ctx = chan->ctx;
	int done = 0;

	if (!p2p_went_well(ctx, "MPI_Isend",
			   MPI_Isend(data, (int)bytes, MPI_BYTE, chan->rank, chan->tag_out, MPI_COMM_WORLD,
				     &send->request)))
		return CADGE_E_DOWN;
	if (bytes <= chan->gone_bytes) {
		if (MPI_Test(&send->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return CADGE_E_DOWN;
		if (!done && !chan->queued && bytes > P2P_SHORT_BYTES)
			chan->gone_bytes = bytes - 1;
	}
	ctx->free_send = send->next;
	if (done) {
		CADGE_POOL_GIVE(ctx->free_send, send);
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

int mpi_p2p_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		 uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct p2p_send *send = ctx->free_send;
	const void *data = count ? iov->base : NULL;
	size_t bytes;
	const int code = cadge_iov_check(iov, count, P2P_IOV_MAX, ctx->message_bytes_max, &bytes);

	(void)flags; /* MORE needs capability BATCH */
	if (code != CADGE_DONE)
		return code;
	if (chan->down)
		return CADGE_E_DOWN;
	if (!chan->up || !send || chan->queued >= ctx->depth)
		return CADGE_BUSY;
	if (count > 1) {
		cadge_iov_gather(iov, count, send->staging);
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
	mpi_world_mark_unclean();
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
	CADGE_POOL_GIVE(ctx->free_send, send);
	if (greeting)
		return 0;
	sink->sent(sink, chan->peer, token, CADGE_DONE);
	return 1;
}

/* In a burst, receives for many short messages: one that finds none is copied once more. */
static uint32_t p2p_wanted(const struct cadge_chan *chan, size_t bytes)
{
	const uint32_t usual = cadge_posted_after(bytes), most = chan->ctx->posted_most;

	return chan->streak >= P2P_BURST && bytes <= P2P_SHORT_BYTES && most > usual ? most : usual;
}

static int p2p_received(struct cadge_chan *chan, const MPI_Status *status, struct cadge_sink *sink)
{
	struct cadge_lend *lend = chan->receive_head;
	enum cadge_keep keep = CADGE_TAKEN;
	int bytes, events = 0;

	chan->receive_head = lend->next;
	chan->oldest[P2P_RECEIVE] = lend->next ? lend->next->request : MPI_REQUEST_NULL;
	chan->posted--;
	if (MPI_Get_count(status, MPI_BYTE, &bytes) != MPI_SUCCESS)
		return p2p_down(chan, sink);
	if (chan->greetings_received < P2P_GREETINGS) {
		chan->greetings_received++;
	} else {
		chan->posted_wanted = p2p_wanted(chan, (size_t)bytes);
		keep = sink->recv(sink, chan->peer, lend->data, (size_t)bytes, lend);
		events = 1;
	}
	if (keep == CADGE_TAKEN)
		CADGE_POOL_GIVE(chan->free_lend, lend);
	return events;
}

/*
 * The side that begins sends its first greeting at once and the second when an answer came; the other
 * answers. If both began, both would open a TCP connection to the other at the same time, and Open MPI 4.1
 * sometimes gives up over that.
 */
static int p2p_greet(struct cadge_ctx *ctx, struct cadge_chan *chan, struct cadge_sink *sink)
{
	uint32_t allowed = chan->begins ? 1 + chan->greetings_received : 2 * chan->greetings_received;

	while (chan->greetings_sent < P2P_GREETINGS && chan->greetings_sent < allowed && ctx->free_send) {
		ctx->free_send->greeting = true;
		if (p2p_send(chan, NULL, 0, ctx->free_send) < 0)
			return p2p_down(chan, sink);
		chan->greetings_sent++;
	}
	if (chan->greetings_sent < P2P_GREETINGS || chan->greetings_received < P2P_GREETINGS)
		return 0;
	chan->up = true;
	sink->up(sink, chan->peer);
	return 1;
}

/*
 * Delivers what is there. One message a poll, so that no reply to it waits for the progress that finds out that there is
 * no second one; in a burst as many as there are.
 */
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
		if (!p2p_went_well(ctx, "MPI_Test", ret))
			return events + p2p_down(chan, sink);
		if (done <= 0) {
			if (!round)
				chan->streak = 0;
			/* Time to spare: one receive more, so that posting it delays no reply. */
			if (chan->posted < chan->posted_wanted && p2p_repost(ctx, chan, chan->posted + 1))
				return events + p2p_down(chan, sink);
			break;
		}
		for (i = 0; i < done; i++)
			events += index[i] == P2P_SEND ? p2p_sent(ctx, chan, sink)
						       : p2p_received(chan, &status[i], sink);
		if (p2p_repost(ctx, chan, chan->posted_wanted / 2))
			return events + p2p_down(chan, sink);
		if (events && (++chan->streak < P2P_BURST || !chan->receive_head))
			break;
	}
	return chan->up || chan->down ? events : events + p2p_greet(ctx, chan, sink);
}

int mpi_p2p_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int events = 0;
	uint32_t peer;

	for (peer = 0; peer < ctx->peers; peer++) {
		struct cadge_chan *chan = &ctx->chan[peer];

		if (!chan->connected || chan->down)
			continue;
		if (!chan->posted && p2p_repost(ctx, chan, chan->posted_wanted))
			events += p2p_down(chan, sink);
		else if (chan->posted || chan->send_head)
			events += p2p_poll_chan(ctx, chan, sink);
	}
	return events;
}

void mpi_p2p_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	if (lend->chan)
		CADGE_POOL_GIVE(lend->chan->free_lend, lend);
	else
		CADGE_POOL_GIVE(ctx->free_lend, lend);
}
