/* SPDX-License-Identifier: BSD-3-Clause */
/* Where HTTP goes, and a TCP connection to such a literal address, IPv4 or IPv6. */
#ifndef PRESS_DIAL_H
#define PRESS_DIAL_H

#include <stdint.h>

#include "launch/launch.h"

/* A node's address for other nodes: of the data network, or the loopback. */
const char *press_node_address(const struct drv_endpoint *node);
/* The same for clients: of the management network where the data network's rate is limited for the layer. */
const char *press_client_address(const struct drv_endpoint *node);

/* Waits until it is there. A descriptor, the caller's, or -1 with errno: EINVAL where the address is none. */
int press_dial(const char *address, uint16_t port);

#endif
