/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "kit/adapter.h"
#include "wire/wire.h"
#include "tests/styles/frame.h"

enum { PACKET_BYTES = STRANGER_PACKET_BYTES, PACKETS = 64 };

static struct cadge_wire *wire;
static struct cadge_link *to_victim;
static void (*put_head)(struct cadge_blob_out *address);
static void (*take_head)(struct cadge_blob_in *address);
unsigned int stranger_received;
uint8_t stranger_last[PACKET_BYTES];
size_t stranger_last_bytes;
uint32_t stranger_features = CADGE_WIRE_KEEP | CADGE_WIRE_REMOTE;

/* The victim may have ended already; if it did so too early it says why. */
static void on_down(void *arg, uint32_t peer, int code)
{
	(void)arg, (void)peer, (void)code;
}

static enum cadge_keep on_packet(void *arg, uint32_t peer, void *data, size_t bytes)
{
	(void)arg, (void)peer;
	stranger_received++;
	stranger_last_bytes = bytes;
	memcpy(stranger_last, data, cadge_least(bytes, sizeof(stranger_last)));
	return CADGE_TAKEN;
}

static void on_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	(void)arg, (void)peer, (void)token, (void)code;
}

static void progress_once(void)
{
	EXPECT(self, cadge_wire_progress(wire, 8) >= 0, "the wire is broken");
}

static int address_with_head(uint32_t peer, struct cadge_blob_out *blob)
{
	if (put_head)
		put_head(blob);
	return cadge_wire_address(wire, peer, blob);
}

static int connect_behind_head(uint32_t peer, struct cadge_blob_in *blob)
{
	if (take_head)
		take_head(blob);
	return cadge_wire_connect(wire, peer, blob, &to_victim);
}

void stranger_begin(struct rank *rank, void (*write_head)(struct cadge_blob_out *address),
		    void (*read_head)(struct cadge_blob_in *address))
{
	static const struct frame_calls on_the_wire = {
		.look = progress_once, .address = address_with_head, .connect = connect_behind_head};
	static const struct cadge_wire_calls calls = {
		.up = frame_up, .down = on_down, .packet = on_packet, .ended = on_ended};
	const struct cadge_wire_needs needs = {
		.features = stranger_features,
		.packet_bytes = PACKET_BYTES,
		.packets = PACKETS,
		.held = 1,
		.operations = 1,
		.calls = &calls,
	};
	const struct cadge_open_args args = rank_open_args(rank, 1);

	frame_begin(rank, &on_the_wire);
	put_head = write_head;
	take_head = read_head;
	EXPECT(rank, cadge_wire_open(&args, &needs, &wire) == CADGE_DONE, "open: %s", args.error);
	connect_to(0);
}

void stranger_throw(const void *data, size_t bytes)
{
	uint8_t *packet;

	AWAIT((packet = cadge_wire_take(to_victim)), "no packet");
	memcpy(packet, data, bytes);
	AWAIT(cadge_wire_send(to_victim, packet, bytes) != CADGE_BUSY, "a packet stays");
}

void stranger_end(void)
{
	AWAIT(hears(self, 0), "the victim does not end");
	cadge_wire_close(wire);
}
