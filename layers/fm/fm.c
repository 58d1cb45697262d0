/* SPDX-License-Identifier: BSD-3-Clause */
#include "fm/fm.h"

#include <stdlib.h>

#include "kit/adapter.h"
#include "kit/fiber.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define ROUNDS              8u /* rounds of an extraction that finds nothing */
#define WINDOW_MIN          4u
#define WINDOW_MAX          32767u /* so that what is owed fits into the head */

/*
 * Of a packet, whose head is two words of 16 bits, little-endian: kind below the number of the handler, and credits that are
 * given back.
 */
enum { FIRST = 1, LAST = 2, CREDIT = 4, HANDLER_SHIFT = 3 };
_Static_assert((FM_HANDLERS_MAX - 1) << HANDLER_SHIFT <= UINT16_MAX, "a handler's number fits into the head");

struct fm_stream {
	struct fm *fm;
	uint32_t peer, handler;
	bool open; /* out: begun and not ended; in: its handler has not returned */
	/* out */
	bool first;
	uint8_t *packet; /* being filled; its credit is spent */
	uint32_t used_bytes;
	/* in */
	bool last;
	const uint8_t *at; /* in the packet at hand */
	size_t left_bytes;
	struct cadge_fiber *fiber;
};

struct peer {
	struct cadge_link *link; /* NULL: not connected */
	struct fm_stream out, in;
	uint32_t credits; /* packets that the peer still holds room for */
	uint32_t owed;    /* packets of it that were handled and not reported yet */
	bool down;
};

/* A packet that came while nobody wanted to extract it. */
struct held {
	uint32_t peer;
	uint8_t *data;
	size_t bytes;
};

struct fm {
	struct cadge_wire *wire;
	struct fm_events events;
	uint32_t peers, window, packet_bytes;
	bool uncredited;  /* see fm_config */
	bool credits_due; /* somebody is owed half a window */
	bool stuck;       /* the wire had no room */
	int handled;
	int64_t budget_bytes;
	struct held *held; /* a ring, in the order of their coming */
	size_t held_first, held_count, held_room;
	fm_handler *handlers[FM_HANDLERS_MAX];
	uint64_t begins_without_credit, suspensions, credit_packets, packets_held, packets_refused;
	struct peer peer[];
};

/* ---- sending ---- */

static void write_head(const struct peer *peer, uint8_t *packet, uint32_t kind, uint32_t handler)
{
	cadge_store32(packet, peer->owed << 16 | handler << HANDLER_SHIFT | kind);
}

/* Sends a packet with what the peer is owed; BUSY: it is still ours. */
static int send_head(struct fm *fm, struct peer *peer, uint8_t *packet, size_t bytes, uint32_t kind,
		     uint32_t handler)
{
	int code;

	write_head(peer, packet, kind, handler);
	code = cadge_wire_send(peer->link, packet, bytes);
	if (UNLIKELY(code == CADGE_BUSY))
		fm->stuck = true;
	else
		peer->owed = 0;
	return code;
}

/* A packet, and the credit for it. */
static bool next_packet(struct fm *fm, struct peer *peer)
{
	struct fm_stream *out = &peer->out;

	if (UNLIKELY(!peer->credits) && !fm->uncredited) {
		fm->begins_without_credit += out->first;
		return false;
	}
	out->packet = cadge_wire_take(peer->link);
	if (UNLIKELY(!out->packet)) {
		fm->stuck = true;
		return false;
	}
	peer->credits -= !fm->uncredited;
	out->used_bytes = FM_HEAD_BYTES;
	return true;
}

int fm_why_not(const struct fm *fm, uint32_t number, uint32_t handler)
{
	if (number >= fm->peers || handler >= FM_HANDLERS_MAX)
		return CADGE_E_ARGUMENT;
	return fm->peer[number].down ? CADGE_E_DOWN : CADGE_BUSY;
}

struct fm_stream *fm_begin_message(struct fm *fm, uint32_t number, uint32_t handler)
{
	struct peer *peer = &fm->peer[number];
	struct fm_stream *out = &peer->out;

	if (UNLIKELY(number >= fm->peers || handler >= FM_HANDLERS_MAX || out->open || !peer->link ||
		     peer->down))
		return NULL;
	out->first = true;
	if (UNLIKELY(!next_packet(fm, peer)))
		return NULL;
	out->open = true;
	out->handler = handler;
	return out;
}

static int send_packet(struct fm_stream *out, uint32_t kind)
{
	struct peer *peer = &out->fm->peer[out->peer];
	int code = send_head(out->fm, peer, out->packet, out->used_bytes, kind | (out->first ? FIRST : 0),
			     out->handler);

	if (UNLIKELY(code == CADGE_BUSY))
		return code;
	out->packet = NULL;
	out->first = false;
	return code;
}

size_t fm_send_piece(struct fm_stream *out, const void *piece, size_t bytes)
{
	struct fm *fm = out->fm;
	struct peer *peer = &fm->peer[out->peer];
	const uint8_t *from = piece;
	size_t left = bytes;

	while (left && !peer->down) {
		size_t part;

		if (out->packet && out->used_bytes == fm->packet_bytes && send_packet(out, 0) != CADGE_DONE)
			break;
		if (!out->packet && !next_packet(fm, peer))
			break;
		part = cadge_least(left, fm->packet_bytes - out->used_bytes);
		memcpy(out->packet + out->used_bytes, from, part);
		out->used_bytes += (uint32_t)part;
		from += part;
		left -= part;
	}
	return bytes - left;
}

int fm_end_message(struct fm_stream *out)
{
	struct peer *peer = &out->fm->peer[out->peer];
	int code = CADGE_E_DOWN;

	if (!UNLIKELY(peer->down)) {
		if (UNLIKELY(!out->packet && !next_packet(out->fm, peer)))
			return CADGE_BUSY;
		code = send_packet(out, LAST);
		if (UNLIKELY(code == CADGE_BUSY))
			return code;
	}
	out->open = false;
	return code;
}

/* Tells peers that send and hear nothing from us how much they may send. */
static void return_credits(struct fm *fm)
{
	fm->credits_due = false;
	for (uint32_t i = 0; i < fm->peers; i++) {
		struct peer *peer = &fm->peer[i];
		uint8_t *packet;

		if (!peer->link || peer->down || peer->owed < fm->window / 2)
			continue;
		packet = cadge_wire_take(peer->link);
		if (packet && send_head(fm, peer, packet, FM_HEAD_BYTES, CREDIT, 0) == CADGE_BUSY) {
			cadge_wire_drop(peer->link, packet);
			packet = NULL;
		}
		fm->credit_packets += packet != NULL;
		fm->credits_due |= packet == NULL;
	}
}

/* ---- receiving ---- */

size_t fm_receive(struct fm_stream *in, void *to, size_t bytes)
{
	uint8_t *at = to;
	size_t left = bytes;

	for (;;) {
		const size_t part = cadge_least(left, in->left_bytes);

		if (part)
			memcpy(at, in->at, part);
		in->at += part;
		in->left_bytes -= part;
		at += part;
		left -= part;
		if (!left || in->last)
			return bytes - left;
		in->fm->suspensions++;
		cadge_fiber_yield(in->fiber);
	}
}

static void run_handler(void *arg)
{
	struct fm_stream *in = arg;

	in->fm->handlers[in->handler](in, in->peer);
	in->open = false;
}

/* Gives a packet to its handler, which takes all of it before it stops. */
static void handle(struct fm *fm, uint32_t number, const uint8_t *data, size_t bytes)
{
	struct peer *peer = &fm->peer[number];
	struct fm_stream *in = &peer->in;
	const uint32_t head = cadge_load32(data), handler = (uint16_t)head >> HANDLER_SHIFT;
	const bool first = head & FIRST;

	fm->handled++;
	fm->budget_bytes -= (int64_t)bytes;
	if (!fm->uncredited && ++peer->owed >= fm->window / 2)
		fm->credits_due = true;
	if (UNLIKELY(first && (in->open || handler >= FM_HANDLERS_MAX || !fm->handlers[handler]))) {
		fm->packets_refused++;
		return;
	}
	in->at = data + FM_HEAD_BYTES;
	in->left_bytes = bytes - FM_HEAD_BYTES;
	in->last = head & LAST;
	if (!first) {
		if (in->open) /* else its handler did not want the rest */
			cadge_fiber_resume(in->fiber);
		return;
	}
	in->handler = handler;
	in->open = true;
	cadge_fiber_start(in->fiber, run_handler, in);
}

static enum cadge_keep on_packet(void *arg, uint32_t number, void *data, size_t bytes)
{
	struct fm *fm = arg;
	uint32_t head;

	if (UNLIKELY(bytes < FM_HEAD_BYTES)) {
		fm->packets_refused++;
		return CADGE_TAKEN;
	}
	head = cadge_load32(data);
	fm->peer[number].credits += head >> 16;
	if (UNLIKELY(head & CREDIT))
		return CADGE_TAKEN;
	if (fm->budget_bytes > 0 && !fm->held_count) {
		handle(fm, number, data, bytes);
		return CADGE_TAKEN;
	}
	if (UNLIKELY(fm->held_count == fm->held_room)) { /* a sender that does not keep to its credits */
		fm->packets_refused++;
		return CADGE_TAKEN;
	}
	fm->held[(fm->held_first + fm->held_count++) % fm->held_room] =
		(struct held){.peer = number, .data = data, .bytes = bytes};
	fm->packets_held++;
	return CADGE_KEEP;
}

static struct held take_held(struct fm *fm)
{
	const struct held held = fm->held[fm->held_first];

	fm->held_first = (fm->held_first + 1) % fm->held_room;
	fm->held_count--;
	return held;
}

int fm_extract(struct fm *fm, size_t budget_bytes)
{
	int code;

	fm->handled = 0;
	fm->stuck = false;
	fm->budget_bytes = budget_bytes < INT64_MAX ? (int64_t)budget_bytes : INT64_MAX;
	while (UNLIKELY(fm->held_count) && fm->budget_bytes > 0) {
		const struct held held = take_held(fm);

		handle(fm, held.peer, held.data, held.bytes);
		cadge_wire_release(fm->wire, held.data);
	}
	code = cadge_wire_progress(fm->wire, fm->handled ? 1 : ROUNDS);
	if (UNLIKELY(fm->credits_due))
		return_credits(fm);
	fm->budget_bytes = 0;
	return code < 0 ? code : fm->handled;
}

bool fm_may_sleep(const struct fm *fm)
{
	return !fm->held_count && !fm->credits_due && !fm->stuck;
}

/* ---- life ---- */

static void on_up(void *arg, uint32_t peer)
{
	struct fm *fm = arg;

	fm->handled++;
	fm->events.up(fm->events.arg, peer);
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct fm *fm = arg;

	fm->handled++;
	fm->peer[peer].down = true;
	fm->events.down(fm->events.arg, peer, code);
}

void fm_close(struct fm *fm)
{
	if (!fm)
		return;
	while (fm->held_count)
		cadge_wire_release(fm->wire, take_held(fm).data);
	cadge_wire_close(fm->wire);
	for (uint32_t i = 0; i < fm->peers; i++)
		cadge_fiber_destroy(fm->peer[i].in.fiber);
	free(fm->held);
	free(fm);
}

static bool make_peers(struct fm *fm, uint32_t peers, size_t stack_bytes)
{
	fm->held_room = (size_t)peers * fm->window;
	fm->held = calloc(fm->held_room, sizeof(*fm->held));
	fm->peers = peers;
	for (uint32_t i = 0; i < peers; i++) {
		fm->peer[i].in = fm->peer[i].out = (struct fm_stream){.fm = fm, .peer = i};
		fm->peer[i].in.fiber = cadge_fiber_create(stack_bytes, "a handler of Fast Messages");
		if (!fm->peer[i].in.fiber)
			return false;
	}
	return fm->held;
}

int fm_open(const struct cadge_open_args *args, const struct fm_config *config, struct fm **fm_out)
{
	static const struct cadge_wire_calls calls = {.up = on_up, .down = on_down, .packet = on_packet};
	struct fm *fm;
	struct cadge_wire_needs needs = {
		.features = CADGE_WIRE_KEEP,
		.packet_bytes = config->packet_bytes,
		.packets = config->window + 2, /* one that is being filled, one for credits */
		.held = config->window,
		.calls = &calls,
	};
	int code;

	if (config->window < WINDOW_MIN || config->window > WINDOW_MAX)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "a window of %u packets, it may have %u to %u",
				    config->window, WINDOW_MIN, WINDOW_MAX);
	fm = calloc(1, sizeof(*fm) + args->peers_max * sizeof(fm->peer[0]));
	if (!fm)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	needs.arg = fm;
	code = cadge_wire_open(args, &needs, &fm->wire);
	if (code != CADGE_DONE) {
		free(fm);
		return code;
	}
	fm->events = config->events;
	fm->window = config->window;
	fm->uncredited = config->uncredited;
	fm->packet_bytes = cadge_wire_facts(fm->wire)->packet_bytes_max;
	if (!make_peers(fm, args->peers_max, config->stack_bytes ? config->stack_bytes : FM_STACK_BYTES)) {
		fm_close(fm);
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	}
	*fm_out = fm;
	return CADGE_DONE;
}

struct cadge_wire *fm_wire(const struct fm *fm)
{
	return fm->wire;
}

uint32_t fm_packet_bytes(const struct fm *fm)
{
	return fm->packet_bytes - FM_HEAD_BYTES;
}

void *fm_user(const struct fm_stream *in)
{
	return in->fm->events.arg;
}

int fm_register_handler(struct fm *fm, uint32_t id, fm_handler *handler)
{
	if (id >= FM_HANDLERS_MAX)
		return CADGE_E_ARGUMENT;
	fm->handlers[id] = handler;
	return CADGE_DONE;
}

int fm_address(struct fm *fm, uint32_t peer, struct cadge_blob_out *blob)
{
	cadge_blob_u32(blob, fm->window);
	return cadge_wire_address(fm->wire, peer, blob);
}

int fm_connect(struct fm *fm, uint32_t number, struct cadge_blob_in *blob)
{
	const uint32_t window = cadge_blob_take_u32(blob);
	struct peer *peer;
	int code;

	if (!blob->ok || window < WINDOW_MIN || window > WINDOW_MAX || number >= fm->peers)
		return CADGE_E_ARGUMENT;
	peer = &fm->peer[number];
	code = cadge_wire_connect(fm->wire, number, blob, &peer->link);
	if (code != CADGE_DONE)
		return code;
	peer->credits = window;
	peer->owed = 0;
	peer->down = false;
	return CADGE_DONE;
}

int fm_disconnect(struct fm *fm, uint32_t number)
{
	struct peer *peer = &fm->peer[number];
	int code = peer->link ? cadge_wire_disconnect(peer->link) : CADGE_E_ARGUMENT;

	if (code != CADGE_DONE)
		return code;
	for (size_t i = fm->held_count; i; i--) { /* once round the ring, without the packets of this peer */
		const struct held held = take_held(fm);

		if (held.peer == number)
			cadge_wire_release(fm->wire, held.data);
		else
			fm->held[(fm->held_first + fm->held_count++) % fm->held_room] = held;
	}
	/* A handler that stopped in the middle never goes on: its stack begins anew with the next message. */
	peer->in = (struct fm_stream){.fm = fm, .peer = number, .fiber = peer->in.fiber};
	peer->out = (struct fm_stream){.fm = fm, .peer = number};
	peer->link = NULL;
	return CADGE_DONE;
}

int fm_describe(struct fm *fm, uint32_t peer, struct cadge_path *path_out)
{
	return fm->peer[peer].link ? cadge_wire_describe(fm->peer[peer].link, path_out) : CADGE_E_DOWN;
}

void fm_counters(const struct fm *fm, void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "begins_without_credit", fm->begins_without_credit);
	each(arg, "handlers_suspended", fm->suspensions);
	each(arg, "credit_packets", fm->credit_packets);
	each(arg, "packets_kept", fm->packets_held);
	each(arg, "packets_refused", fm->packets_refused);
	cadge_wire_counters(fm->wire, each, arg);
}
