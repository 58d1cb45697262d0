/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that no reader may accept, to an endpoint that serves or calls. */
#ifndef PGR_TESTS_HOSTILE_H
#define PGR_TESTS_HOSTILE_H

#include "hand.h"

/* The packet, cut at every length, and longer than it says. */
void cut(const uint8_t *packet, size_t bytes);
/* Packets with header bytes that no reader may accept; `right` is a header that is right, of a long message. */
void refused(const struct pgr_header *right);

#endif
