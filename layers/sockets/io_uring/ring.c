/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/io_uring/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "kit/adapter.h"
#include "sockets/stream.h"

enum {
	SUBMISSIONS = 128,
	BUFFERS_LEAST = 8, /* few, so that they stay in the caches */
	BUFFERS_MOST = 128,
	PER_PEER = 4, /* requests in flight: a send, a receive, and their cancellations */
};

/*
 * The kernel gives back the locked memory of a ring that was closed some time later, in work of its own. Who closes and opens
 * would find the limit (ulimit -l) reached by what is gone: how long, and in which steps, that is waited for.
 */
#define PATIENCE_NS 1000000000L
#define PAUSE_NS    1000000L

/* From the best on: what a kernel does not know it refuses with EINVAL. */
static const struct way {
	unsigned flags;
	const char *how;
} ways[] = {
	{IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG, "deferred"},
	{IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, "cooperative"},
	{0, "by interrupt"},
};

static int refuse(const struct cadge_open_args *args, int error)
{
	if ((error == EPERM || error == EACCES) && prctl(PR_GET_SECCOMP) == 0)
		return cadge_refuse(args, CADGE_E_PERMISSION,
				    "io_uring is forbidden (%s), and no seccomp filter is there: see "
				    "kernel.io_uring_disabled; "
				    "as root: sysctl kernel.io_uring_disabled=0; or use sockets-tcp",
				    strerror(error));
	if (error == EPERM || error == EACCES)
		return cadge_refuse(
			args, CADGE_E_PERMISSION,
			"io_uring is forbidden (%s), by a seccomp filter, as in many containers, or by "
			"kernel.io_uring_disabled: allow io_uring_setup, _enter and _register, or use "
			"sockets-tcp",
			strerror(error));
	if (error == ENOSYS)
		return cadge_refuse(
			args, CADGE_E_ABSENT,
			"there is no io_uring: the kernel was built without it, or a seccomp filter hides "
			"it; use sockets-tcp");
	if (error == ENOMEM)
		return cadge_refuse(
			args, CADGE_E_MEMORY,
			"no memory for io_uring's rings; raise the limit of locked memory (ulimit -l)");
	return cadge_refuse(args, CADGE_E_LIBRARY, "cannot set up io_uring: %s", strerror(error));
}

static int try_ways(struct sock_ring *ring, uint32_t peers)
{
	int error = -EINVAL;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways) && error == -EINVAL; i++) {
		/* Room for every completion that can be outstanding: nothing ever overflows. */
		struct io_uring_params params = {
			.flags = ways[i].flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
			.cq_entries = 2 * ring->buffers + PER_PEER * peers + SUBMISSIONS,
		};

		error = io_uring_queue_init_params(SUBMISSIONS, &ring->io, &params);
		ring->how = ways[i].how;
	}
	return error;
}

/* Whether to try again what found no memory; it pauses before. */
static bool again(int error, long *waited_ns)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	if (error != -ENOMEM || *waited_ns >= PATIENCE_NS)
		return false;
	nanosleep(&pause, NULL);
	*waited_ns += PAUSE_NS;
	return true;
}

static int set_up(struct sock_ring *ring, uint32_t peers)
{
	long waited_ns = 0;
	int error;

	do
		error = try_ways(ring, peers);
	while (again(error, &waited_ns));
	ring->open = error == 0;
	return -error;
}

/* Multishot receive came with kernel 6.0, and so did the zero-copy send, of which can be asked. */
static bool knows_multishot(struct sock_ring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&ring->io);
	const bool known = probe && io_uring_opcode_supported(probe, IORING_OP_SEND_ZC);

	io_uring_free_probe(probe);
	return known;
}

unsigned char *sock_ring_data(const struct cadge_lend *block)
{
	return block->data + SOCK_BLOCK_START;
}

static void offer(struct sock_ring *ring, uint32_t number)
{
	io_uring_buf_ring_add(ring->offers, sock_ring_data(ring->offered[number]), SOCK_BLOCK_BYTES,
			      (unsigned short)number, io_uring_buf_ring_mask(ring->buffers), 0);
	io_uring_buf_ring_advance(ring->offers, 1);
}

static int offer_buffers(struct sock_ring *ring, const struct cadge_open_args *args)
{
	struct io_uring_buf_reg registration = {.ring_entries = ring->buffers, .bgid = SOCK_RING_GROUP};
	long waited_ns = 0;
	void *memory;
	int error;

	ring->offers_bytes = ring->buffers * sizeof(struct io_uring_buf);
	memory = mmap(NULL, ring->offers_bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	ring->offered = calloc(ring->buffers, sizeof(struct cadge_lend *));
	if (memory != MAP_FAILED)
		ring->offers = memory;
	if (!ring->offers || !ring->offered)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	/* liburing 2.3 has no call that does all of this. */
	io_uring_buf_ring_init(ring->offers);
	registration.ring_addr = (uint64_t)(uintptr_t)ring->offers;
	do
		error = io_uring_register_buf_ring(&ring->io, &registration, 0);
	while (again(error, &waited_ns));
	if (error < 0)
		return cadge_refuse(args, error == -ENOMEM ? CADGE_E_MEMORY : CADGE_E_ABSENT,
				    "io_uring takes no ring of buffers: %s", strerror(-error));
	for (uint32_t i = 0; i < ring->buffers; i++) {
		ring->offered[i] = sock_block_take(ring->blocks, SOCK_BLOCK_START + SOCK_BLOCK_BYTES);
		if (!ring->offered[i])
			return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
		offer(ring, i);
	}
	return CADGE_DONE;
}

int sock_ring_open(struct sock_ring *ring, const struct cadge_open_args *args, uint32_t peers,
		   struct sock_blocks *blocks)
{
	int error, code;

	*ring = (struct sock_ring){.buffers = BUFFERS_LEAST, .blocks = blocks, .event_fd = -1};
	while (ring->buffers < 2 * peers && ring->buffers < BUFFERS_MOST)
		ring->buffers *= 2;
	error = set_up(ring, peers);
	if (error)
		return refuse(args, error);
	/* One look-up less in each call. Where the kernel refuses, nothing is lost. */
	(void)io_uring_register_ring_fd(&ring->io);
	code = knows_multishot(ring)
		       ? offer_buffers(ring, args)
		       : cadge_refuse(args, CADGE_E_ABSENT,
				      "this kernel's io_uring has no multishot receive: Linux 6.0 or "
				      "later is needed; use sockets-tcp");
	if (code == CADGE_DONE && args->wait_mode == CADGE_WAIT_BLOCK) {
		ring->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		error = ring->event_fd < 0 ? errno : -io_uring_register_eventfd(&ring->io, ring->event_fd);
		if (error)
			code = refuse(args, error);
		else
			sock_ring_arm(ring, false);
	}
	if (code < 0)
		sock_ring_close(ring);
	return code;
}

void sock_ring_close(struct sock_ring *ring)
{
	if (ring->open)
		io_uring_queue_exit(&ring->io);
	if (ring->offers)
		munmap(ring->offers, ring->offers_bytes);
	if (ring->event_fd >= 0)
		close(ring->event_fd);
	free(ring->offered);
	*ring = (struct sock_ring){.event_fd = -1};
}

struct io_uring_sqe *sock_ring_next(struct sock_ring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->io);

	if (!sqe && io_uring_submit(&ring->io) >= 0)
		sqe = io_uring_get_sqe(&ring->io);
	return sqe;
}

int sock_ring_offer(struct sock_ring *ring, uint32_t number)
{
	if (ring->offered[number]->keeps) {
		sock_block_detach(ring->blocks, ring->offered[number]);
		ring->offered[number] = sock_block_take(ring->blocks, SOCK_BLOCK_START + SOCK_BLOCK_BYTES);
		if (!ring->offered[number])
			return CADGE_E_MEMORY;
	}
	offer(ring, number);
	return CADGE_DONE;
}

void sock_ring_arm(struct sock_ring *ring, bool on)
{
	uint64_t count;

	if (ring->event_fd < 0 || (!on && !io_uring_cq_eventfd_enabled(&ring->io)))
		return;
	io_uring_cq_eventfd_toggle(&ring->io, on);
	/* What was told before this is seen by has_work, which the caller asks afterwards. */
	while (on && read(ring->event_fd, &count, sizeof(count)) > 0)
		;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
