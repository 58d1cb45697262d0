/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

#define ENDPOINTS_MAX 64u
#define LATENCY_NS    UINT64_C(10000)
#define MILLION       1000000u

struct flying {
	uint64_t due_ns, number; /* number: of equal times the earlier sent comes first */
	struct pgr_to from;
	size_t bytes;
	uint8_t packet[];
};

/* Packets to one endpoint: a heap, the next to arrive on top. */
struct queue {
	struct flying **at;
	size_t count, room;
};

struct net_wire {
	struct pgr_wire wire;
	pgr_input *input;
	void *engine;
	uint32_t number;
	bool cut;
};

static struct {
	uint64_t now_ns, random, packets;
	uint32_t packet_bytes, endpoints_count;
	struct net_faults faults;
	struct net_wire *endpoints[ENDPOINTS_MAX];
	struct queue queues[ENDPOINTS_MAX];
	uint64_t sent;
	net_watch_fn *look;
	void *look_arg;
} net = {.now_ns = 1000000000, .random = 1, .packet_bytes = 512};

uint32_t net_random(uint32_t below)
{
	net.random ^= net.random << 13; /* xorshift64, Marsaglia 2003 */
	net.random ^= net.random >> 7;
	net.random ^= net.random << 17;
	return below ? (uint32_t)((net.random >> 11) % below) : 0;
}

static bool happens(uint32_t in_a_million)
{
	return in_a_million && net_random(MILLION) < in_a_million;
}

void net_reset(uint64_t seed, uint32_t packet_bytes)
{
	for (unsigned int i = 0; i < ENDPOINTS_MAX; i++) {
		while (net.queues[i].count)
			free(net.queues[i].at[--net.queues[i].count]);
		free(net.queues[i].at);
		net.queues[i] = (struct queue){0};
	}
	memset(net.endpoints, 0, sizeof(net.endpoints));
	net.endpoints_count = 0;
	net.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	net.packet_bytes = packet_bytes;
	net.faults = (struct net_faults){0};
	net.look = NULL;
	net.packets = 0;
}

void net_set_faults(const struct net_faults *faults)
{
	net.faults = *faults;
}

void net_watch(net_watch_fn *look, void *arg)
{
	net.look = look;
	net.look_arg = arg;
}

uint64_t net_now_ns(void)
{
	return net.now_ns;
}

uint64_t net_packets(void)
{
	return net.packets;
}

void net_pass_time(uint64_t ns)
{
	net.now_ns += ns;
}

void net_cut(const struct pgr *pgr, bool cut)
{
	((struct net_wire *)pgr->wire)->cut = cut;
}

static bool sooner(const struct flying *a, const struct flying *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void fly(uint32_t to, const struct pgr_to *from, const void *packet, size_t bytes, uint64_t due_ns)
{
	struct queue *queue = &net.queues[to];
	struct flying *flying = malloc(sizeof(*flying) + bytes);
	size_t at;

	if (flying && queue->count == queue->room) {
		queue->room = queue->room ? 2 * queue->room : 64;
		queue->at = realloc(queue->at, queue->room * sizeof(struct flying *));
	}
	if (!flying || !queue->at)
		abort();
	flying->number = net.sent++;
	flying->from = *from;
	flying->bytes = bytes;
	flying->due_ns = due_ns;
	memcpy(flying->packet, packet, bytes);
	for (at = queue->count++; at && sooner(flying, queue->at[(at - 1) / 2]); at = (at - 1) / 2)
		queue->at[at] = queue->at[(at - 1) / 2];
	queue->at[at] = flying;
}

/* The next packet for an endpoint that is here by now; NULL. */
static struct flying *landed(struct queue *queue)
{
	struct flying *first, *last;
	size_t at = 0, child;

	if (!queue->count || queue->at[0]->due_ns > net.now_ns)
		return NULL;
	first = queue->at[0];
	last = queue->at[--queue->count];
	while ((child = 2 * at + 1) < queue->count) {
		if (child + 1 < queue->count && sooner(queue->at[child + 1], queue->at[child]))
			child++;
		if (!sooner(queue->at[child], last))
			break;
		queue->at[at] = queue->at[child];
		at = child;
	}
	if (queue->count)
		queue->at[at] = last;
	return first;
}

static int net_wire_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
			 unsigned int count, bool more)
{
	struct net_wire *own = (struct net_wire *)wire;
	uint8_t packet[65536];
	size_t bytes = 0;
	uint64_t due_ns = net.now_ns + LATENCY_NS;
	uint32_t number;

	(void)more;
	memcpy(&number, to->bytes, sizeof(number));
	for (unsigned int i = 0; i < count; i++) {
		if (bytes + pieces[i].bytes > net.packet_bytes) {
			fprintf(stderr, "net: a packet longer than %u bytes\n", net.packet_bytes);
			abort();
		}
		if (pieces[i].bytes)
			memcpy(packet + bytes, pieces[i].base, pieces[i].bytes);
		bytes += pieces[i].bytes;
	}
	net.packets++;
	if (net.look && !net.look(net.look_arg, packet, bytes))
		return 0;
	if (number >= ENDPOINTS_MAX || own->cut || happens(net.faults.drop))
		return 0;
	if (happens(net.faults.corrupt))
		packet[net_random((uint32_t)bytes)] ^= (uint8_t)(1 + net_random(255));
	if (happens(net.faults.reorder))
		due_ns += net_random(5) * LATENCY_NS;
	if (happens(net.faults.delay))
		due_ns += UINT64_C(1000000) * net_random(50);
	fly(number, &wire->own, packet, bytes, due_ns);
	if (happens(net.faults.duplicate))
		fly(number, &wire->own, packet, bytes, due_ns + net_random(MILLION) * UINT64_C(100));
	return 0;
}

void net_inject(const struct pgr *to, const struct pgr_to *from, const void *packet, size_t bytes)
{
	fly(((const struct net_wire *)to->wire)->number, from, packet, bytes, net.now_ns);
}

static void net_wire_flush(struct pgr_wire *wire)
{
	(void)wire;
}

static int net_wire_receive(struct pgr_wire *wire)
{
	const struct net_wire *own = (const struct net_wire *)wire;
	int received = 0;

	while (received < 16) {
		struct flying *flying = landed(&net.queues[own->number]);
		uint8_t *exact;

		if (!flying)
			break;
		exact = malloc(flying->bytes ? flying->bytes
					     : 1); /* so that a sanitizer sees a byte read too far */
		memcpy(exact, flying->packet, flying->bytes);
		if (!own->cut)
			own->input(own->engine, &flying->from, exact, flying->bytes);
		free(exact);
		free(flying);
		received++;
	}
	return received;
}

static void net_wire_wait(struct pgr_wire *wire, uint64_t timeout_ns)
{
	(void)wire, (void)timeout_ns;
}

static void net_wire_close(struct pgr_wire *wire)
{
	struct net_wire *own = (struct net_wire *)wire;

	net.endpoints[own->number] = NULL;
	free(own);
}

static void net_wire_describe(const struct pgr_wire *wire, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "net, endpoint %u", ((const struct net_wire *)wire)->number);
}

static int net_wire_open(const struct pgr_config *config, pgr_input *input, void *engine,
			 struct pgr_wire **wire_out)
{
	struct net_wire *own = calloc(1, sizeof(*own));
	uint32_t number = config->port_first; /* a restarted endpoint takes the place of the old one */

	if (!own)
		return PGR_E_MEMORY;
	if (!number)
		number = ++net.endpoints_count;
	own->wire.ops = &pgr_wire_net;
	own->wire.packet_bytes_max = net.packet_bytes;
	own->wire.window_packets = 64;
	own->input = input;
	own->engine = engine;
	own->number = number;
	memcpy(own->wire.own.bytes, &number, sizeof(number));
	net.endpoints[number] = own;
	*wire_out = &own->wire;
	return PGR_OK;
}

void net_step(struct pgr *const *endpoints, unsigned int count)
{
	uint64_t due_ns = UINT64_MAX;
	bool moved = false;

	for (unsigned int i = 0; i < count; i++) {
		const uint64_t before = endpoints[i]->stats.packets_received;

		moved |= pgr_poll(endpoints[i]) > 0 || endpoints[i]->stats.packets_received != before;
	}
	if (moved)
		return;
	for (unsigned int i = 0; i < ENDPOINTS_MAX; i++)
		if (net.queues[i].count && net.queues[i].at[0]->due_ns < due_ns)
			due_ns = net.queues[i].at[0]->due_ns;
	for (unsigned int i = 0; i < count; i++) {
		uint64_t own_ns = pgr_next_due(endpoints[i]);

		if (own_ns < endpoints[i]->next_tick_ns)
			own_ns = endpoints[i]->next_tick_ns;
		if (own_ns < due_ns)
			due_ns = own_ns;
	}
	net.now_ns = due_ns > net.now_ns ? due_ns : net.now_ns + 1000;
}

const struct pgr_wire_ops pgr_wire_net = {
	.name = "net",
	.open = net_wire_open,
	.close = net_wire_close,
	.send = net_wire_send,
	.flush = net_wire_flush,
	.receive = net_wire_receive,
	.wait = net_wire_wait,
	.describe = net_wire_describe,
	.now_ns = net_now_ns,
};
