/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP connection to a literal address, IPv4 or IPv6. */
#ifndef PRESS_DIAL_H
#define PRESS_DIAL_H

#include <stdint.h>

/* Waits until it is there. A descriptor, the caller's, or -1 with errno: EINVAL where the address is none. */
int press_dial(const char *address, uint16_t port);

#endif
