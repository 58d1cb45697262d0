/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An AF_XDP socket for the floor: that of Peregrine's engine, linked from there as any library's would be, with a
 * program that takes frames of one ethertype. It is released by pgr_xdp_socket_close.
 */
#ifndef CADGE_FLOOR_XDP_SOCKET_H
#define CADGE_FLOOR_XDP_SOCKET_H

#include "base/fail.h"
#include "peregrine/engine/wires/xdp_socket.h"

/* the least: the frames of a large message keep to the cache */
#define XDP_FRAME_BYTES 2048u
/* frames to send from, which is the entries of their rings; and the fewest to receive into */
#define XDP_FRAMES_OUT    32u
#define XDP_FRAMES_IN_MIN 32u
/* IEEE 802: for local experiments */
#define XDP_ETHERTYPE 0x88b5u
/* the kernel's, taken off a frame; more than enough on every driver */
#define XDP_HEADROOM_BYTES 512u

/* Everything but the attachment; `frames_in`: frames to receive into, a power of two. 0, or -1 with a reason. */
int xdp_socket_open(struct pgr_xdp_socket *xdp, const char *device, uint32_t frames_in,
		    struct drv_fail *fail);
/* Attaches the program, in the driver (native) or generic; an earlier attachment of ours ends first. */
int xdp_socket_attach(struct pgr_xdp_socket *xdp, bool native, struct drv_fail *fail);

#endif
