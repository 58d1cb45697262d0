/* SPDX-License-Identifier: BSD-3-Clause */
/* See xdp_socket.h. */
#include "xdp_socket.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

enum { TRIES_MAX = 100, PAUSE_NS = 10000000, QUEUES_MAX = 64 };

static int bpf_call(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/*
 * Whether to try again after a busy device: the kernel gives the place of a closed socket back later, from a
 * work queue, so that one opened soon after may still find it taken. Sleeps a little; *tries_inout counts.
 */
static bool try_again(unsigned int *tries_inout)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	const int error = errno;

	if ((error != EBUSY && error != EEXIST) || ++*tries_inout > TRIES_MAX)
		return false;
	nanosleep(&pause, NULL);
	errno = error;
	return true;
}

/* Closes, and leaves errno as it is. */
static void close_one(int *fd)
{
	const int error = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = error;
}

/* ---- device, memory, rings ---- */

static const char *ask_device(struct pgr_xdp_socket *xdp, int fd, struct ifreq *request)
{
	if (ioctl(fd, SIOCGIFINDEX, request) < 0)
		return "the device";
	xdp->ifindex = (uint32_t)request->ifr_ifindex;
	if (ioctl(fd, SIOCGIFHWADDR, request) < 0)
		return "its hardware address";
	memcpy(xdp->mac, request->ifr_hwaddr.sa_data, sizeof(xdp->mac));
	if (ioctl(fd, SIOCGIFMTU, request) < 0)
		return "its MTU";
	xdp->mtu = (uint32_t)request->ifr_mtu;
	if (ioctl(fd, SIOCGIFFLAGS, request) < 0)
		return "its state";
	if (!(request->ifr_flags & IFF_UP)) {
		errno = ENETDOWN;
		return "its state";
	}
	return NULL;
}

static const char *read_device(struct pgr_xdp_socket *xdp, const char *device)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const char *failed;

	if (fd < 0)
		return "a socket";
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	failed = ask_device(xdp, fd, &request);
	close_one(&fd);
	return failed;
}

static int map_ring(int fd, struct pgr_xdp_ring *ring, const struct xdp_ring_offset *offset, size_t bytes,
		    uint64_t page_offset)
{
	ring->map_bytes = (size_t)offset->desc + bytes;
	ring->map = mmap(NULL, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			 (off_t)page_offset);
	if (ring->map == MAP_FAILED) {
		ring->map = NULL;
		return -1;
	}
	ring->producer = (uint32_t *)(void *)((uint8_t *)ring->map + offset->producer);
	ring->consumer = (uint32_t *)(void *)((uint8_t *)ring->map + offset->consumer);
	ring->flags = (uint32_t *)(void *)((uint8_t *)ring->map + offset->flags);
	ring->entries = (uint8_t *)ring->map + offset->desc;
	return 0;
}

static const char *make_frames(struct pgr_xdp_socket *xdp, const struct pgr_xdp_shape *shape)
{
	struct xdp_umem_reg umem = {.chunk_size = shape->frame_bytes, .headroom = shape->headroom_bytes};
	void *frames;

	xdp->frames_bytes = ((size_t)shape->in + shape->out) * shape->frame_bytes;
	frames = mmap(NULL, xdp->frames_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (frames == MAP_FAILED)
		return "memory for frames";
	xdp->frames = frames;
	umem.addr = (uint64_t)(uintptr_t)frames;
	umem.len = xdp->frames_bytes;
	return setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)) < 0
		       ? "registering memory for frames"
		       : NULL;
}

static const char *make_rings(struct pgr_xdp_socket *xdp, const struct pgr_xdp_shape *shape)
{
	const uint32_t in = shape->in, out = shape->out;
	struct xdp_mmap_offsets offsets;
	socklen_t bytes = sizeof(offsets);
	uint64_t *fill;

	if (setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_FILL_RING, &in, sizeof(in)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &out, sizeof(out)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_RX_RING, &in, sizeof(in)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_TX_RING, &out, sizeof(out)) < 0 ||
	    getsockopt(xdp->fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &bytes) < 0)
		return "the rings of a socket";
	if (bytes != sizeof(offsets)) {
		errno = ENOSYS;
		return "the rings of a socket";
	}
	if (map_ring(xdp->fd, &xdp->fill, &offsets.fr, in * sizeof(uint64_t), XDP_UMEM_PGOFF_FILL_RING) ||
	    map_ring(xdp->fd, &xdp->complete, &offsets.cr, out * sizeof(uint64_t),
		     XDP_UMEM_PGOFF_COMPLETION_RING) ||
	    map_ring(xdp->fd, &xdp->receive, &offsets.rx, in * sizeof(struct xdp_desc), XDP_PGOFF_RX_RING) ||
	    map_ring(xdp->fd, &xdp->transmit, &offsets.tx, out * sizeof(struct xdp_desc), XDP_PGOFF_TX_RING))
		return "mapping the rings of a socket";
	fill = xdp->fill.entries;
	for (uint32_t i = 0; i < in; i++)
		fill[i] = (uint64_t)i * shape->frame_bytes;
	__atomic_store_n(xdp->fill.producer, in, __ATOMIC_RELEASE);
	return NULL;
}

const char *pgr_xdp_socket_open(struct pgr_xdp_socket *xdp, const char *device,
				const struct pgr_xdp_shape *shape)
{
	struct sockaddr_xdp at = {.sxdp_family = AF_XDP};
	const int bytes = shape->send_buffer_bytes;
	unsigned int tries = 0;
	const char *failed;

	memset(xdp, 0, sizeof(*xdp));
	xdp->fd = xdp->map_fd = xdp->program_fd = xdp->link_fd = -1;
	xdp->name = shape->name;
	failed = read_device(xdp, device);
	if (failed)
		return failed;
	xdp->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (xdp->fd < 0)
		return "a socket";
	if (bytes)
		setsockopt(xdp->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	failed = make_frames(xdp, shape);
	if (!failed)
		failed = make_rings(xdp, shape);
	if (failed)
		return failed;
	at.sxdp_flags = (uint16_t)(XDP_COPY | shape->bind_flags);
	at.sxdp_ifindex = xdp->ifindex;
	while (bind(xdp->fd, (const struct sockaddr *)(const void *)&at, sizeof(at)) < 0)
		if (!try_again(&tries))
			return "binding a socket";
	return NULL;
}

/* ---- the program ---- */

static const char *make_map(struct pgr_xdp_socket *xdp)
{
	const uint32_t queue = 0;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_XSKMAP;
	attr.key_size = attr.value_size = 4;
	attr.max_entries = QUEUES_MAX;
	snprintf(attr.map_name, sizeof(attr.map_name), "%s", xdp->name);
	xdp->map_fd = bpf_call(BPF_MAP_CREATE, &attr);
	if (xdp->map_fd < 0)
		return "a BPF map for sockets";
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)xdp->map_fd;
	attr.key = (uint64_t)(uintptr_t)&queue;
	attr.value = (uint64_t)(uintptr_t)&xdp->fd;
	return bpf_call(BPF_MAP_UPDATE_ELEM, &attr) < 0 ? "entering a socket in its map" : NULL;
}

const char *pgr_xdp_socket_load(struct pgr_xdp_socket *xdp, struct bpf_insn *program, uint32_t count,
				uint32_t map_at)
{
	static const char licence[] = "Dual BSD/GPL";
	const char *failed = make_map(xdp);
	union bpf_attr attr;

	if (failed)
		return failed;
	program[map_at].imm = xdp->map_fd;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.expected_attach_type = BPF_XDP;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = count;
	attr.license = (uint64_t)(uintptr_t)licence;
	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", xdp->name);
	xdp->program_fd = bpf_call(BPF_PROG_LOAD, &attr);
	return xdp->program_fd < 0 ? "loading a BPF program" : NULL;
}

const char *pgr_xdp_socket_attach(struct pgr_xdp_socket *xdp, bool native)
{
	unsigned int tries = 0;
	union bpf_attr attr;

	close_one(&xdp->link_fd);
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)xdp->program_fd;
	attr.link_create.target_ifindex = xdp->ifindex;
	attr.link_create.attach_type = BPF_XDP;
	attr.link_create.flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	do
		xdp->link_fd = bpf_call(BPF_LINK_CREATE, &attr);
	while (xdp->link_fd < 0 && try_again(&tries));
	xdp->native = native;
	if (xdp->link_fd >= 0)
		return NULL;
	return native ? "attaching a program to the driver" : "attaching a generic program";
}

/* ---- the end ---- */

static void unmap_ring(struct pgr_xdp_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->map_bytes);
	ring->map = NULL;
}

void pgr_xdp_socket_close(struct pgr_xdp_socket *xdp)
{
	close_one(&xdp->link_fd);
	unmap_ring(&xdp->fill);
	unmap_ring(&xdp->complete);
	unmap_ring(&xdp->receive);
	unmap_ring(&xdp->transmit);
	close_one(&xdp->fd);
	close_one(&xdp->program_fd);
	close_one(&xdp->map_fd);
	if (xdp->frames)
		munmap(xdp->frames, xdp->frames_bytes);
	xdp->frames = NULL;
}
