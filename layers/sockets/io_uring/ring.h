/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings of a context: submissions, completions, and the buffers that the kernel receives into. Buffers are receive
 * blocks, so that a message can be lent from where the kernel put it.
 */
#ifndef CADGE_SOCKETS_IO_URING_RING_H
#define CADGE_SOCKETS_IO_URING_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "sockets/blocks.h"

enum { SOCK_RING_GROUP = 1 }; /* of the offered buffers */

struct sock_ring {
	struct io_uring io;
	bool open;
	struct io_uring_buf_ring *offers;
	size_t offers_bytes;
	struct cadge_lend **offered; /* by number; NULL: lost, since memory ran out */
	uint32_t buffers;
	struct sock_blocks *blocks;
	int event_fd;    /* -1: poll mode */
	const char *how; /* which way the kernel reports completions */
};

/*
 * For up to `peers` channels; `blocks` outlive it. On failure args->error says why, and what to do. DONE,
 * E_PERMISSION, E_ABSENT, E_MEMORY, E_LIBRARY.
 */
int sock_ring_open(struct sock_ring *ring, const struct cadge_open_args *args, uint32_t peers,
		   struct sock_blocks *blocks);
/* A zeroed ring is legal, but for event_fd. No request may be in flight. */
void sock_ring_close(struct sock_ring *ring);

/* A free submission; hands over what is there already where none is left. NULL: the kernel takes none. */
struct io_uring_sqe *sock_ring_next(struct sock_ring *ring);

/* Where the kernel writes in the buffer, and how much at most. */
unsigned char *sock_ring_data(const struct cadge_lend *block);
/* The buffer is read: offers it again, or another one where a receiver keeps it. DONE or E_MEMORY. */
int sock_ring_offer(struct sock_ring *ring, uint32_t number);

/* Has the kernel work that it does only inside a call? Looks in memory. */
static inline bool sock_ring_lags(const struct sock_ring *ring)
{
	return IO_URING_READ_ONCE(*ring->io.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* Is there anything for poll to do? */
static inline bool sock_ring_has_work(const struct sock_ring *ring)
{
	return io_uring_cq_ready(&ring->io) || sock_ring_lags(ring);
}

/* Takes the next completion out. False: there is none in memory. */
static inline bool sock_ring_take(struct sock_ring *ring, struct io_uring_cqe *completion_out)
{
	struct io_uring_cqe *completion;
	unsigned head;

	io_uring_for_each_cqe(&ring->io, head, completion)
	{
		*completion_out = *completion;
		io_uring_cq_advance(&ring->io, 1);
		return true;
	}
	return false;
}

/* Makes event_fd readable from now on whenever has_work, or leaves it alone. */
void sock_ring_arm(struct sock_ring *ring, bool on);

#endif
