/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets that a link of the wire sends: a set for each life, since what was sent to a peer that died on shared
 * memory stays with the library until the context is closed. A set is used again when nothing of it is with the
 * library any more.
 */
#ifndef CADGE_WIRE_PACKETS_H
#define CADGE_WIRE_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kit/adapter.h"

#define CADGE_PACKET_HEAD_BYTES 128u

/* Lies CADGE_PACKET_HEAD_BYTES before the bytes of a packet. */
struct cadge_packet {
	unsigned char library[64]; /* what the library asks for: a context of libfabric; first */
	struct cadge_packet *next; /* among those that are free */
	struct cadge_packet_set *set;
	bool out;  /* with the library */
	bool held; /* its sender keeps it until it drops it: to send it again */
};
_Static_assert(sizeof(struct cadge_packet) <= CADGE_PACKET_HEAD_BYTES, "room before a packet");

/* The packets of one life of a link. */
struct cadge_packet_set {
	struct cadge_packet *idle;
	struct cadge_packet_set *next; /* among all of the wire */
	void *user;                    /* the link while the life lasts, then NULL */
	uint8_t *pool;
	uint32_t out; /* with the library */
};

/* All sets of a wire. */
struct cadge_packet_sets {
	struct cadge_packet_set *first;
	uint32_t count; /* packets of a set */
	size_t stride_bytes;
};

/* Address space for `count` packets of up to packet_bytes bytes each; touched when it is used. */
uint8_t *cadge_packet_pool(size_t count, size_t stride_bytes);
/* From one packet to the next: an odd number of lines, so that first lines do not fight for one cache set. */
size_t cadge_packet_stride(size_t packet_bytes);

/* A set whose packets are all free, for a life that begins. NULL: out of memory. */
struct cadge_packet_set *cadge_packet_set_begin(struct cadge_packet_sets *sets, void *user);
/* The life ended: packets that were taken are free again. */
void cadge_packet_set_end(struct cadge_packet_set *set);
/* The packet at this address, of any set; NULL: there is none. Slow. */
struct cadge_packet *cadge_packet_find(const struct cadge_packet_sets *sets, void *at);
/* Whether the library still has packets, of any life. */
bool cadge_packets_out(const struct cadge_packet_sets *sets);
/* After the library has ended. */
void cadge_packet_sets_destroy(struct cadge_packet_sets *sets);

static inline void *cadge_packet_data(struct cadge_packet *packet)
{
	return (uint8_t *)packet + CADGE_PACKET_HEAD_BYTES;
}

static inline struct cadge_packet *cadge_packet_of(void *data)
{
	return (struct cadge_packet *)(void *)((uint8_t *)data - CADGE_PACKET_HEAD_BYTES);
}

/* The library has taken it, until cadge_packet_back. */
static inline void cadge_packet_leaves(struct cadge_packet *packet)
{
	packet->set->out++;
	packet->out = true;
}

/* Its sender wants it no more: it is free, at once or when the library gives it back. */
static inline void cadge_packet_drop(struct cadge_packet *packet)
{
	packet->held = false;
	if (!packet->out)
		CADGE_POOL_GIVE(packet->set->idle, packet);
}

/* Gives it back from the library; returns the `user` of its set: NULL if that life has ended. */
static inline void *cadge_packet_back(struct cadge_packet *packet)
{
	packet->set->out--;
	packet->out = false;
	if (packet->set->user && !packet->held)
		CADGE_POOL_GIVE(packet->set->idle, packet);
	return packet->set->user;
}

#endif
