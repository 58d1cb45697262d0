/* SPDX-License-Identifier: BSD-3-Clause */
/* The AF_XDP socket of an endpoint, and the program in the kernel that brings it the packets to its number. */
#ifndef PGR_XDP_PROGRAM_H
#define PGR_XDP_PROGRAM_H

#include "../pgr.h"
#include "xdp_socket.h"

/* the smallest that the kernel takes */
#define PGR_XDP_FRAME_BYTES 2048u
/* at the head of each frame that the kernel fills: ours, so that the packet behind 42 bytes of headers begins at a
 * multiple of 8, and with the kernel's own */
#define PGR_XDP_LEAD_BYTES     6u
#define PGR_XDP_HEADROOM_BYTES (256u + PGR_XDP_LEAD_BYTES)
/* frames to receive into, and to send from */
#define PGR_XDP_IN  1024u
#define PGR_XDP_OUT 512u

/*
 * Opens the socket on config->device and attaches the program as config->xdp_attach says; NULL there: generic, or
 * native where that is not to be had. A pgr_code, with a sentence in config->error; whatever it is, everything is
 * released by pgr_xdp_socket_close.
 */
int pgr_xdp_open(struct pgr_xdp_socket *xdp, const struct pgr_config *config, uint32_t number);

#endif
