/* SPDX-License-Identifier: BSD-3-Clause */
/* What every wire does in the same way over its own struct cadge_wire and struct cadge_link. A wire's wire.c includes this. */
#include <stdlib.h>

void *cadge_wire_take(struct cadge_link *link)
{
	struct cadge_packet *packet;

	if (UNLIKELY(!link->state.up))
		return NULL;
	packet = CADGE_POOL_TAKE(link->packets->idle);
	return packet ? cadge_packet_data(packet) : NULL;
}

void cadge_wire_drop(struct cadge_link *link, void *at)
{
	(void)link;
	cadge_packet_drop(cadge_packet_of(at));
}

const struct cadge_wire_facts *cadge_wire_facts(const struct cadge_wire *wire)
{
	return &wire->facts;
}

/* As cadge_open_check, with the settings of the style, or else the wire's. */
static int check(const struct cadge_open_args *args, const struct cadge_wire_needs *needs, uint64_t caps,
		 uint32_t peers_max)
{
	return cadge_open_check(args, caps, needs->options ? needs->options : cadge_wire_options, peers_max);
}

/* A wire with what it needs, and else zero; NULL: refused. */
static struct cadge_wire *make_wire(const struct cadge_open_args *args, const struct cadge_wire_needs *needs)
{
	struct cadge_wire *wire = calloc(1, sizeof(*wire) + args->peers_max * sizeof(wire->links[0]));

	if (!wire) {
		cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
		return NULL;
	}
	wire->calls = needs->calls;
	wire->arg = needs->arg;
	wire->features = needs->features;
	wire->trusting = needs->trusting;
	for (uint32_t i = 0; i < args->peers_max; i++)
		wire->links[i].wire = wire;
	return wire;
}

/* Packets of the length that was granted, as many as were asked for. */
static struct cadge_packet_sets make_sets(const struct cadge_wire *wire, const struct cadge_wire_needs *needs)
{
	return (struct cadge_packet_sets){
		.count = needs->packets,
		.stride_bytes = cadge_packet_stride(wire->facts.packet_bytes_max),
	};
}
