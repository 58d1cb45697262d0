/* SPDX-License-Identifier: BSD-3-Clause */
#include "bip/bip_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS  8u  /* rounds of a progress that finds nothing */
#define PACKETS 64u /* of a peer under way */

void bip_fail(struct bip *bip, const char *format, ...)
{
	va_list list;

	if (bip->broken)
		return;
	va_start(list, format);
	vsnprintf(bip->why, sizeof(bip->why), format, list);
	va_end(list);
	bip->broken = CADGE_E_LIBRARY;
}

/* ---- progress ---- */

int bip_progress(struct bip *bip)
{
	int code;

	if (UNLIKELY(bip->broken))
		return bip->broken;
	bip->stuck = false;
	code = cadge_wire_progress(bip->wire, ROUNDS);
	if (UNLIKELY(bip->send.step >= PUTTING))
		bip_send_on(bip);
	if (UNLIKELY(bip->owed))
		bip_grant_owed(bip);
	return UNLIKELY(bip->broken) ? bip->broken : code;
}

bool bip_may_sleep(const struct bip *bip)
{
	return !bip->stuck && !bip->owed && !bip->ready && !bip->broken &&
	       (bip->send.step < PUTTING || bip->send.pending);
}

/* ---- announced buffers ---- */

int bip_register(struct bip *bip, void *base, size_t bytes)
{
	struct cadge_blob_out key = {.room_bytes = KEY_BYTES_MAX, .ok = true};
	struct bip_region *region = bip->region;
	int code;

	while (region < bip->region + BIP_REGIONS_MAX && region->region)
		region++;
	if (region == bip->region + BIP_REGIONS_MAX)
		return CADGE_E_ARGUMENT;
	key.at = region->key;
	code = cadge_wire_expose(bip->wire, base, bytes, CADGE_MAY_WRITE, &key, &region->region);
	if (code != CADGE_DONE) {
		region->region = NULL;
		return code;
	}
	region->base = base;
	region->bytes = bytes;
	region->key_bytes = key.used_bytes;
	return CADGE_DONE;
}

int bip_unregister(struct bip *bip, const void *base)
{
	struct bip_region *region = bip->region;

	while (region < bip->region + BIP_REGIONS_MAX && (!region->region || region->base != base))
		region++;
	if (region == bip->region + BIP_REGIONS_MAX)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < bip->tags; i++) {
		const struct bip_tag *tag = &bip->tag[i];

		if (tag->step == GRANTED && !tag->exposed && tag->buffer >= region->base &&
		    tag->buffer < region->base + region->bytes)
			return CADGE_E_ARGUMENT;
	}
	cadge_wire_unexpose(bip->wire, region->region);
	region->region = NULL;
	for (uint32_t i = 0; i < bip->peers; i++)
		bip->peer[i].announced &= ~(1u << (region - bip->region));
	return CADGE_DONE;
}

/* ---- life ---- */

static void on_up(void *arg, uint32_t peer)
{
	struct bip *bip = arg;

	bip->peer[peer].up = true;
	bip->events.up(bip->events.arg, peer);
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct bip *bip = arg;

	bip->peer[peer].up = false;
	bip->peer[peer].down = true;
	bip_forget_messages(bip, peer, false);
	bip_forget_send(bip, peer);
	bip->events.down(bip->events.arg, peer, code);
}

void bip_close(struct bip *bip)
{
	if (!bip)
		return;
	bip_free_tags(bip);
	cadge_wire_close(bip->wire); /* exposed buffers with it */
	free(bip);
}

static bool make_tags(struct bip *bip, const struct bip_config *config)
{
	bip->tags = config->tags;
	bip->ready_end = &bip->ready;
	bip->tag = calloc(config->tags, sizeof(*bip->tag));
	for (uint32_t i = 0; bip->tag && i < config->tags; i++)
		if (bip_taginit(bip, i, config->queue) != CADGE_DONE)
			return false;
	return bip->tag;
}

int bip_open(const struct cadge_open_args *args, const struct bip_config *config, struct bip **bip_out)
{
	static const struct cadge_wire_calls calls = {
		.up = on_up, .down = on_down, .packet = bip_on_packet, .ended = bip_on_ended};
	struct bip *bip = calloc(1, sizeof(*bip) + args->peers_max * sizeof(bip->peer[0]));
	const uint32_t least_bytes = GRANT_BYTES + KEY_BYTES_MAX;
	const uint32_t short_bytes = BIP_HEAD_BYTES + config->short_words * BIP_WORD_BYTES;
	const struct cadge_wire_needs needs = {
		.features = CADGE_WIRE_KEEP | CADGE_WIRE_REMOTE,
		.packet_bytes = short_bytes > least_bytes ? short_bytes : least_bytes,
		.packets = PACKETS,
		.held = config->held,
		.operations = BIP_PIECES_MAX + 1,
		.calls = &calls,
		.arg = bip,
	};
	uint32_t granted_bytes;
	int code;

	if (!bip)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	code = cadge_wire_open(args, &needs, &bip->wire);
	if (code != CADGE_DONE) {
		free(bip);
		return code;
	}
	granted_bytes = cadge_wire_facts(bip->wire)->packet_bytes_max;
	bip->events = config->events;
	bip->peers = args->peers_max;
	bip->held_max = config->held;
	bip->in_order = cadge_wire_facts(bip->wire)->puts_in_order;
	bip->short_words = (uint32_t)cadge_least(short_bytes, granted_bytes) / BIP_WORD_BYTES - 1;
	if (granted_bytes < least_bytes)
		code = cadge_refuse(args, CADGE_E_UNSUPPORTED, "packets of %u bytes have no room for a key",
				    granted_bytes);
	else if (!make_tags(bip, config))
		code = cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u tags", config->tags);
	if (code != CADGE_DONE) {
		bip_close(bip);
		return code;
	}
	*bip_out = bip;
	return CADGE_DONE;
}

struct cadge_wire *bip_wire(const struct bip *bip)
{
	return bip->wire;
}

uint32_t bip_short_words(const struct bip *bip)
{
	return bip->short_words;
}

const char *bip_why(const struct bip *bip)
{
	return bip->broken ? bip->why : cadge_wire_why(bip->wire);
}

int bip_address(struct bip *bip, uint32_t peer, struct cadge_blob_out *blob)
{
	cadge_blob_u32(blob, bip->short_words);
	cadge_blob_u32(blob, bip->tags);
	return cadge_wire_address(bip->wire, peer, blob);
}

int bip_connect(struct bip *bip, uint32_t number, struct cadge_blob_in *blob)
{
	const uint32_t short_words = cadge_blob_take_u32(blob), tags = cadge_blob_take_u32(blob);
	struct bip_peer *peer;
	int code;

	if (!blob->ok || number >= bip->peers)
		return CADGE_E_ARGUMENT;
	peer = &bip->peer[number];
	code = cadge_wire_connect(bip->wire, number, blob, &peer->link);
	if (code != CADGE_DONE)
		return code;
	*peer = (struct bip_peer){
		.link = peer->link,
		.short_bytes = (uint32_t)cadge_least(short_words, bip->short_words) * BIP_WORD_BYTES,
		.held = peer->held,
		.tags = (uint32_t)cadge_least(tags, UINT16_MAX + 1), /* what a packet can name */
	};
	return CADGE_DONE;
}

int bip_disconnect(struct bip *bip, uint32_t number)
{
	struct bip_peer *peer = &bip->peer[number];
	int code = peer->link ? cadge_wire_disconnect(peer->link) : CADGE_E_ARGUMENT;

	if (code != CADGE_DONE)
		return code;
	*peer = (struct bip_peer){.link = NULL, .held = peer->held};
	bip_forget_messages(bip, number, true);
	bip_forget_send(bip, number);
	return CADGE_DONE;
}

int bip_describe(struct bip *bip, uint32_t peer, struct cadge_path *path_out)
{
	return bip->peer[peer].link ? cadge_wire_describe(bip->peer[peer].link, path_out) : CADGE_E_DOWN;
}

void bip_counters(const struct bip *bip, void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "short_queued", bip->short_queued);
	each(arg, "short_copied", bip->short_copied);
	each(arg, "queue_most", bip->queue_most);
	each(arg, "long_direct", bip->long_direct);
	each(arg, "long_by_library", bip->long_by_library);
	each(arg, "keys_sent", bip->keys_sent);
	each(arg, "packets_refused", bip->packets_refused);
	cadge_wire_counters(bip->wire, each, arg);
}
