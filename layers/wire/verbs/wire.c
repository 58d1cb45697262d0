/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire on verbs, between hosts: a packet is a message (SEND) of a reliable connection into a receive that was posted. Where
 * none is posted the sender's device tries again until one is (RNR), which is the wire's whole flow control. What the device
 * takes inline is free at once; of others the completion tells.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/verbs/state.h"

enum {
	RECEIVES = 16, /* posted a link, beside those that the style keeps */
	NOTES = 32,    /* posted a link for notes, where there are no packets */
	SPARE = 32,    /* operations under way beside the style's */
	CLOSE_MS = 200,
};
#define PACKET_BYTES_MAX 8128u
#define OVERHEAD_BYTES   28u /* of RoCE v2: base transport header, checksum, UDP's header is the network's */
#define CLOSING          UINT64_MAX

const char cadge_wire_substrate[] = "verbs";
const uint32_t cadge_wire_packet_bytes_max = PACKET_BYTES_MAX;
const struct cadge_option cadge_wire_options[] = {
	CADGE_WIRE_OPTION_OFF,
	CADGE_WIRE_OPTION_PACKET_BYTES,
	{NULL, NULL, NULL},
};

#include "wire/link.h"

static struct cadge_link *link_of(struct verbs_queue *queue)
{
	return (struct cadge_link *)(void *)queue;
}

/* ---- sending ---- */

/* The registration of a packet, which its set was given when it was made. */
static struct ibv_mr **packet_registration(struct cadge_packet *packet)
{
	return (struct ibv_mr **)(void *)packet->library;
}

/* DONE: the bytes have left, or are the device's, and the packet then is `out`. */
static int start_send(struct cadge_link *link, struct cadge_packet *packet, size_t bytes)
{
	const bool travels_inside = bytes <= link->wire->verbs.inline_bytes;
	struct ibv_sge piece = {.addr = (uintptr_t)cadge_packet_data(packet),
				.length = (uint32_t)bytes,
				.lkey = (*packet_registration(packet))->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &piece, .num_sge = 1};
	const struct verbs_op op = {.kind = travels_inside ? VERBS_SILENT : VERBS_WORK,
				    .owner = travels_inside ? NULL : packet};
	const int code = verbs_issue(&link->queue, &wr, travels_inside ? IBV_SEND_INLINE : 0, &op);

	if (code == CADGE_DONE && !travels_inside)
		cadge_packet_leaves(packet);
	return code;
}

int cadge_wire_send(struct cadge_link *link, void *at, size_t bytes)
{
	struct cadge_packet *packet = cadge_packet_of(at);
	const int code = start_send(link, packet, bytes);

	if (code != CADGE_BUSY && !packet->out)
		cadge_packet_drop(packet);
	return code;
}

int cadge_wire_send_held(struct cadge_link *link, void *at, size_t bytes)
{
	struct cadge_packet *packet = cadge_packet_of(at);

	packet->held = true;
	return packet->out ? CADGE_BUSY : start_send(link, packet, bytes);
}

/* ---- receiving ---- */

static uint8_t *data_of(struct wire_landing *landing)
{
	return (uint8_t *)landing + CADGE_PACKET_HEAD_BYTES;
}

static struct wire_landing *landing_at(const struct cadge_wire *wire, uint32_t number)
{
	return (struct wire_landing *)(void *)(wire->own + wire->landings_at +
					       number * wire->sets.stride_bytes);
}

static bool post_landing(struct cadge_link *link, struct wire_landing *landing)
{
	const struct cadge_wire *wire = link->wire;

	landing->link = link;
	link->posted++;
	return !verbs_post_receive(&link->queue, landing->number, data_of(landing),
				   wire->facts.packet_bytes_max, wire->verbs.own.mr->lkey);
}

/* As many as there are; the others when the style has given some back. */
static bool post_landings(struct cadge_link *link)
{
	bool good = true;

	while (good && link->posted < link->wire->verbs.receives && link->wire->landings)
		good = post_landing(link, CADGE_POOL_TAKE(link->wire->landings));
	link->wire->lacking |= link->posted < link->wire->verbs.receives;
	return good;
}

static void take_back(struct wire_landing *landing)
{
	landing->link->posted--;
	landing->link = NULL;
}

/* The device has none of them any more. */
static void take_back_all(struct cadge_link *link)
{
	struct cadge_wire *wire = link->wire;

	for (uint32_t i = 0; link->posted && i < wire->landings_count; i++) {
		struct wire_landing *landing = landing_at(wire, i);

		if (landing->link != link)
			continue;
		take_back(landing);
		CADGE_POOL_GIVE(wire->landings, landing);
	}
}

static int post_receives(struct verbs_queue *queue)
{
	struct cadge_link *link = link_of(queue);

	take_back_all(link);
	return post_landings(link) ? 0 : EIO;
}

void cadge_wire_release(struct cadge_wire *wire, void *data)
{
	struct wire_landing *landing = (void *)((uint8_t *)data - CADGE_PACKET_HEAD_BYTES);

	CADGE_POOL_GIVE(wire->landings, landing);
}

static void link_up(struct cadge_link *link)
{
	struct cadge_wire *wire = link->wire;

	link->queue.reached = true;
	link->state.up = true;
	wire->handshakes--;
	wire->events++;
	wire->calls->up(wire->arg, link->queue.peer);
}

static void greeted(struct verbs_queue *queue, uint32_t slot)
{
	struct cadge_link *link = link_of(queue);
	struct wire_landing *landing = landing_at(link->wire, slot);

	take_back(landing);
	if (!post_landing(link, landing))
		verbs_broke(queue, "ibv_post_recv", "refused");
}

static bool received(struct verbs_queue *queue, uint32_t slot, uint32_t bytes)
{
	struct cadge_link *link = link_of(queue);
	struct cadge_wire *wire = link->wire;
	struct wire_landing *landing = landing_at(wire, slot);

	take_back(landing);
	if (UNLIKELY(wire->closing || !link->connected || link->state.broken)) {
		CADGE_POOL_GIVE(wire->landings, landing);
		return true;
	}
	if (UNLIKELY(!link->state.up)) /* who sends has had our hello, whatever our device has told yet */
		link_up(link);
	wire->events++;
	link->notes.taken++;
	if (wire->calls->packet(wire->arg, queue->peer, data_of(landing), bytes) != CADGE_KEEP)
		return post_landing(link, landing);
	return post_landings(link);
}

static int ended(struct verbs_queue *queue, const struct verbs_op *op, int code)
{
	struct cadge_link *link = link_of(queue);
	struct cadge_wire *wire = link->wire;

	if (op->owner) {
		cadge_packet_back(op->owner);
	} else if (!wire->closing) {
		wire->events++;
		CADGE_WIRE_ENDED(wire)(wire->arg, queue->peer, op->token, code);
	}
	return 0;
}

static void broke(struct verbs_queue *queue)
{
	struct cadge_link *link = link_of(queue);

	link->state.broken = true;
	link->wire->events_pending = true;
}

static const struct verbs_calls verbs_calls = {ended, received, post_receives, greeted, broke};

/* ---- progress ---- */

static __attribute__((noinline)) void deliver_events(struct cadge_wire *wire)
{
	wire->events_pending = wire->lacking = false;
	for (uint32_t i = 0; i < wire->verbs.peers; i++) {
		struct cadge_link *link = &wire->links[i];

		if (!link->connected || link->state.reported)
			continue;
		if (link->state.broken) {
			wire->handshakes -= !link->state.up;
			link->state.reported = true;
			link->state.up = false;
			wire->events++;
			wire->calls->down(wire->arg, i, CADGE_E_DOWN);
		} else if (!link->state.up && verbs_is_greeted(&link->queue)) {
			link_up(link);
		} else if (!post_landings(link)) {
			verbs_broke(&link->queue, "ibv_post_recv", "refused");
		}
	}
}

int cadge_wire_progress(struct cadge_wire *wire, unsigned int rounds)
{
	wire->events = 0;
	for (; rounds && !wire->events; rounds--) {
		const int code = verbs_completions(&wire->verbs);

		if (UNLIKELY(code < 0))
			return code;
		if (UNLIKELY(wire->events_pending || wire->handshakes || (wire->lacking && wire->landings)))
			deliver_events(wire);
		if (UNLIKELY(wire->notes))
			cadge_wire_notes_credit(wire);
	}
	return wire->events;
}

static bool asleep(struct cadge_wire *wire)
{
	return !wire->events_pending && !(wire->lacking && wire->landings) && !cadge_wire_owes_credit(wire) &&
	       verbs_armed(&wire->verbs);
}

int cadge_wire_wait(struct cadge_wire *wire, uint64_t timeout_ns)
{
	struct pollfd entry = {.events = POLLIN};

	if (!wire->verbs.events)
		return CADGE_E_UNSUPPORTED;
	if (!asleep(wire))
		return CADGE_DONE;
	entry.fd = wire->verbs.events->fd;
	return cadge_sleep(&entry, 1, timeout_ns);
}

int cadge_wire_event(struct cadge_wire *wire, int *fd_out, uint64_t *due_ns_out)
{
	if (!wire->verbs.events)
		return CADGE_E_UNSUPPORTED;
	if (!asleep(wire))
		return CADGE_BUSY;
	*fd_out = wire->verbs.events->fd;
	*due_ns_out = UINT64_MAX;
	return CADGE_DONE;
}

/* ---- connecting ---- */

int cadge_wire_address(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_out *blob)
{
	int code;

	if (peer >= wire->verbs.peers)
		return CADGE_E_ARGUMENT;
	code = verbs_queue_make(&wire->links[peer].queue);
	if (code != CADGE_DONE)
		return code;
	verbs_queue_address(&wire->links[peer].queue, blob);
	if (!wire->sets.count)
		cadge_wire_notes_address(&wire->links[peer], blob);
	return blob->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

/* A set that is used for the first time is registered, and each of its packets told so. */
static bool register_packets(struct cadge_wire *wire, struct cadge_packet_set *set)
{
	const size_t stride_bytes = wire->sets.stride_bytes;
	struct ibv_mr *mr;

	if (!wire->sets.count)
		return true;
	mr = *packet_registration((struct cadge_packet *)(void *)set->pool);

	if (mr)
		return true;
	mr = cadge_wire_register(wire, set->pool, wire->sets.count * stride_bytes);
	for (uint32_t i = 0; mr && i < wire->sets.count; i++)
		*packet_registration((struct cadge_packet *)(void *)(set->pool + i * stride_bytes)) = mr;
	return mr != NULL;
}

/* Packets that the device never told of are free with their queue pair. */
static void packets_back(const struct cadge_link *link)
{
	const struct verbs_queue *queue = &link->queue;

	for (uint64_t i = queue->finished; i < queue->posted; i++) {
		const struct verbs_op *op = &queue->ops[i % queue->verbs->send_room];

		if (op->kind == VERBS_WORK && op->owner)
			cadge_packet_back(op->owner);
	}
}

/* Ends what connect has begun. */
static void link_end(struct cadge_link *link)
{
	struct cadge_packet_set *packets = link->packets;

	packets_back(link);
	verbs_queue_free(&link->queue);
	take_back_all(link);
	if (packets)
		cadge_packet_set_end(packets);
	cadge_wire_detach_all(link);
	if (link->connected)
		link->wire->handshakes -= !link->state.up && !link->state.reported;
	link->packets = NULL;
	link->connected = false;
	link->state = (struct cadge_state){.up = false};
	if (!link->wire->sets.count && link->queue.word)
		memset(link->queue.word + verbs_own_bytes(&link->wire->verbs), 0, WIRE_NOTES_BYTES);
}

int cadge_wire_connect(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_in *blob,
		       struct cadge_link **link_out)
{
	struct cadge_link *link;
	int code;

	if (peer >= wire->verbs.peers || wire->links[peer].connected ||
	    !verbs_queue_take(&wire->links[peer].queue, blob))
		return CADGE_E_ARGUMENT;
	link = &wire->links[peer];
	if (!wire->sets.count)
		cadge_wire_notes_take(link, blob);
	if (!blob->ok)
		return CADGE_E_ARGUMENT;
	link->packets = cadge_packet_set_begin(&wire->sets, link);
	if (!link->packets || !register_packets(wire, link->packets)) {
		if (link->packets)
			cadge_packet_set_end(link->packets);
		return CADGE_E_MEMORY;
	}
	code = verbs_queue_make(&link->queue);
	if (code == CADGE_DONE)
		code = verbs_queue_connect(&link->queue);
	if (code != CADGE_DONE) {
		link_end(link);
		return code;
	}
	link->connected = true;
	wire->handshakes++;
	*link_out = link;
	return CADGE_DONE;
}

int cadge_wire_disconnect(struct cadge_link *link)
{
	if (!link->connected)
		return CADGE_E_ARGUMENT;
	link_end(link);
	return CADGE_DONE;
}

int cadge_wire_describe(struct cadge_link *link, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};
	const int code = link->connected ? verbs_queue_describe(&link->queue, &path) : CADGE_E_DOWN;

	if (code == CADGE_DONE)
		cadge_fill(path_out, &path, sizeof(path));
	return code;
}

void cadge_wire_counters(const struct cadge_wire *wire,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "queue_busies", wire->verbs.busies);
	each(arg, "registered_once", wire->verbs.registered_once);
}

const char *cadge_wire_why(const struct cadge_wire *wire)
{
	return wire->verbs.why;
}

/* ---- life ---- */

/*
 * What was sent just before close is still with the device, and would go with the queue pair. Behind it a read is asked for:
 * when that has come back, or the peer is gone, all has left.
 */
static void finish(struct cadge_wire *wire)
{
	bool waits = true;

	wire->closing = true;
	for (uint32_t i = 0; i < wire->verbs.peers; i++) {
		struct verbs_queue *queue = &wire->links[i].queue;
		struct verbs_op op = {.token = CLOSING};

		queue->written += wire->links[i].state.up && queue->posted > queue->finished;
		if (wire->links[i].state.up && verbs_flush(queue, &op) < 0)
			wire->links[i].state.up = false;
	}
	for (int rounds = 0; waits && rounds < CLOSE_MS; rounds++) {
		if (verbs_completions(&wire->verbs) < 0)
			return;
		waits = false;
		for (uint32_t i = 0; i < wire->verbs.peers; i++)
			waits |= wire->links[i].state.up && !wire->links[i].state.broken &&
				 wire->links[i].queue.posted > wire->links[i].queue.finished;
		if (waits && poll(NULL, 0, 1) < 0)
			return;
	}
}

void cadge_wire_close(struct cadge_wire *wire)
{
	if (!wire)
		return;
	if (wire->verbs.cq)
		finish(wire);
	for (uint32_t i = 0; i < wire->verbs.peers; i++)
		link_end(&wire->links[i]);
	cadge_wire_forget_memory(wire);
	cadge_packet_sets_destroy(&wire->sets);
	if (wire->own)
		munmap(wire->own, wire->own_bytes);
	verbs_close(&wire->verbs);
	free(wire);
}

/* Words and landing places, which peers read, and landings, in one piece. */
static int make(struct cadge_wire *wire, const struct cadge_open_args *args, uint32_t held)
{
	const size_t each_bytes = verbs_own_bytes(&wire->verbs) + (wire->sets.count ? 0 : WIRE_NOTES_BYTES);
	int code;

	wire->landings_count = wire->verbs.peers * (held + wire->verbs.receives);
	wire->landings_at = (wire->verbs.peers * each_bytes + 4095) / 4096 * 4096;
	wire->own_bytes = wire->landings_at + wire->landings_count * wire->sets.stride_bytes;
	wire->own = mmap(NULL, wire->own_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (wire->own == MAP_FAILED) {
		wire->own = NULL;
		return cadge_refuse(args, CADGE_E_MEMORY, "no memory for packets of %u peers",
				    wire->verbs.peers);
	}
	for (uint32_t i = wire->landings_count; i-- > 0;) {
		landing_at(wire, i)->number = i;
		CADGE_POOL_GIVE(wire->landings, landing_at(wire, i));
	}
	code = verbs_register(
		&wire->verbs, &wire->verbs.own, wire->own, wire->own_bytes,
		verbs_access(&wire->verbs, CADGE_MAY_READ | (wire->notes ? CADGE_MAY_WRITE : 0)));
	for (uint32_t i = 0; code == CADGE_DONE && i < wire->verbs.peers; i++) {
		wire->links[i].queue.word = wire->own + i * each_bytes;
		/* Here, so that a device with too few queue pairs says so in open. */
		code = verbs_queue_make(&wire->links[i].queue);
	}
	return code == CADGE_DONE ? code
				  : cadge_refuse(args, code, "for packets of %u peers: %s", wire->verbs.peers,
						 wire->verbs.why);
}

static int open_device(struct cadge_wire *wire, const struct cadge_open_args *args,
		       const struct cadge_wire_needs *needs)
{
	const uint32_t operations = needs->features & CADGE_WIRE_REMOTE ? needs->operations : 0;
	const uint32_t besides = needs->packets + SPARE;
	int code;

	if (!needs->packets && needs->features & CADGE_WIRE_NOTES)
		wire->notes = NOTES;
	/* One more is for the hello. */
	code = verbs_open(&wire->verbs, args, needs->packets ? RECEIVES : wire->notes + 1, besides,
			  besides + 2 * operations);
	if (code != CADGE_DONE)
		return code;
	wire->facts = (struct cadge_wire_facts){
		.packet_bytes_max = (uint32_t)cadge_least(needs->packet_bytes, PACKET_BYTES_MAX),
		.put_bytes_max = needs->features & CADGE_WIRE_REMOTE ? wire->verbs.bytes_max : 0,
		.sleeps = args->wait_mode == CADGE_WAIT_BLOCK,
		.any_memory = true,
		.registers = true,
		.adds = needs->features & CADGE_WIRE_ATOMICS && verbs_has_atomics(&wire->verbs),
		.swaps = needs->features & CADGE_WIRE_ATOMICS && verbs_has_atomics(&wire->verbs),
		.operations = (uint32_t)cadge_least(operations, (wire->verbs.send_room - besides) / 2),
		/*
		 * No device_guards, though each region is one of the device's, with its rights and bounds: a short put is done
		 * at once, and of its refusal the end of the connection tells, no `ended`.
		 */
		.wire_overhead_bytes = OVERHEAD_BYTES,
	};
	wire->sets = make_sets(wire, needs);
	return make(wire, args, needs->features & CADGE_WIRE_KEEP ? needs->held : 0);
}

int cadge_wire_open(const struct cadge_open_args *args, const struct cadge_wire_needs *needs,
		    struct cadge_wire **wire_out)
{
	struct cadge_wire *wire;
	int code = check(args, needs, CADGE_CAP_NET | CADGE_CAP_WAIT, VERBS_PEERS_MAX);

	if (code != CADGE_DONE)
		return code;
	wire = make_wire(args, needs);
	if (!wire)
		return CADGE_E_MEMORY;
	wire->verbs.calls = &verbs_calls;
	wire->verbs.queues = (uint8_t *)wire->links;
	wire->verbs.queue_bytes = sizeof(wire->links[0]);
	code = open_device(wire, args, needs);
	if (code != CADGE_DONE) {
		cadge_wire_close(wire);
		return code;
	}
	*wire_out = wire;
	return CADGE_DONE;
}
