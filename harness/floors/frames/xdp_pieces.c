/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of several raw frames: cut into pieces, each told by its place in the message, and put together where they
 * arrive. The link keeps their order; where one of them is lost the message is, and the next one's first piece begins
 * anew.
 */
#include "loop.h"
#include "xdp_frames.h"

uint32_t pieces_of(const struct floor_state *state, uint64_t bytes)
{
	return (uint32_t)((bytes + state->piece_bytes - 1) / state->piece_bytes);
}

size_t pieces_fill(uint8_t *frame, const struct xdp_piece *piece, const uint8_t *message, size_t length)
{
	frame[XDP_ETHER_BYTES] = (uint8_t)length;
	frame[XDP_ETHER_BYTES + 1] = (uint8_t)((length | XDP_PIECE) >> 8);
	memcpy(frame + XDP_HEAD_BYTES, piece, sizeof(*piece));
	memcpy(frame + XDP_HEAD_BYTES + sizeof(*piece), message + piece->offset, length);
	return XDP_HEAD_BYTES + sizeof(*piece) + length;
}

static int pieces_send(struct drv_floor_loop *loop, size_t bytes)
{
	struct floor_state *state = loop->run->state;
	struct xdp_piece piece = {.message = state->sent++, .bytes = (uint32_t)bytes};
	uint32_t waiting = 0;
	int status;

	while (piece.offset < bytes) {
		const size_t left = bytes - piece.offset,
			     length = left < state->piece_bytes ? left : state->piece_bytes;
		uint8_t *frame = frame_new(state);

		frame_queue(state, frame, pieces_fill(frame, &piece, loop->out, length));
		piece.offset += (uint32_t)length;
		/* by one call as many as the ring holds: fewer would reach the other side sooner, and all of them later */
		if (++waiting < XDP_FRAMES_OUT && piece.offset < bytes)
			continue;
		status = frames_leave(loop);
		if (status)
			return status;
		waiting = 0;
	}
	return 0;
}

bool pieces_gather(struct drv_floor_loop *loop, const uint8_t *frame, uint32_t frame_bytes)
{
	struct floor_state *state = loop->run->state;
	struct xdp_piece piece;
	size_t length;

	if (frame_bytes < XDP_HEAD_BYTES + sizeof(piece))
		return false;
	length = (size_t)frame[XDP_ETHER_BYTES] | (size_t)frame[XDP_ETHER_BYTES + 1] << 8;
	memcpy(&piece, frame + XDP_HEAD_BYTES, sizeof(piece));
	/* of an earlier point, or not from us */
	if (!(length & XDP_PIECE) || piece.bytes != loop->bytes)
		return false;
	length &= XDP_PIECE - 1;
	if (!piece.offset) {
		state->gathering = piece.message;
		state->gathered = 0;
	}
	if (piece.message != state->gathering || piece.offset != state->gathered ||
	    length > frame_bytes - XDP_HEAD_BYTES - sizeof(piece) || length > piece.bytes - piece.offset)
		return false;
	memcpy(loop->in + piece.offset, frame + XDP_HEAD_BYTES + sizeof(piece), length);
	state->gathered += length;
	return state->gathered == piece.bytes;
}

DRV_INLINE int pieces_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes,
			      const bool block)
{
	struct floor_state *state = loop->run->state;
	const uint8_t *frame;
	uint64_t address;
	uint32_t length;
	bool slept = false, whole = false;

	while (!whole) {
		frame = frame_take(state, &address, &length);
		if (!frame && (!block || slept))
			return 0;
		slept = !frame;
		if (slept && frame_sleep(loop))
			return -1;
		if (slept)
			continue;
		whole = pieces_gather(loop, frame, length);
		frame_back(state, address);
	}
	*data = loop->in;
	*bytes = loop->bytes;
	return 1;
}

DRV_INLINE int receive_poll(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes)
{
	return pieces_receive(loop, data, bytes, false);
}

DRV_INLINE int receive_block(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes)
{
	return pieces_receive(loop, data, bytes, true);
}

int pieces_client(struct drv_floor_loop *loop)
{
	if (loop->run->block)
		return floor_client_loop(loop, true, true, pieces_send, receive_block);
	return floor_client_loop(loop, false, true, pieces_send, receive_poll);
}

int pieces_server(struct drv_floor_loop *loop)
{
	if (loop->run->block)
		return floor_server_loop(loop, true, pieces_send, receive_block);
	return floor_server_loop(loop, false, pieces_send, receive_poll);
}
