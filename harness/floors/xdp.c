/* SPDX-License-Identifier: BSD-3-Clause */
/* Floor xdp: raw frames through AF_XDP on the raw link. */
#include <stdio.h>
#include <stdlib.h>

#include "loop.h"
#include "frames/xdp_frames.h"

/* a message of several frames finds room for all of them in the ring that they are received from */
#define MESSAGE_BYTES_MAX (UINT64_C(4) << 20)

/*
 * Where the program sits: before the network stack, or in the driver. The first is the default: on the veth links of the
 * testbeds it is the faster one, and every device has it.
 */
static const char *const attach_words[] = {"generic", "native", NULL};

/* Frames to receive into for the launch's largest message, and some more. */
static uint32_t frames_in(const struct drv_launch *launch)
{
	uint32_t frames = XDP_FRAMES_IN_MIN;
	uint64_t most = 0;

	for (size_t i = 0; i < launch->points_count; i++) {
		const uint64_t bytes = drv_floor_point(launch, i).bytes;

		if (bytes > most && bytes <= MESSAGE_BYTES_MAX)
			most = bytes;
	}
	while (frames < XDP_FRAMES_IN_MIN + most / XDP_PIECE_BYTES_MIN)
		frames *= 2;
	return frames;
}

/* The kernel begins with few of the frames: no packet has come yet, so that it looked at none of those in the ring. */
static int hold_frames(struct floor_state *state, uint32_t frames, struct drv_fail *fail)
{
	state->spare = calloc(frames, sizeof(*state->spare));
	if (!state->spare)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the list of frames");
	state->in_mask = frames - 1;
	state->in_flight = state->lend = XDP_FRAMES_IN_MIN;
	__atomic_store_n(state->xdp.fill.producer, state->in_flight, __ATOMIC_RELEASE);
	for (uint32_t frame = frames; frame > state->in_flight; frame--)
		state->spare[state->spare_count++] = (uint64_t)(frame - 1) * XDP_FRAME_BYTES;
	return 0;
}

/* How much of a message a frame carries: whole, and as one piece of several. */
static size_t frame_room(const struct pgr_xdp_socket *xdp)
{
	const size_t fits = XDP_FRAME_BYTES - XDP_HEADROOM_BYTES - XDP_HEAD_BYTES;

	return xdp->mtu - XDP_LENGTH_BYTES < fits ? xdp->mtu - XDP_LENGTH_BYTES : fits;
}

static int xdp_open(struct drv_floor_run *run, struct drv_fail *fail)
{
	const char *device = run->launch->endpoints[run->endpoint].raw_device;
	const uint32_t frames = frames_in(run->launch);
	struct floor_state *state = calloc(1, sizeof(*state));

	if (!state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the floor's state");
	run->state = state;
	state->xdp.fd = state->xdp.map_fd = state->xdp.program_fd = state->xdp.link_fd = -1;
	state->held = UINT64_MAX;
	if (!device[0])
		return drv_fail_set(fail, DRV_NODE_LACKS, "this host has no link of its own for raw frames");
	run->path = (struct cadge_path){
		.bytes = sizeof(run->path), .medium = CADGE_MEDIUM_NETWORK, .as_asked = 1};
	snprintf(run->path.asked, sizeof(run->path.asked), "device %.100s", device);
	snprintf(run->path.device, sizeof(run->path.device), "%.60s", device);
	if (xdp_socket_open(&state->xdp, device, frames, fail) || hold_frames(state, frames, fail))
		return -1;
	if (state->xdp.mtu < XDP_LENGTH_BYTES + sizeof(struct xdp_piece) + XDP_PIECE_BYTES_MIN)
		return drv_fail_set(
			fail, DRV_NODE_LACKS,
			"device %s carries packets of %u bytes, which is too small for raw frames", device,
			state->xdp.mtu);
	state->piece_bytes = (uint32_t)(frame_room(&state->xdp) - sizeof(struct xdp_piece));
	run->bytes_max = MESSAGE_BYTES_MAX;
	return 0;
}

static void xdp_close(struct drv_floor_run *run)
{
	if (!run->state)
		return;
	pgr_xdp_socket_close(&run->state->xdp);
	free(run->state->spare);
	free(run->state);
	run->state = NULL;
}

DRV_INLINE int xdp_send(struct drv_floor_loop *loop, size_t bytes)
{
	struct floor_state *state = loop->run->state;
	/* One exchange at a time: when the 33rd frame is due, the first has long been sent. */
	uint8_t *frame = frame_new(state);

	frame[XDP_ETHER_BYTES] = (uint8_t)bytes;
	frame[XDP_ETHER_BYTES + 1] = (uint8_t)(bytes >> 8);
	memcpy(frame + XDP_HEAD_BYTES, loop->out, bytes);
	frame_queue(state, frame, XDP_HEAD_BYTES + bytes);
	return frames_leave(loop);
}

DRV_INLINE int xdp_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes, const bool block)
{
	struct floor_state *state = loop->run->state;
	const uint8_t *frame;
	uint32_t length;

	if (state->held != UINT64_MAX) {
		frame_back(state, state->held);
		state->held = UINT64_MAX;
	}
	frame = frame_take(state, &state->held, &length);
	if (!frame && block) {
		if (frame_sleep(loop))
			return -1;
		frame = frame_take(state, &state->held, &length);
	}
	if (!frame)
		return 0;
	*bytes = length >= XDP_HEAD_BYTES
			 ? (size_t)frame[XDP_ETHER_BYTES] | (size_t)frame[XDP_ETHER_BYTES + 1] << 8
			 : SIZE_MAX;
	/* short frames are padded on their way, never cut */
	if (*bytes > length - XDP_HEAD_BYTES)
		*bytes = SIZE_MAX;
	*data = frame + XDP_HEAD_BYTES;
	if (DRV_UNLIKELY(*bytes == SIZE_MAX || (loop->run->endpoint == 1 && *bytes != loop->bytes)))
		return 0; /* of an earlier point, or not from us */
	return 1;
}

DRV_INLINE int receive_poll(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes)
{
	return xdp_receive(loop, data, bytes, false);
}

DRV_INLINE int receive_block(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes)
{
	return xdp_receive(loop, data, bytes, true);
}

static bool one_frame(const struct drv_floor_loop *loop)
{
	return loop->bytes <= frame_room(&loop->run->state->xdp);
}

static int xdp_client(struct drv_floor_loop *loop)
{
	if (!one_frame(loop))
		return pieces_client(loop);
	if (loop->run->block)
		return floor_client_loop(loop, true, true, xdp_send, receive_block);
	return floor_client_loop(loop, false, true, xdp_send, receive_poll);
}

static int xdp_server(struct drv_floor_loop *loop)
{
	if (!one_frame(loop))
		return pieces_server(loop);
	if (loop->run->block)
		return floor_server_loop(loop, true, xdp_send, receive_block);
	return floor_server_loop(loop, false, xdp_send, receive_poll);
}

static int xdp_begin(struct drv_floor_loop *loop, struct drv_fail *fail)
{
	struct floor_state *state = loop->run->state;
	uint64_t address;
	uint32_t length;

	(void)fail;
	state->lend = XDP_FRAMES_IN_MIN + (one_frame(loop) ? 0 : pieces_of(state, loop->bytes));
	if (state->held != UINT64_MAX)
		frame_back(state, state->held);
	state->held = UINT64_MAX;
	/* Frames of an earlier point that came late. */
	while (frame_take(state, &address, &length))
		frame_back(state, address);
	for (; state->in_flight < state->lend; state->in_flight++)
		frame_lend(state, state->spare[--state->spare_count]);
	state->sent = state->gathering = 0;
	state->gathered = 0;
	return 0;
}

static int exchange_macs(struct drv_floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	const uint8_t *mac = state->xdp.mac;
	json_t *theirs = NULL, *mine = json_array();
	int status;

	for (int i = 0; i < 6; i++)
		if (json_array_append_new(mine, json_integer(mac[i]))) {
			json_decref(mine);
			return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
		}
	status = drv_floor_swap(run, "mac", json_pack("{s:o}", "mac", mine), &theirs, fail);
	for (size_t i = 0; !status && i < 6; i++) {
		const json_t *byte = json_array_get(json_object_get(theirs, "mac"), i);

		if (!json_is_integer(byte))
			status = drv_fail_set(fail, DRV_PROTOCOL,
					      "the other endpoint sent no hardware address");
		state->head[i] = (uint8_t)json_integer_value(byte);
		state->head[6 + i] = mac[i];
	}
	state->head[12] = XDP_ETHERTYPE >> 8;
	state->head[13] = XDP_ETHERTYPE & 0xff;
	json_decref(theirs);
	return status;
}

static int xdp_connect(struct drv_floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;

	state->native = drv_floor_choice(run, "attach") == 1;
	if (exchange_macs(run, fail) || xdp_socket_attach(&state->xdp, state->native, fail))
		return -1;
	snprintf(run->path.used, sizeof(run->path.used), "AF_XDP in copy mode, %s attachment, queue 0",
		 attach_words[state->native ? 1 : 0]);
	snprintf(run->path.note, sizeof(run->path.note), "raw-frame floor, kernel included");
	return 0;
}

static const struct drv_floor xdp = {
	.name = "floor-xdp",
	.substrate = "xdp",
	.between = true,
	.poll = true,
	.block = true,
	.lossy = true,
	.settings = (const struct drv_floor_setting[]){{"attach", attach_words, 0}, {.name = NULL}},
	.open = xdp_open,
	.connect = xdp_connect,
	.begin = xdp_begin,
	.exchange = {xdp_client, xdp_server},
	.close = xdp_close,
};
DRV_FLOOR(xdp);
