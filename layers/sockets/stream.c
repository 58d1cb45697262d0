/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kit/bytes.h"

enum { ROOM_LEAST = 4096 }; /* less room than this at the end of a block is not worth a system call */

int sock_stream_init(struct sock_stream *stream, int fd, uint32_t peer, uint32_t depth,
		     uint64_t message_bytes_max, struct sock_blocks *blocks)
{
	*stream = (struct sock_stream){
		.fd = fd,
		.peer = peer,
		.depth = depth,
		.message_bytes_max = message_bytes_max,
		.blocks = blocks,
		.head = SOCK_BLOCK_START,
		.tail = SOCK_BLOCK_START,
		.chunk_bytes = SOCK_BLOCK_BYTES,
	};
	stream->unsent = calloc(depth, sizeof(*stream->unsent));
	if (!stream->unsent)
		return CADGE_E_MEMORY;
	stream->block = sock_block_take(blocks, SOCK_BLOCK_START + SOCK_BLOCK_BYTES);
	if (!stream->block) {
		free(stream->unsent);
		stream->unsent = NULL;
		return CADGE_E_MEMORY;
	}
	return CADGE_DONE;
}

void sock_stream_free(struct sock_stream *stream)
{
	if (stream->block)
		sock_block_detach(stream->blocks, stream->block);
	stream->block = NULL;
	free(stream->unsent);
	stream->unsent = NULL;
	stream->unsent_count = 0;
}

/* Bytes that the kernel took, 0 when it takes none now, -1 when the socket failed. */
static ssize_t sent_bytes(ssize_t result)
{
	if (result >= 0)
		return result;
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ENOBUFS ? 0 : -1;
}

static ssize_t send_iov(int fd, struct iovec *iov, uint32_t count)
{
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};

	return sent_bytes(sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static ssize_t send_copied(int fd, const struct iovec *iov, uint32_t count, size_t frame)
{
	unsigned char packet[SOCK_LENGTH_BYTES + SOCK_COPY_BYTES_MAX], *at = packet;

	for (uint32_t i = 0; i < count; at += iov[i].iov_len, i++)
		if (iov[i].iov_len)
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
	return sent_bytes(send(fd, packet, frame, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void sock_iov_advance(struct iovec *iov, uint32_t count, uint32_t *first_inout, size_t bytes)
{
	uint32_t first = *first_inout;

	while (first < count && bytes >= iov[first].iov_len)
		bytes -= iov[first++].iov_len;
	if (first < count) {
		iov[first].iov_base = (unsigned char *)iov[first].iov_base + bytes;
		iov[first].iov_len -= bytes;
	}
	*first_inout = first;
}

/* Queues iov[first..count); entry 0 is the header, which has to move to the entry. */
static void enqueue(struct sock_stream *stream, const struct iovec *iov, uint32_t first, uint32_t count,
		    const unsigned char *header, size_t header_bytes, uint64_t token)
{
	uint32_t at = stream->unsent_head + stream->unsent_count++;
	struct sock_unsent *unsent = &stream->unsent[at < stream->depth ? at : at - stream->depth];

	unsent->token = token;
	unsent->first = first;
	unsent->count = count;
	memcpy(unsent->header, header, header_bytes);
	memcpy(unsent->iov, iov, count * sizeof(*iov));
	if (first == 0)
		unsent->iov[0].iov_base = unsent->header + (header_bytes - iov[0].iov_len);
}

int sock_stream_post(struct sock_stream *stream, const struct cadge_iov *iov, uint32_t count, uint64_t token)
{
	unsigned char header[SOCK_HEADER_BYTES_MAX];
	struct iovec gather[SOCK_IOV_MAX + 1];
	size_t bytes = 0, header_bytes;
	uint32_t first = 0;
	ssize_t sent;

	if (count > SOCK_IOV_MAX)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].bytes > stream->message_bytes_max - bytes)
			return CADGE_E_TOO_LARGE;
		bytes += iov[i].bytes;
		gather[i + 1].iov_base = iov[i].base;
		gather[i + 1].iov_len = iov[i].bytes;
	}
	if (stream->broken)
		return CADGE_E_DOWN;
	if (stream->unsent_count == stream->depth)
		return CADGE_BUSY;
	header_bytes = sock_header_write(header, (uint32_t)bytes);
	gather[0].iov_base = header;
	gather[0].iov_len = header_bytes;
	if (!stream->unsent_count) {
		sent = bytes <= SOCK_COPY_BYTES_MAX
			       ? send_copied(stream->fd, gather, count + 1, header_bytes + bytes)
			       : send_iov(stream->fd, gather, count + 1);
		if (sent == (ssize_t)(header_bytes + bytes))
			return CADGE_DONE;
		if (sent < 0) {
			stream->broken = true;
			stream->error = errno;
			return CADGE_E_DOWN;
		}
		sock_iov_advance(gather, count + 1, &first, (size_t)sent);
	}
	enqueue(stream, gather, first, count + 1, header, header_bytes, token);
	return CADGE_QUEUED;
}

/* Takes the oldest entry out and notifies its owner. The callback may post, so the entry is gone before. */
static void finish_first(struct sock_stream *stream, struct cadge_sink *sink, int code)
{
	uint64_t token = stream->unsent[stream->unsent_head].token;

	stream->unsent_head = stream->unsent_head + 1 < stream->depth ? stream->unsent_head + 1 : 0;
	stream->unsent_count--;
	sink->sent(sink, stream->peer, token, code);
}

int sock_stream_drain(struct sock_stream *stream, struct cadge_sink *sink)
{
	int events = 0;

	for (uint32_t left = stream->unsent_count; left && !stream->broken; left--) {
		struct sock_unsent *unsent = &stream->unsent[stream->unsent_head];
		ssize_t sent =
			send_iov(stream->fd, unsent->iov + unsent->first, unsent->count - unsent->first);

		if (sent < 0) {
			stream->broken = true;
			stream->error = errno;
			break;
		}
		sock_iov_advance(unsent->iov, unsent->count, &unsent->first, (size_t)sent);
		if (unsent->first < unsent->count)
			break;
		finish_first(stream, sink, CADGE_DONE);
		events++;
	}
	return events;
}

int sock_stream_abandon(struct sock_stream *stream, struct cadge_sink *sink)
{
	int events = 0;

	for (uint32_t left = stream->unsent_count; left; left--, events++)
		finish_first(stream, sink, CADGE_E_DOWN);
	return events;
}

size_t sock_stream_frame_bytes(const struct sock_stream *stream)
{
	uint32_t message_bytes;

	if (stream->tail - stream->head < SOCK_LENGTH_BYTES)
		return 0;
	message_bytes = cadge_load32(stream->block->data + stream->head);
	return sock_header_bytes(message_bytes) + message_bytes;
}

/*
 * Reads end where a message is expected to end: then the block is empty afterwards, the next message starts at its
 * front, and nothing is moved.
 */
size_t sock_stream_room(struct sock_stream *stream)
{
	struct cadge_lend *block = stream->block;
	const size_t have_bytes = stream->tail - stream->head, frame = sock_stream_frame_bytes(stream);
	const size_t goal_bytes =
		frame > stream->chunk_bytes ? frame : stream->chunk_bytes; /* from head on */
	size_t need_bytes = ROOM_LEAST, room_bytes;

	if (frame > have_bytes + ROOM_LEAST)
		need_bytes = frame - have_bytes;
	else if (!frame && goal_bytes > SOCK_BLOCK_BYTES)
		need_bytes = goal_bytes - have_bytes;
	if (!have_bytes && !block->keeps)
		stream->head = stream->tail = SOCK_BLOCK_START;
	if (block->room_bytes - stream->tail < need_bytes) {
		size_t least_bytes =
			SOCK_BLOCK_START + (goal_bytes > SOCK_BLOCK_BYTES ? goal_bytes : SOCK_BLOCK_BYTES);

		if (block->keeps || block->room_bytes < least_bytes) {
			struct cadge_lend *fresh = sock_block_take(stream->blocks, least_bytes);

			if (!fresh)
				return 0;
			memcpy(fresh->data + SOCK_BLOCK_START, block->data + stream->head, have_bytes);
			sock_block_detach(stream->blocks, block);
			stream->block = block = fresh;
		} else {
			memmove(block->data + SOCK_BLOCK_START, block->data + stream->head, have_bytes);
		}
		stream->head = SOCK_BLOCK_START;
		stream->tail = SOCK_BLOCK_START + have_bytes;
	}
	room_bytes = block->room_bytes - stream->tail;
	return room_bytes < goal_bytes - have_bytes ? room_bytes : goal_bytes - have_bytes;
}

int sock_stream_fill(struct sock_stream *stream, int flags)
{
	const size_t room_bytes = sock_stream_room(stream);
	ssize_t got;

	if (!room_bytes)
		return CADGE_E_MEMORY;
	got = recv(stream->fd, stream->block->data + stream->tail, room_bytes, flags);
	if (got > 0) {
		stream->tail += (size_t)got;
		return 1;
	}
	if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
		stream->broken = true;
		stream->error = got ? errno : 0;
	}
	return 0;
}

static size_t frame_bytes_max(const struct sock_stream *stream)
{
	return sock_header_bytes(stream->message_bytes_max) + stream->message_bytes_max;
}

bool sock_stream_ready(const struct sock_stream *stream)
{
	const size_t frame = sock_stream_frame_bytes(stream);

	return frame && (frame <= stream->tail - stream->head || frame > frame_bytes_max(stream));
}

/* Messages of one size are the rule: from now on read as many whole ones at a time as a short block holds. */
static void expect_more_of(struct sock_stream *stream, size_t frame)
{
	stream->last_frame_bytes = frame;
	stream->chunk_bytes = frame < SOCK_BLOCK_BYTES ? SOCK_BLOCK_BYTES / frame * frame : frame;
}

int sock_stream_deliver(struct sock_stream *stream, struct cadge_sink *sink, int most)
{
	int events = 0;

	while (events < most) {
		struct cadge_lend *block = stream->block;
		const size_t frame = sock_stream_frame_bytes(stream);
		uint32_t message_bytes;

		if (frame > frame_bytes_max(stream))
			return CADGE_E_DOWN;
		if (!frame || frame > stream->tail - stream->head)
			break;
		message_bytes = cadge_load32(block->data + stream->head);
		stream->head += frame;
		if (frame != stream->last_frame_bytes)
			expect_more_of(stream, frame);
		events++;
		if (sink->recv(sink, stream->peer, block->data + stream->head - message_bytes, message_bytes,
			       block) == CADGE_KEEP)
			block->keeps++;
	}
	return events;
}
