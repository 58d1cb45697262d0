/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames and rings of the floor on raw frames. The kernel has only as many frames to receive into as the point
 * needs: the few of a message in one frame stay in the processor's cache, and a message of many finds room for all.
 */
#ifndef CADGE_FLOOR_XDP_FRAMES_H
#define CADGE_FLOOR_XDP_FRAMES_H

#include <errno.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "traffic/floor.h"
#include "xdp_socket.h"

/* On the wire: 14 bytes of Ethernet, 2 bytes of length (little endian), then the message, or a piece and its head. */
#define XDP_ETHER_BYTES  14u
#define XDP_LENGTH_BYTES 2u
#define XDP_HEAD_BYTES   (XDP_ETHER_BYTES + XDP_LENGTH_BYTES)
/* this bit of the length: a piece of a message that has several */
#define XDP_PIECE 0x8000u
/* a piece is not smaller, but for the last one: room in the ring is made before the device is known */
#define XDP_PIECE_BYTES_MIN 1024u
#define XDP_BLOCK_MS        5

/* The head of a piece, as stored on both sides, which are of one machine's kind. */
struct xdp_piece {
	uint32_t message, offset, bytes; /* which message, where in it, and how large it is */
};

struct floor_state {
	struct pgr_xdp_socket xdp;
	uint8_t head[XDP_ETHER_BYTES]; /* of what is sent */
	uint32_t next_frame;           /* to send from */
	uint64_t held;                 /* received frame that the loop still reads; UINT64_MAX: none */
	bool native;
	/* received frames: entries of their rings less one; those that the kernel has, and those that it should have */
	uint32_t in_mask, in_flight, lend;
	/* addresses of those that it does not have */
	uint64_t *spare;
	uint32_t spare_count;
	/* messages of several frames: bytes of a piece; messages sent; the one that arrives, and what of it is there */
	uint32_t piece_bytes, sent, gathering;
	size_t gathered;
};

DRV_INLINE void frame_lend(struct floor_state *state, uint64_t address)
{
	struct pgr_xdp_ring *fill = &state->xdp.fill;
	const uint32_t at = *fill->producer;

	((uint64_t *)fill->entries)[at & state->in_mask] = address;
	__atomic_store_n(fill->producer, at + 1, __ATOMIC_RELEASE);
}

/* A received frame has been read: the kernel gets it back, or loses it where it has more than it should. */
DRV_INLINE void frame_back(struct floor_state *state, uint64_t address)
{
	address = address / XDP_FRAME_BYTES * XDP_FRAME_BYTES;
	if (DRV_LIKELY(state->in_flight <= state->lend)) {
		frame_lend(state, address);
		return;
	}
	state->spare[state->spare_count++] = address;
	state->in_flight--;
}

/* The frame that came first, or NULL. It is the caller's until frame_back. */
DRV_INLINE const uint8_t *frame_take(struct floor_state *state, uint64_t *address_out, uint32_t *bytes_out)
{
	struct pgr_xdp_ring *ring = &state->xdp.receive;
	const uint32_t at = *ring->consumer;
	const struct xdp_desc *entry;

	if (__atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) == at)
		return NULL;
	entry = &((const struct xdp_desc *)ring->entries)[at & state->in_mask];
	*address_out = entry->addr;
	*bytes_out = entry->len;
	__atomic_store_n(ring->consumer, at + 1, __ATOMIC_RELEASE);
	return state->xdp.frames + *address_out;
}

/* Sleeps until a frame comes, a few ms at most. 0 or -1. */
DRV_INLINE int frame_sleep(struct drv_floor_loop *loop)
{
	struct pollfd ready = {.fd = loop->run->state->xdp.fd, .events = POLLIN};

	return poll(&ready, 1, XDP_BLOCK_MS) < 0 && errno != EINTR ? drv_floor_broke(loop, "poll") : 0;
}

/* A frame to fill and to queue: with its Ethernet head. */
DRV_INLINE uint8_t *frame_new(struct floor_state *state)
{
	const uint64_t first = (uint64_t)state->in_mask + 1;
	uint8_t *frame = state->xdp.frames + (first + state->next_frame++ % XDP_FRAMES_OUT) * XDP_FRAME_BYTES;

	memcpy(frame, state->head, sizeof(state->head));
	return frame;
}

DRV_INLINE void frame_queue(struct floor_state *state, const uint8_t *frame, size_t bytes)
{
	struct pgr_xdp_ring *transmit = &state->xdp.transmit;
	const uint32_t at = *transmit->producer;

	((struct xdp_desc *)transmit->entries)[at % XDP_FRAMES_OUT] =
		(struct xdp_desc){.addr = (uint64_t)(frame - state->xdp.frames), .len = (uint32_t)bytes};
	__atomic_store_n(transmit->producer, at + 1, __ATOMIC_RELEASE);
}

static int __attribute__((cold, noinline)) frames_refused(struct drv_floor_loop *loop)
{
	if (errno != EAGAIN && errno != EBUSY && errno != ENOBUFS && errno != EINTR)
		return drv_floor_broke(loop, "sendto on an AF_XDP socket");
	return drv_floor_poll_oob(loop);
}

/* What is queued leaves; its frames are free again. 0; 1: asked to stop (server); -1. */
DRV_INLINE int frames_leave(struct drv_floor_loop *loop)
{
	struct pgr_xdp_socket *xdp = &loop->run->state->xdp;
	uint32_t sent;

	while (DRV_UNLIKELY(sendto(xdp->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)) {
		const int status = frames_refused(loop);

		if (status)
			return status;
	}
	sent = __atomic_load_n(xdp->complete.producer, __ATOMIC_ACQUIRE);
	__atomic_store_n(xdp->complete.consumer, sent, __ATOMIC_RELEASE);
	return 0;
}

/* xdp_pieces.c: how many frames a message takes, and an exchange of messages that take several. */
uint32_t pieces_of(const struct floor_state *state, uint64_t bytes);
/* Writes one piece of a message, `length` bytes from piece->offset on, behind a frame's Ethernet head. Bytes of the frame. */
size_t pieces_fill(uint8_t *frame, const struct xdp_piece *piece, const uint8_t *message, size_t length);
/* Takes one frame into loop->in. True: the message is whole. */
bool pieces_gather(struct drv_floor_loop *loop, const uint8_t *frame, uint32_t frame_bytes);
int pieces_client(struct drv_floor_loop *loop);
int pieces_server(struct drv_floor_loop *loop);

#endif
