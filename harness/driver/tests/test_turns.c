/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one thread of a shared connection finds for another: as much of it as there is room for, each part no longer than
 * agreed, in order; what is nobody's is counted.
 */
#include "turns.h"

#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "tap.h"

enum { SEATS = 2, SEATS_MOST = 64, DEPTH = 3, NOTES = 16, BYTES = 64, LONG = 1000, TOKENS_MAX = 32 };

/* What a seat was told, in order. */
static struct {
	uint64_t tokens[TOKENS_MAX];
	size_t bytes[TOKENS_MAX];
	uint32_t count;
} told;

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	(void)sink, (void)peer, (void)data, (void)lend;
	told.tokens[told.count % TOKENS_MAX] = 0;
	told.bytes[told.count++ % TOKENS_MAX] = bytes;
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	(void)sink, (void)peer, (void)code;
	told.tokens[told.count++ % TOKENS_MAX] = token;
}

static const struct cadge_layer layer = {.name = "none"};

static uint64_t token_of(uint64_t seat, uint64_t number)
{
	return seat << (DRV_TURNS_NUMBER_BITS + DRV_CLIENT_SLOT_BITS) | number;
}

/* A reply to a call of that seat comes, with so many bytes of payload. */
static void reply(struct drv_turns *turns, uint64_t seat, size_t bytes)
{
	static uint8_t message[LONG + DRV_RPC_TRAILER_BYTES];
	struct cadge_sink *sink = drv_turns_sink(turns);

	drv_trailer_write(message, bytes, token_of(seat, 1), DRV_RPC_REPLY);
	sink->recv(sink, 0, message, bytes + DRV_RPC_TRAILER_BYTES, NULL);
}

static void test_notes(void)
{
	struct cadge_sink own = {.recv = on_recv, .sent = on_sent};
	struct drv_engine engine = {.layer = &layer, .channels_count = 1}, seat = engine;
	const size_t agreed = BYTES + DRV_RPC_TRAILER_BYTES;
	struct drv_turns *turns;
	struct cadge_sink *sink;
	struct drv_fail fail;
	bool in_order = true;

	if (drv_turns_make(&engine, SEATS, DEPTH, agreed, true, &turns, &fail)) {
		tap_ok(false, "two seats: %s", fail.text);
		return;
	}
	drv_turns_sit(turns, 1, &seat);
	sink = drv_turns_sink(turns);
	for (uint64_t i = 0; i < NOTES; i++)
		sink->sent(sink, 0, token_of(1, i), CADGE_DONE);
	tap_ok(!drv_turns_stray(turns), "%d notes have room", NOTES);
	sink->sent(sink, 0, token_of(1, NOTES), CADGE_DONE);
	tap_ok(drv_turns_stray(turns) == 1, "one more has none, and is counted");
	tap_ok(seat.layer->poll(seat.ctx, &own) == NOTES && told.count == NOTES, "all of them come");
	for (uint32_t i = 0; i < told.count; i++)
		in_order &= told.tokens[i] == token_of(1, i);
	tap_ok(in_order, "in order");
	told.count = 0;
	reply(turns, 1, BYTES);
	reply(turns, 1, LONG);
	tap_ok(seat.layer->poll(seat.ctx, &own) == 2 && told.bytes[0] == agreed && told.bytes[1] > agreed &&
		       told.bytes[1] < LONG,
	       "a reply that is too long is cut, and stays too long: %zu of %d bytes", told.bytes[1], LONG);
	reply(turns, SEATS, BYTES);
	sink->sent(sink, 0, token_of(SEATS, 0), CADGE_DONE);
	tap_ok(drv_turns_stray(turns) == 3, "what names no seat is counted");
	drv_turns_free(turns);
}

static void test_seats(void)
{
	struct drv_engine engine = {.layer = &layer, .channels_count = 1};
	struct drv_turns *turns = NULL;
	struct drv_fail fail;
	const bool most = !drv_turns_make(&engine, SEATS_MOST, DEPTH, BYTES, true, &turns, &fail);

	drv_turns_free(turns);
	turns = NULL;
	tap_ok(most && drv_turns_make(&engine, SEATS_MOST + 1, DEPTH, BYTES, true, &turns, &fail),
	       "%d seats, and no more", SEATS_MOST);
	drv_turns_free(turns);
}

int main(void)
{
	test_notes();
	test_seats();
	return tap_done();
}
