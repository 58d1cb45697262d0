/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One AF_XDP socket in copy mode with its memory and rings, and the program that brings it its packets; on
 * system calls alone, without a library or a compiler for BPF.
 */
#ifndef PGR_XDP_SOCKET_H
#define PGR_XDP_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "pgr.h"

#define PGR_XDP_FRAME_BYTES    2048u /* the smallest that the kernel takes */
#define PGR_XDP_HEADROOM_BYTES 256u  /* the kernel's, of each frame that it fills */
#define PGR_XDP_IN             1024u /* frames to receive into, as many as their rings have entries */
#define PGR_XDP_OUT            512u  /* and to send from */
#define PGR_XDP_NAME_BYTES     16u

struct pgr_xdp_ring {
	uint32_t *producer, *consumer, *flags;
	void *entries, *map;
	size_t map_bytes;
};

struct pgr_xdp_socket {
	char device[PGR_XDP_NAME_BYTES];
	uint32_t ifindex, mtu;
	uint8_t mac[6];
	bool native;                         /* how the program is attached */
	int fd, map_fd, program_fd, link_fd; /* -1: not there */
	uint8_t *frames;                     /* first those to receive into */
	struct pgr_xdp_ring fill, complete, receive, transmit;
};

/* All, up to the attachment. On failure too everything is released by pgr_xdp_close. A pgr_code. */
int pgr_xdp_open(struct pgr_xdp_socket *xdp, const struct pgr_config *config, uint32_t number);
void pgr_xdp_close(struct pgr_xdp_socket *xdp);

/* ---- for xdp_socket.c ---- */

/*
 * Loads the program that gives the socket the packets to this number, and attaches it through a BPF link,
 * whose descriptor dies with the process: whatever happens, the kernel takes the program off the device.
 */
int pgr_xdp_attach(struct pgr_xdp_socket *xdp, const struct pgr_config *config, uint32_t number);
/*
 * Whether to try again after a busy device: the kernel gives the place of a closed socket back later, from a
 * work queue, so that one opened soon after may still find it taken. Sleeps a little; *tries_inout counts.
 */
bool pgr_xdp_try_again(unsigned int *tries_inout);
/* Turns errno into a code and a sentence. */
int pgr_xdp_fail(const struct pgr_config *config, const char *what);

#endif
