/* SPDX-License-Identifier: BSD-3-Clause */
/* Bundles, endpoints, names. */
#include "am/am.h"

#include <stdlib.h>

#include "am/am_state.h"

/* ---- endpoints ---- */

struct am_endpoint *am_endpoint_allocate(struct am *am)
{
	struct am_endpoint *endpoint;

	if (am->endpoints_count == AM_ENDPOINTS_MAX)
		return NULL;
	endpoint = calloc(1, sizeof(*endpoint));
	if (!endpoint)
		return NULL;
	endpoint->am = am;
	endpoint->number = am->endpoints_count;
	am->endpoints[am->endpoints_count++] = endpoint;
	return endpoint;
}

uint32_t am_endpoint_number(const struct am_endpoint *endpoint)
{
	return endpoint->number;
}

void am_set_tag(struct am_endpoint *endpoint, uint64_t tag)
{
	endpoint->tag = tag;
}

uint32_t am_coming(const struct am_endpoint *endpoint)
{
	return endpoint->coming;
}

int am_set_handler(struct am_endpoint *endpoint, uint32_t id, am_handler *handler)
{
	if (id >= AM_HANDLERS_MAX)
		return CADGE_E_ARGUMENT;
	endpoint->handlers[id] = handler;
	return CADGE_DONE;
}

int am_set_segment(struct am_endpoint *endpoint, size_t bytes)
{
	struct cadge_wire *wire = endpoint->am->wire;
	int code;

	if (endpoint->segment || !bytes)
		return CADGE_E_ARGUMENT;
	endpoint->segment = cadge_wire_alloc(wire, bytes);
	if (!endpoint->segment)
		return CADGE_E_MEMORY;
	endpoint->key = (struct cadge_blob_out){
		.at = endpoint->key_room, .room_bytes = sizeof(endpoint->key_room), .ok = true};
	code = cadge_wire_expose(wire, endpoint->segment, bytes, CADGE_MAY_WRITE, &endpoint->key,
				 &endpoint->region);
	if (code == CADGE_DONE && endpoint->key.used_bytes > endpoint->am->packet_bytes - AM_HEAD_BYTES) {
		cadge_wire_unexpose(wire, endpoint->region); /* a grant has no room for it */
		code = CADGE_E_TOO_LARGE;
	}
	if (code != CADGE_DONE) {
		cadge_wire_free(wire, endpoint->segment, bytes);
		endpoint->segment = NULL;
		return code;
	}
	endpoint->segment_bytes = bytes;
	return CADGE_DONE;
}

uint8_t *am_segment(const struct am_endpoint *endpoint)
{
	return endpoint->segment;
}

int am_map(struct am_endpoint *endpoint, uint32_t name, uint32_t peer, uint32_t number, uint64_t tag)
{
	if (name >= AM_NAMES_MAX || peer >= endpoint->am->peers || number >= AM_ENDPOINTS_MAX)
		return CADGE_E_ARGUMENT;
	endpoint->names[name] =
		(struct am_name){.used = true, .number = (uint8_t)number, .peer = peer, .tag = tag};
	return CADGE_DONE;
}

/* ---- what a handler may ask ---- */

void *am_user(const struct am_token *token)
{
	return token->am->calls.arg;
}

uint32_t am_source(const struct am_token *token)
{
	return token->peer;
}

enum am_status am_returned_status(const struct am_token *token)
{
	return token->status;
}

uint32_t am_returned_handler(const struct am_token *token)
{
	return token->handler;
}

/* ---- bundles ---- */

static void on_up(void *arg, uint32_t peer)
{
	struct am *am = arg;

	am->handled++;
	am->calls.up(am->calls.arg, peer);
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct am *am = arg;

	am->handled++;
	am->peer[peer].down = true;
	am_xfers_down(am, peer);
	am->calls.down(am->calls.arg, peer, code);
}

static void forget_packets(struct am *am, struct am_peer *peer)
{
	am->unsent -= peer->unsent.count;
	am->queued -= peer->queue.count;
	am_copies_destroy(&peer->unsent);
	am_copies_destroy(&peer->queue);
	am_grants_forget(am, peer);
}

void am_close(struct am *am)
{
	if (!am)
		return;
	cadge_wire_close(am->wire); /* segments with it: what peers put may still come until then */
	for (uint32_t i = 0; i < am->peers; i++)
		forget_packets(am, &am->peer[i]);
	am_xfers_destroy(am);
	for (uint32_t i = 0; i < am->endpoints_count; i++)
		free(am->endpoints[i]);
	free(am);
}

int am_open(const struct cadge_open_args *args, const struct am_config *config, struct am **am_out)
{
	static const struct cadge_wire_calls calls = {
		.up = on_up, .down = on_down, .packet = am_on_packet, .ended = am_xfer_ended};
	struct am *am = calloc(1, sizeof(*am) + args->peers_max * sizeof(am->peer[0]));
	const struct cadge_wire_needs needs = {
		.features = CADGE_WIRE_REMOTE,
		.packet_bytes = config->packet_bytes,
		.packets = 2 * config->outstanding + 1, /* requests, replies, and word of what had none */
		.operations = 2 * config->outstanding * (AM_PIECES_MAX + 1),
		.calls = &calls,
		.arg = am,
	};
	int code;

	if (!am)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	code = cadge_wire_open(args, &needs, &am->wire);
	if (code != CADGE_DONE) {
		free(am);
		return code;
	}
	am->calls = config->calls;
	am->peers = args->peers_max;
	am->outstanding = config->outstanding;
	am->queue = config->queue;
	am->trusting = config->trusting;
	am->uncredited = config->uncredited;
	am->packet_bytes = cadge_wire_facts(am->wire)->packet_bytes_max;
	am->in_order = cadge_wire_facts(am->wire)->puts_in_order;
	*am_out = am;
	return CADGE_DONE;
}

struct cadge_wire *am_wire(const struct am *am)
{
	return am->wire;
}

size_t am_medium_bytes_max(const struct am *am, uint32_t words)
{
	return am->packet_bytes - AM_HEAD_BYTES - 4 * (size_t)words;
}

/* Requests that we may have outstanding. */
int am_address(struct am *am, uint32_t peer, struct cadge_blob_out *blob)
{
	cadge_blob_u32(blob, am->outstanding);
	return cadge_wire_address(am->wire, peer, blob);
}

int am_connect(struct am *am, uint32_t number, struct cadge_blob_in *blob)
{
	const uint32_t window = cadge_blob_take_u32(blob);
	struct am_peer *peer = &am->peer[number];
	int code;

	if (!blob->ok || window < 2 || window > 4096 || number >= am->peers)
		return CADGE_E_ARGUMENT;
	code = cadge_wire_connect(am->wire, number, blob, &peer->link);
	if (code != CADGE_DONE)
		return code;
	peer->window = window;
	peer->credits = am->outstanding;
	peer->owed = 0;
	peer->down = false;
	return CADGE_DONE;
}

int am_disconnect(struct am *am, uint32_t number)
{
	struct am_peer *peer = &am->peer[number];
	int code = peer->link ? cadge_wire_disconnect(peer->link) : CADGE_E_ARGUMENT;

	if (code != CADGE_DONE)
		return code;
	forget_packets(am, peer);
	am_xfers_drop(am, number);
	*peer = (struct am_peer){0}; /* the remotes went with the link */
	return CADGE_DONE;
}

int am_describe(struct am *am, uint32_t peer, struct cadge_path *path_out)
{
	return am->peer[peer].link ? cadge_wire_describe(am->peer[peer].link, path_out) : CADGE_E_DOWN;
}

void am_counters(const struct am *am, void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "requests_without_credit", am->requests_without_credit);
	each(arg, "answers_unsent", am->replies_unsent);
	each(arg, "requests_returned", am->returned_here);
	each(arg, "returned_to_us", am->returned_to_us);
	each(arg, "acknowledgements", am->acks_sent);
	each(arg, "grants_sent", am->grants_sent);
	each(arg, "packets_refused", am->packets_refused);
	cadge_wire_counters(am->wire, each, arg);
}
