/* SPDX-License-Identifier: BSD-3-Clause */
/* See xdp_socket.h: device, memory, rings. */
#include "xdp_socket.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

#define FRAMES_BYTES ((size_t)(PGR_XDP_IN + PGR_XDP_OUT) * PGR_XDP_FRAME_BYTES)
enum { TRIES_MAX = 100, PAUSE_NS = 10000000, SEND_BUFFER_BYTES = 4 << 20 };

bool pgr_xdp_try_again(unsigned int *tries_inout)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	const int error = errno;

	if ((error != EBUSY && error != EEXIST) || ++*tries_inout > TRIES_MAX)
		return false;
	nanosleep(&pause, NULL);
	errno = error;
	return true;
}

int pgr_xdp_fail(const struct pgr_config *config, const char *what)
{
	const int error = errno;

	if (error == EPERM || error == EACCES)
		return pgr_wire_fail(config, PGR_E_PERMISSION,
				     "the wire xdp: %s: %s (it needs root, or CAP_NET_RAW, CAP_NET_ADMIN and "
				     "CAP_BPF)",
				     what, strerror(error));
	if (error == ENOMEM || error == ENOBUFS)
		return pgr_wire_fail(config, PGR_E_MEMORY, "the wire xdp: %s: %s", what, strerror(error));
	if (error == EBUSY || error == EEXIST)
		return pgr_wire_fail(config, PGR_E_WIRE,
				     "the wire xdp: %s: another endpoint or program has queue 0 of %s", what,
				     config->device);
	return pgr_wire_fail(config, PGR_E_WIRE, "the wire xdp: %s on %s: %s", what, config->device,
			     strerror(error));
}

static int read_device(struct pgr_xdp_socket *xdp, const struct pgr_config *config)
{
	struct ifreq request = {0};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int code = PGR_OK;

	if (fd < 0)
		return pgr_xdp_fail(config, "a socket");
	memcpy(request.ifr_name, xdp->device, sizeof(xdp->device));
	if (ioctl(fd, SIOCGIFINDEX, &request) < 0) {
		code = pgr_wire_fail(config, PGR_E_WIRE, "the wire xdp: there is no interface '%s'",
				     config->device);
	} else {
		xdp->ifindex = (uint32_t)request.ifr_ifindex;
		if (ioctl(fd, SIOCGIFHWADDR, &request) < 0)
			code = pgr_xdp_fail(config, "its hardware address");
		memcpy(xdp->mac, request.ifr_hwaddr.sa_data, sizeof(xdp->mac));
	}
	if (code == PGR_OK && ioctl(fd, SIOCGIFMTU, &request) < 0)
		code = pgr_xdp_fail(config, "its MTU");
	else if (code == PGR_OK)
		xdp->mtu = (uint32_t)request.ifr_mtu;
	if (code == PGR_OK && ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		code = pgr_xdp_fail(config, "its state");
	else if (code == PGR_OK && !(request.ifr_flags & IFF_UP))
		code = pgr_wire_fail(config, PGR_E_WIRE, "the wire xdp: the interface %s is down",
				     config->device);
	close(fd);
	return code;
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

static int make_rings(struct pgr_xdp_socket *xdp, const struct pgr_config *config)
{
	struct xdp_umem_reg umem = {.len = FRAMES_BYTES, .chunk_size = PGR_XDP_FRAME_BYTES};
	const int in = PGR_XDP_IN, out = PGR_XDP_OUT;
	struct xdp_mmap_offsets offsets;
	socklen_t bytes = sizeof(offsets);
	uint64_t *fill;

	xdp->frames = mmap(NULL, FRAMES_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (xdp->frames == MAP_FAILED) {
		xdp->frames = NULL;
		return pgr_xdp_fail(config, "memory for frames");
	}
	umem.addr = (uint64_t)(uintptr_t)xdp->frames;
	if (setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)) < 0)
		return pgr_xdp_fail(config, "registering memory for frames");
	if (setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_FILL_RING, &in, sizeof(in)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &out, sizeof(out)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_RX_RING, &in, sizeof(in)) < 0 ||
	    setsockopt(xdp->fd, SOL_XDP, XDP_TX_RING, &out, sizeof(out)) < 0 ||
	    getsockopt(xdp->fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &bytes) < 0)
		return pgr_xdp_fail(config, "the rings of a socket");
	if (bytes != sizeof(offsets))
		return pgr_wire_fail(config, PGR_E_WIRE, "the wire xdp needs Linux 5.9 or later");
	if (map_ring(xdp->fd, &xdp->fill, &offsets.fr, PGR_XDP_IN * sizeof(uint64_t),
		     XDP_UMEM_PGOFF_FILL_RING) ||
	    map_ring(xdp->fd, &xdp->complete, &offsets.cr, PGR_XDP_OUT * sizeof(uint64_t),
		     XDP_UMEM_PGOFF_COMPLETION_RING) ||
	    map_ring(xdp->fd, &xdp->receive, &offsets.rx, PGR_XDP_IN * sizeof(struct xdp_desc),
		     XDP_PGOFF_RX_RING) ||
	    map_ring(xdp->fd, &xdp->transmit, &offsets.tx, PGR_XDP_OUT * sizeof(struct xdp_desc),
		     XDP_PGOFF_TX_RING))
		return pgr_xdp_fail(config, "mapping the rings of a socket");
	fill = xdp->fill.entries;
	for (uint32_t i = 0; i < PGR_XDP_IN; i++)
		fill[i] = (uint64_t)i * PGR_XDP_FRAME_BYTES;
	__atomic_store_n(xdp->fill.producer, PGR_XDP_IN, __ATOMIC_RELEASE);
	return PGR_OK;
}

int pgr_xdp_open(struct pgr_xdp_socket *xdp, const struct pgr_config *config, uint32_t number)
{
	struct sockaddr_xdp at = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY | XDP_USE_NEED_WAKEUP};
	const int bytes = SEND_BUFFER_BYTES;
	unsigned int tries = 0;
	int code;

	memset(xdp, 0, sizeof(*xdp));
	xdp->fd = xdp->map_fd = xdp->program_fd = xdp->link_fd = -1;
	snprintf(xdp->device, sizeof(xdp->device), "%.15s", config->device);
	code = read_device(xdp, config);
	if (code != PGR_OK)
		return code;
	xdp->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (xdp->fd < 0)
		return pgr_xdp_fail(config, "a socket");
	setsockopt(xdp->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)); /* up to what the machine allows */
	code = make_rings(xdp, config);
	if (code != PGR_OK)
		return code;
	/* First the socket: who finds its queue taken has not touched the program there. */
	at.sxdp_ifindex = xdp->ifindex;
	while (bind(xdp->fd, (const struct sockaddr *)(const void *)&at, sizeof(at)) < 0)
		if (!pgr_xdp_try_again(&tries))
			return pgr_xdp_fail(config, "binding a socket");
	return pgr_xdp_attach(xdp, config, number);
}

static void unmap_ring(struct pgr_xdp_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->map_bytes);
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

void pgr_xdp_close(struct pgr_xdp_socket *xdp)
{
	close_one(xdp->link_fd);
	unmap_ring(&xdp->fill);
	unmap_ring(&xdp->complete);
	unmap_ring(&xdp->receive);
	unmap_ring(&xdp->transmit);
	close_one(xdp->fd);
	close_one(xdp->program_fd);
	close_one(xdp->map_fd);
	if (xdp->frames)
		munmap(xdp->frames, FRAMES_BYTES);
}
