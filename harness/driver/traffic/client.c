/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's memory and channels, from its start to its stop, and what it counted. */
#include <stdlib.h>
#include <string.h>

#include "traffic/client_parts.h"
#include "traffic/loss.h"

#define FULL_BYTES_MAX (UINT64_C(16) << 20)

const char *const drv_payload_words[] = {"usual", "solicited", "unsolicited", "copied", NULL};

_Static_assert(DRV_CLIENT_DEPTH_MAX <= 1u << DRV_CLIENT_SLOT_BITS,
	       "a slot number fits its bits of the token");
_Static_assert(DRV_BESIDE_NUMBER << DRV_CLIENT_SLOT_BITS == DRV_TOKEN_BESIDE,
	       "numbers of a second exchange mark its tokens");

uint64_t drv_full_messages(uint64_t larger_bytes, uint32_t depth)
{
	const uint64_t fit = larger_bytes ? FULL_BYTES_MAX / larger_bytes : depth;

	if (fit >= depth)
		return depth;
	return fit ? fit : 1;
}

void drv_client_failure(struct drv_client *client, const char *what, int code)
{
	if (!client->failed)
		drv_engine_fail(what, code, &client->fail);
	client->failed = true;
	client->ending = true;
}

int drv_client_start(struct drv_client *client, struct drv_engine *engine, struct drv_exchange exchange,
		     struct drv_samples *samples, struct drv_fail *fail)
{
	const size_t request_stride =
		drv_memory_stride(drv_form_bytes(exchange.form, exchange.request_bytes));
	const bool native = exchange.form == DRV_FORM_NATIVE, copies = exchange.payload == DRV_PAYLOAD_COPIED;
	const bool away = exchange.reply != DRV_REPLY_CONT;
	const bool places =
		native && exchange.reply_bytes &&
		(exchange.payload == DRV_PAYLOAD_USUAL || exchange.payload == DRV_PAYLOAD_SOLICITED);
	const size_t result_stride = native || copies || away ? drv_memory_stride(exchange.reply_bytes) : 0;
	const uint32_t depth = exchange.depth;
	uint32_t ring = 1;

	memset(client, 0, sizeof(*client));
	if (depth > DRV_CLIENT_DEPTH_MAX)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %u operations outstanding, tokens have room for %u", depth,
				    DRV_CLIENT_DEPTH_MAX);
	drv_port_start(&client->port, engine);
	client->exchange = exchange;
	client->message =
		(struct drv_message){.bytes = (size_t)exchange.request_bytes,
				     .seed = exchange.seed,
				     .touch = exchange.touch != DRV_TOUCH_NONE,
				     .trailer = exchange.form == DRV_FORM_EMULATED ? DRV_RPC_REQUEST : 0};
	drv_client_listen(client);
	client->places = places;
	client->sink = &client->port.sink;
	client->samples = samples;
	client->check.seed = ~exchange.seed;
	client->reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	client->op_deadline = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	client->next_number = exchange.beside ? DRV_BESIDE_NUMBER : 0;
	while (ring < depth)
		ring *= 2;
	client->ready_mask = ring - 1;
	client->ready = calloc(ring, sizeof(*client->ready));
	client->slots = calloc(depth, sizeof(*client->slots));
	if (!client->ready || !client->slots) {
		drv_client_stop(client);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the client's slots");
	}
	client->memory = drv_pool_take(engine, exchange.beside ? DRV_POOL_CLIENT_BESIDE : DRV_POOL_CLIENT,
				       depth * (request_stride + result_stride), fail);
	if (!client->memory) {
		drv_client_stop(client);
		return -1;
	}
	for (uint32_t index = 0; index < depth; index++) {
		struct drv_slot *slot = &client->slots[index];

		slot->chan = engine->channels[0].chan;
		slot->payload = client->memory + index * request_stride;
		if (result_stride)
			slot->result = client->memory + depth * request_stride + index * result_stride;
	}
	return drv_taker_start(client, fail);
}

void drv_client_call_on(struct drv_client *client, struct cadge_chan *chan)
{
	for (uint32_t index = 0; index < client->exchange.depth; index++)
		client->slots[index].chan = chan;
}

void drv_client_go_round(struct drv_client *client, struct drv_rounds *rounds)
{
	for (uint32_t index = 0; index < client->exchange.depth; index++)
		client->slots[index].chan = client->port.engine->channels[index].chan;
	client->rounds = rounds;
}

void drv_client_stop(struct drv_client *client)
{
	drv_taker_stop(client);
	free(client->ready);
	free(client->slots);
	client->ready = NULL;
	client->slots = NULL;
}

void drv_client_counts(const struct drv_client *client, struct drv_counts *counts)
{
	counts->posts = true;
	counts->posted += client->posted;
	counts->posted_keys += client->key_sum;
	drv_check_counts(&client->check, counts);
	drv_check_counts(&client->taker.check, counts);
}
