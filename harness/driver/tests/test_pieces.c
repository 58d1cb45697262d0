/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of several raw frames: put together from their pieces, and from nothing else. No link and no rights are needed. */
#include <stdlib.h>
#include <string.h>

#include "../../floors/frames/xdp_frames.h"
#include "tap.h"

enum { PIECE = 1486, BYTES = 4000, FRAME = XDP_HEAD_BYTES + sizeof(struct xdp_piece) + PIECE, PIECES = 3 };

/* A receiver, whose buffer ends with the message: the sanitizer sees any byte behind it. */
struct receiver {
	struct floor_state state;
	struct drv_floor_run run;
	struct drv_floor_loop loop;
};

static void start(struct receiver *receiver, size_t bytes)
{
	memset(receiver, 0, sizeof(*receiver));
	receiver->state.piece_bytes = PIECE;
	receiver->run.state = &receiver->state;
	receiver->loop.run = &receiver->run;
	receiver->loop.bytes = bytes;
	receiver->loop.in = calloc(1, bytes);
	if (!receiver->loop.in)
		exit(77);
}

/* Piece `which` of message `number`, in a frame that has no byte more than `room`; taken in, then gone. */
static bool take(struct receiver *receiver, const uint8_t *message, uint32_t number, uint32_t which,
		 size_t room)
{
	const struct xdp_piece piece = {number, which * PIECE, BYTES};
	const size_t left = BYTES - piece.offset;
	uint8_t whole[FRAME] = {0}, *frame = malloc(room);
	size_t bytes;
	bool done;

	if (!frame)
		exit(77);
	bytes = pieces_fill(whole, &piece, message, left < PIECE ? left : PIECE);
	bytes = room < bytes ? room : bytes;
	memcpy(frame, whole, bytes);
	done = pieces_gather(&receiver->loop, frame, (uint32_t)bytes);
	free(frame);
	return done;
}

int main(void)
{
	struct receiver receiver;
	uint8_t message[BYTES], other[BYTES];
	bool early = false, torn = false;

	for (size_t i = 0; i < BYTES; i++) {
		message[i] = (uint8_t)(i * 7 + i / 256);
		other[i] = (uint8_t)~message[i];
	}
	start(&receiver, BYTES);
	tap_ok(pieces_of(&receiver.state, BYTES) == PIECES && pieces_of(&receiver.state, PIECE) == 1 &&
		       pieces_of(&receiver.state, PIECE + 1) == 2,
	       "a message takes as many frames as its pieces");
	for (uint32_t i = 0; i < PIECES - 1; i++)
		early |= take(&receiver, message, 1, i, FRAME);
	tap_ok(!early && take(&receiver, message, 1, PIECES - 1, FRAME) &&
		       !memcmp(receiver.loop.in, message, BYTES),
	       "in order they make the message, with the last one");
	tap_ok(!take(&receiver, message, 1, PIECES - 1, FRAME), "a piece that comes twice makes no message");
	take(&receiver, message, 2, 0, FRAME);
	tap_ok(!take(&receiver, message, 2, 2, FRAME), "without the middle there is no message");
	early = take(&receiver, other, 3, 0, FRAME);
	early |= take(&receiver, other, 3, 1, FRAME);
	tap_ok(!early && take(&receiver, other, 3, 2, FRAME) && !memcmp(receiver.loop.in, other, BYTES),
	       "the next one's first piece begins anew");
	take(&receiver, message, 4, 0, FRAME);
	early = take(&receiver, message, 5, 1, FRAME);
	early |= take(&receiver, message, 5, 2, FRAME);
	tap_ok(!early, "pieces of two messages make none");
	for (size_t room = 1; room < FRAME; room++) {
		take(&receiver, message, 6, 0, FRAME);
		torn |= take(&receiver, message, 6, 1, room);
		torn |= take(&receiver, message, 6, 2, FRAME);
	}
	tap_ok(!torn, "a frame that was cut anywhere is no piece");
	free(receiver.loop.in);
	start(&receiver, BYTES - 1);
	early = take(&receiver, message, 1, 0, FRAME);
	early |= take(&receiver, message, 1, 1, FRAME);
	tap_ok(!early && !take(&receiver, message, 1, 2, FRAME),
	       "pieces of a message of another size make none");
	free(receiver.loop.in);
	return tap_done();
}
