/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nginx's `hash ... consistent` (ketama): which server of an upstream a key belongs to. Computed here as nginx does it
 * (ngx_http_upstream_hash_module.c), so that a node has the files for which the others ask it, and no others: a mistake
 * shows as an answer 404.
 */
#ifndef PRESS_RING_H
#define PRESS_RING_H

#include <stddef.h>
#include <stdint.h>

/* of each server, of weight 1 */
#define PRESS_RING_POINTS 160u

struct press_ring {
	uint32_t count;
	struct press_ring_point {
		uint32_t hash, server;
	} *points;
};

/* Of servers by the names that they have in the upstream, "HOST:PORT". 0, or -1 when memory is short. */
int press_ring_make(struct press_ring *ring, const char *const *names, uint32_t count);
void press_ring_free(struct press_ring *ring);

/* The number of the server that has the key. */
uint32_t press_ring_find(const struct press_ring *ring, const char *key, size_t bytes);

#endif
