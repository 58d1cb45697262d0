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
#include <sys/resource.h>
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

static int bpf_call(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/*
 * Whether to try again after a busy device: the kernel gives the frames and the place of a closed socket back
 * later, from a work queue, so that a launch may meet the last one's. `tries` counts.
 */
static bool busy_for_now(unsigned int *tries)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	const int error = errno;

	if ((error != EBUSY && error != EEXIST) || ++*tries > 100)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

/* Turns errno of a step into a reason: forbidden, missing in this kernel, or broken. */
static int step_failed(struct drv_fail *fail, const char *what)
{
	const int error = errno;

	if (error == EPERM || error == EACCES)
		return drv_fail_set(fail, DRV_PERMISSION,
				    "%s: %s (raw frames need root, or CAP_NET_RAW, CAP_NET_ADMIN and "
				    "CAP_BPF)",
				    what, strerror(error));
	if (error == EAFNOSUPPORT || error == ENOSYS || error == EINVAL || error == EOPNOTSUPP ||
	    error == EPROTONOSUPPORT)
		return drv_fail_set(fail, DRV_NODE_LACKS, "%s: %s (this kernel or device has no such thing)",
				    what, strerror(error));
	if (error == ENOMEM || error == ENOBUFS)
		return drv_fail_set(fail, DRV_MEMORY, "%s: %s", what, strerror(error));
	if (error == EBUSY || error == EEXIST)
		return drv_fail_set(fail, DRV_TRANSPORT, "%s: another program or socket has the device",
				    what);
	return drv_fail_set(fail, DRV_SYSTEM, "%s: %s", what, strerror(error));
}

static int read_device(struct xdp_socket *xdp, const char *device, struct drv_fail *fail)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), status = 0;

	if (fd < 0)
		return step_failed(fail, "socket");
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	if (ioctl(fd, SIOCGIFINDEX, &request) < 0) {
		status = drv_fail_set(fail, DRV_TRANSPORT, "there is no interface '%s'", device);
	} else {
		xdp->ifindex = (uint32_t)request.ifr_ifindex;
		if (ioctl(fd, SIOCGIFHWADDR, &request) < 0)
			status = step_failed(fail, "SIOCGIFHWADDR");
		else
			memcpy(xdp->mac, request.ifr_hwaddr.sa_data, sizeof(xdp->mac));
	}
	if (!status && ioctl(fd, SIOCGIFMTU, &request) < 0)
		status = step_failed(fail, "SIOCGIFMTU");
	else if (!status)
		xdp->mtu = (uint32_t)request.ifr_mtu;
	if (!status && ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		status = step_failed(fail, "SIOCGIFFLAGS");
	else if (!status && !(request.ifr_flags & IFF_UP))
		status = drv_fail_set(fail, DRV_TRANSPORT, "interface '%s' is down", device);
	close(fd);
	return status;
}

static int map_ring(int fd, struct xdp_ring *ring, const struct xdp_ring_offset *offset, size_t entry_bytes,
		    uint64_t page_offset)
{
	ring->map_bytes = (size_t)offset->desc + XDP_RING * entry_bytes;
	ring->map = mmap(NULL, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			 (off_t)page_offset);
	if (ring->map == MAP_FAILED) {
		ring->map = NULL;
		return -1;
	}
	ring->producer = (uint32_t *)(void *)((uint8_t *)ring->map + offset->producer);
	ring->consumer = (uint32_t *)(void *)((uint8_t *)ring->map + offset->consumer);
	ring->entries = (uint8_t *)ring->map + offset->desc;
	return 0;
}

static int make_rings(struct xdp_socket *xdp, struct drv_fail *fail)
{
	struct xdp_umem_reg umem = {.len = (uint64_t)XDP_FRAMES * XDP_FRAME_BYTES,
				    .chunk_size = XDP_FRAME_BYTES};
	struct xdp_mmap_offsets offsets;
	socklen_t bytes = sizeof(offsets);
	const int entries = XDP_RING;
	uint64_t *fill;

	xdp->frames = mmap(NULL, XDP_FRAMES * XDP_FRAME_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (xdp->frames == MAP_FAILED) {
		xdp->frames = NULL;
		return step_failed(fail, "memory for frames");
	}
	umem.addr = (uint64_t)(uintptr_t)xdp->frames;
	if (setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)) < 0)
		return step_failed(fail, "XDP_UMEM_REG");
	if (setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_FILL_RING, &entries, sizeof(entries)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &entries, sizeof(entries)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_RX_RING, &entries, sizeof(entries)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_TX_RING, &entries, sizeof(entries)) < 0 ||
	    getsockopt(xdp->fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &bytes) < 0)
		return step_failed(fail, "rings of an AF_XDP socket");
	if (bytes != sizeof(offsets))
		return drv_fail_set(fail, DRV_NODE_LACKS, "AF_XDP of this kernel is older than 5.4");
	if (map_ring(xdp->fd, &xdp->fill, &offsets.fr, 8, XDP_UMEM_PGOFF_FILL_RING) ||
	    map_ring(xdp->fd, &xdp->complete, &offsets.cr, 8, XDP_UMEM_PGOFF_COMPLETION_RING) ||
	    map_ring(xdp->fd, &xdp->receive, &offsets.rx, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING) ||
	    map_ring(xdp->fd, &xdp->transmit, &offsets.tx, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING))
		return step_failed(fail, "rings of an AF_XDP socket");
	fill = xdp->fill.entries;
	for (uint32_t i = 0; i < XDP_FRAMES / 2; i++)
		fill[i] = (uint64_t)i * XDP_FRAME_BYTES;
	__atomic_store_n(xdp->fill.producer, XDP_FRAMES / 2, __ATOMIC_RELEASE);
	return 0;
}

#define INSN(c, d, s, o, i) {.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)}

/* Frames of our ethertype go to the socket of their queue, all others pass. */
static int load_program(struct xdp_socket *xdp, struct drv_fail *fail)
{
	struct bpf_insn program[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 0, 0),    /*  0: r2 = ctx->data */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 3, 1, 4, 0),    /*  1: r3 = ctx->data_end */
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0),  /*  2: r4 = r2 */
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, 14), /*  3: r4 += 14 */
		INSN(BPF_JMP | BPF_JGT | BPF_X, 4, 3, 8, 0),    /*  4: if r4 > r3 goto 13 */
		INSN(BPF_LDX | BPF_MEM | BPF_H, 5, 2, 12, 0),   /*  5: r5 = ethertype */
		INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 6,
		     __builtin_bswap16(XDP_ETHERTYPE)),       /*  6: other: goto 13 */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 16, 0), /*  7: r2 = ctx->rx_queue_index */
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, 0), /*  8: r1 = map; see below */
		INSN(0, 0, 0, 0, 0),                                         /*  9: its upper half */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0,
		     XDP_PASS), /* 10: r3 = what to do without a socket */
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map), /* 11 */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),                     /* 12 */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS),     /* 13: r0 = pass */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),                     /* 14 */
	};
	static const char licence[] = "Dual BSD/GPL";
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_XSKMAP;
	attr.key_size = attr.value_size = 4;
	attr.max_entries = 64;
	snprintf(attr.map_name, sizeof(attr.map_name), "cadge_floor");
	xdp->map_fd = bpf_call(BPF_MAP_CREATE, &attr);
	if (xdp->map_fd < 0)
		return step_failed(fail, "a BPF map for sockets");
	program[8].imm = xdp->map_fd;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.expected_attach_type = BPF_XDP;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.license = (uint64_t)(uintptr_t)licence;
	snprintf(attr.prog_name, sizeof(attr.prog_name), "cadge_floor");
	xdp->program_fd = bpf_call(BPF_PROG_LOAD, &attr);
	return xdp->program_fd < 0 ? step_failed(fail, "loading a BPF program of 15 instructions") : 0;
}

int xdp_socket_open(struct xdp_socket *xdp, const char *device, struct drv_fail *fail)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct sockaddr_xdp at = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY};
	const uint32_t queue = 0;
	unsigned int tries = 0;
	union bpf_attr attr;

	memset(xdp, 0, sizeof(*xdp));
	xdp->fd = xdp->map_fd = xdp->program_fd = xdp->link_fd = -1;
	if (read_device(xdp, device, fail))
		return -1;
	xdp->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (xdp->fd < 0)
		return step_failed(fail, "an AF_XDP socket");
	/*
	 * Before 5.11 the kernel charges maps and frames to this limit; where it may not be raised the calls
	 * below say so.
	 */
	if (setrlimit(RLIMIT_MEMLOCK, &unlimited) < 0 && errno != EPERM)
		return step_failed(fail, "RLIMIT_MEMLOCK");
	if (make_rings(xdp, fail) || load_program(xdp, fail))
		return -1;
	at.sxdp_ifindex = xdp->ifindex;
	at.sxdp_queue_id = queue;
	while (bind(xdp->fd, (const void *)&at, sizeof(at)) < 0)
		if (!busy_for_now(&tries))
			return step_failed(fail, "binding an AF_XDP socket in copy mode");
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)xdp->map_fd;
	attr.key = (uint64_t)(uintptr_t)&queue;
	attr.value = (uint64_t)(uintptr_t)&xdp->fd;
	return bpf_call(BPF_MAP_UPDATE_ELEM, &attr) < 0 ? step_failed(fail, "entering the socket in its map")
							: 0;
}

void xdp_socket_detach(struct xdp_socket *xdp)
{
	if (xdp->link_fd >= 0)
		close(xdp->link_fd);
	xdp->link_fd = -1;
}

int xdp_socket_attach(struct xdp_socket *xdp, bool native, struct drv_fail *fail)
{
	unsigned int tries = 0;
	union bpf_attr attr;

	xdp_socket_detach(xdp);
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)xdp->program_fd;
	attr.link_create.target_ifindex = xdp->ifindex;
	attr.link_create.attach_type = BPF_XDP;
	attr.link_create.flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	do
		xdp->link_fd = bpf_call(BPF_LINK_CREATE, &attr);
	while (xdp->link_fd < 0 && busy_for_now(&tries));
	if (xdp->link_fd >= 0)
		return 0;
	return step_failed(fail, native ? "attaching an XDP program to the driver"
					: "attaching a generic XDP program");
}

static void unmap_ring(struct xdp_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->map_bytes);
	ring->map = NULL;
}

void xdp_socket_close(struct xdp_socket *xdp)
{
	xdp_socket_detach(xdp);
	unmap_ring(&xdp->fill);
	unmap_ring(&xdp->complete);
	unmap_ring(&xdp->receive);
	unmap_ring(&xdp->transmit);
	if (xdp->fd >= 0)
		close(xdp->fd);
	if (xdp->program_fd >= 0)
		close(xdp->program_fd);
	if (xdp->map_fd >= 0)
		close(xdp->map_fd);
	if (xdp->frames)
		munmap(xdp->frames, XDP_FRAMES * XDP_FRAME_BYTES);
	memset(xdp, 0, sizeof(*xdp));
	xdp->fd = xdp->map_fd = xdp->program_fd = xdp->link_fd = -1;
}
