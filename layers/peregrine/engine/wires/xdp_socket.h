/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One AF_XDP socket in copy mode: its memory and rings, and a program of the caller's that brings it its packets;
 * on system calls alone, without a library or a compiler for BPF. The file stands alone: it includes nothing else
 * of the engine, so that a program which wants raw frames and no protocol links it as it is.
 *
 * Steps: pgr_xdp_socket_open, pgr_xdp_socket_load, pgr_xdp_socket_attach; pgr_xdp_socket_close after any of them, and
 * after a failure of any. Each step returns NULL, or what failed as words that fit before ": " and a reason, with
 * errno as the reason:
 *
 *	EPERM, EACCES     CAP_NET_RAW, CAP_NET_ADMIN or CAP_BPF is missing
 *	ENODEV, ENETDOWN  there is no such device; it is down
 *	EBUSY, EEXIST     another socket has the queue, or another program the device, and kept it for a second
 *	ENOSYS            the kernel is older than Linux 5.4
 *	ENOMEM, ENOBUFS   no memory
 *	any other         of the system call that failed
 *
 * Nothing here is safe against another thread on the same socket.
 */
#ifndef PGR_XDP_SOCKET_H
#define PGR_XDP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_insn;

struct pgr_xdp_shape {
	/* of a frame: 2048, or a larger power of two up to a page */
	uint32_t frame_bytes;
	/* frames to receive into and to send from: powers of two. The rings of each have as many entries */
	uint32_t in, out;
	/* left free before each frame that is received */
	uint32_t headroom_bytes;
	/* for bind(), beside XDP_COPY: XDP_USE_NEED_WAKEUP, or 0 */
	uint16_t bind_flags;
	/* SO_SNDBUF, as far as the machine allows; 0: as it is */
	int send_buffer_bytes;
	/* of map and program, as bpftool shows them: 15 characters at most; has to live as long as the socket */
	const char *name;
};

/* One ring, as the kernel maps it. Places never wrap; the caller takes them modulo the entries. */
struct pgr_xdp_ring {
	uint32_t *producer, *consumer, *flags;
	void *entries, *map;
	size_t map_bytes;
};

struct pgr_xdp_socket {
	/* of all frames */
	size_t frames_bytes;
	const char *name;
	uint32_t ifindex;
	/* of the device, in bytes without the Ethernet header */
	uint32_t mtu;
	uint8_t mac[6];
	/* how the program is attached: in the driver, or generic */
	bool native;
	/* descriptors; -1: not there */
	int fd, map_fd, program_fd, link_fd;
	/* first those to receive into, all of which are in the ring `fill` after opening */
	uint8_t *frames;
	/* entries of fill and complete are offsets into `frames`, those of the others struct xdp_desc */
	struct pgr_xdp_ring fill, complete, receive, transmit;
};

/* Binds a socket to queue 0 of the device; no packet comes yet. */
const char *pgr_xdp_socket_open(struct pgr_xdp_socket *xdp, const char *device,
				const struct pgr_xdp_shape *shape);
/*
 * Loads the program, with the socket in a map by its queue. Instruction `map_at` of the program loads the map's
 * address (BPF_LD | BPF_DW | BPF_IMM with BPF_PSEUDO_MAP_FD, two instructions long): its imm is filled in here.
 */
const char *pgr_xdp_socket_load(struct pgr_xdp_socket *xdp, struct bpf_insn *program, uint32_t count,
				uint32_t map_at);
/*
 * Attaches the program to the device, in its driver (native) or generic, through a BPF link whose descriptor dies
 * with the process: whatever happens, the kernel takes the program off again. An earlier attachment of the socket's
 * ends first.
 */
const char *pgr_xdp_socket_attach(struct pgr_xdp_socket *xdp, bool native);
/* Releases everything. Legal on a socket whose descriptors are -1 and whose other members are zeros. */
void pgr_xdp_socket_close(struct pgr_xdp_socket *xdp);

#endif
