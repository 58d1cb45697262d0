/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One AF_XDP socket in copy mode with its memory, rings and program, on system calls alone: no library, no
 * compiler for BPF. The program is attached through a BPF link, whose descriptor dies with the process:
 * whatever happens, the kernel takes the program off the device again.
 */
#ifndef CADGE_FLOOR_XDP_SOCKET_H
#define CADGE_FLOOR_XDP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"

#define XDP_FRAME_BYTES    4096u
#define XDP_FRAMES         64u /* half to receive into, half to send from */
#define XDP_RING           64u
#define XDP_ETHERTYPE      0x88b5u /* IEEE 802: for local experiments */
#define XDP_HEADROOM_BYTES 512u    /* the kernel's, taken off a frame; more than enough on every driver */

struct xdp_ring {
	uint32_t *producer, *consumer;
	void *entries;
	void *map;
	size_t map_bytes;
};

struct xdp_socket {
	int fd, map_fd, program_fd, link_fd; /* -1: not there */
	uint32_t ifindex;
	uint32_t mtu;
	uint8_t mac[6];
	uint8_t *frames;
	struct xdp_ring fill, complete, receive, transmit;
};

/* Everything but the attachment. On failure what was made is released by xdp_socket_close. */
int xdp_socket_open(struct xdp_socket *xdp, const char *device, struct drv_fail *fail);
/* Attaches the program, in the driver (native) or generic; an earlier attachment of ours ends first. */
int xdp_socket_attach(struct xdp_socket *xdp, bool native, struct drv_fail *fail);
void xdp_socket_detach(struct xdp_socket *xdp);
void xdp_socket_close(struct xdp_socket *xdp);

#endif
