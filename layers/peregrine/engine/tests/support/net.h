/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network that exists only in this process and only in its own time: whatever a seed makes it do, it does
 * again. Endpoints opened on pgr_wire_net are joined by it.
 */
#ifndef PGR_TESTS_NET_H
#define PGR_TESTS_NET_H

#include "../../core/clients.h"
#include "../../core/peer.h"
#include "../../core/slot.h"
#include "../../core/work.h"

struct net_faults { /* each in parts of a million */
	uint32_t drop, duplicate, reorder, delay, corrupt;
};

/* Forgets all packets and endpoints; time goes on from where it was. packet_bytes: of the largest packet. */
void net_reset(uint64_t seed, uint32_t packet_bytes);
void net_set_faults(const struct net_faults *faults);
/* No packet passes between an endpoint and the rest. */
void net_cut(const struct pgr *pgr, bool cut);
void net_pass_time(uint64_t ns);
uint64_t net_now_ns(void);
uint32_t net_random(uint32_t below);
/* Polls the endpoints in turn until nothing more happens at this moment, then moves time to the next packet
 * or timer. */
void net_step(struct pgr *const *endpoints, unsigned int count);
/* Calls `see` for each packet that is sent; it may change it. Returns false: it is lost. NULL: none. */
typedef bool net_watch_fn(void *arg, uint8_t *packet, size_t bytes);
void net_watch(net_watch_fn *look, void *arg);
/* Gives a packet to an endpoint as if it came from `from`. */
void net_inject(const struct pgr *to, const struct pgr_to *from, const void *packet, size_t bytes);
uint64_t net_packets(void);

extern const struct pgr_wire_ops pgr_wire_net;

#endif
