/* SPDX-License-Identifier: BSD-3-Clause */
/* Floor xdp: raw frames through AF_XDP on the raw link. */
#include <errno.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "loop.h"
#include "xdp_socket.h"

/* On the wire: 14 bytes of Ethernet, 2 bytes of length (little endian), the message. */
#define HEAD_BYTES       16u
#define LENGTH_BYTES     2u
#define BLOCK_TIMEOUT_MS 5

/*
 * Where the program sits: before the network stack, or in the driver. The first is the default: on the veth links of the
 * testbeds it is the faster one, and every device has it.
 */
static const char *const attach_words[] = {"generic", "native", NULL};

struct floor_state {
	struct pgr_xdp_socket xdp;
	uint8_t head[14]; /* of what is sent */
	uint32_t next_frame;
	uint64_t held; /* received frame that the loop still reads; UINT64_MAX: none */
	bool native;
};

static int xdp_open(struct drv_floor_run *run, struct drv_fail *fail)
{
	const char *device = run->launch->endpoints[run->endpoint].raw_device;
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
	if (xdp_socket_open(&state->xdp, device, fail))
		return -1;
	run->bytes_max = XDP_FRAME_BYTES - XDP_HEADROOM_BYTES - HEAD_BYTES;
	if (state->xdp.mtu - LENGTH_BYTES < run->bytes_max)
		run->bytes_max = state->xdp.mtu - LENGTH_BYTES;
	return 0;
}

static void xdp_close(struct drv_floor_run *run)
{
	if (!run->state)
		return;
	pgr_xdp_socket_close(&run->state->xdp);
	free(run->state);
	run->state = NULL;
}

/* Gives a received frame back to the kernel. */
DRV_INLINE void frame_back(struct floor_state *state, uint64_t address)
{
	struct pgr_xdp_ring *fill = &state->xdp.fill;
	const uint32_t at = *fill->producer;

	((uint64_t *)fill->entries)[at % XDP_RING] = address / XDP_FRAME_BYTES * XDP_FRAME_BYTES;
	__atomic_store_n(fill->producer, at + 1, __ATOMIC_RELEASE);
}

static int __attribute__((cold, noinline)) send_failed(struct drv_floor_loop *loop)
{
	if (errno != EAGAIN && errno != EBUSY && errno != ENOBUFS && errno != EINTR)
		return drv_floor_broke(loop, "sendto on an AF_XDP socket");
	return drv_floor_look(loop);
}

DRV_INLINE int xdp_send(struct drv_floor_loop *loop, size_t bytes)
{
	struct floor_state *state = loop->run->state;
	struct pgr_xdp_socket *xdp = &state->xdp;
	const uint64_t address =
		(uint64_t)(XDP_FRAMES / 2 + state->next_frame++ % (XDP_FRAMES / 2)) * XDP_FRAME_BYTES;
	uint8_t *frame = xdp->frames + address;
	const uint32_t at = *xdp->transmit.producer;
	uint32_t sent;

	/* One exchange at a time: when the 33rd frame is due, the first has long been sent. */
	memcpy(frame, state->head, sizeof(state->head));
	frame[14] = (uint8_t)bytes;
	frame[15] = (uint8_t)(bytes >> 8);
	memcpy(frame + HEAD_BYTES, loop->out, bytes);
	((struct xdp_desc *)xdp->transmit.entries)[at % XDP_RING] =
		(struct xdp_desc){.addr = address, .len = (uint32_t)(HEAD_BYTES + bytes)};
	__atomic_store_n(xdp->transmit.producer, at + 1, __ATOMIC_RELEASE);
	while (DRV_UNLIKELY(sendto(xdp->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)) {
		const int status = send_failed(loop);

		if (status)
			return status;
	}
	sent = __atomic_load_n(xdp->complete.producer, __ATOMIC_ACQUIRE);
	__atomic_store_n(xdp->complete.consumer, sent, __ATOMIC_RELEASE);
	return 0;
}

DRV_INLINE int xdp_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes, const bool block)
{
	struct floor_state *state = loop->run->state;
	struct pgr_xdp_ring *ring = &state->xdp.receive;
	const uint32_t at = *ring->consumer;
	const struct xdp_desc *entry;
	const uint8_t *frame;

	if (state->held != UINT64_MAX) {
		frame_back(state, state->held);
		state->held = UINT64_MAX;
	}
	if (__atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) == at) {
		struct pollfd ready = {.fd = state->xdp.fd, .events = POLLIN};

		if (block && poll(&ready, 1, BLOCK_TIMEOUT_MS) < 0 && errno != EINTR)
			return drv_floor_broke(loop, "poll");
		if (!block || __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE) == at)
			return 0;
	}
	entry = &((const struct xdp_desc *)ring->entries)[at % XDP_RING];
	frame = state->xdp.frames + entry->addr;
	state->held = entry->addr;
	*bytes = entry->len >= HEAD_BYTES ? (size_t)frame[14] | (size_t)frame[15] << 8 : SIZE_MAX;
	/* short frames are padded on their way, never cut */
	if (*bytes > entry->len - HEAD_BYTES)
		*bytes = SIZE_MAX;
	*data = frame + HEAD_BYTES;
	__atomic_store_n(ring->consumer, at + 1, __ATOMIC_RELEASE);
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

static int xdp_client(struct drv_floor_loop *loop)
{
	if (loop->run->block)
		return floor_client_loop(loop, true, true, xdp_send, receive_block);
	return floor_client_loop(loop, false, true, xdp_send, receive_poll);
}

static int xdp_server(struct drv_floor_loop *loop)
{
	if (loop->run->block)
		return floor_server_loop(loop, true, xdp_send, receive_block);
	return floor_server_loop(loop, false, xdp_send, receive_poll);
}

static int xdp_begin(struct drv_floor_loop *loop, struct drv_fail *fail)
{
	const uint8_t *data;
	size_t bytes;

	(void)fail;
	/* Frames of an earlier point that came late. */
	for (uint32_t i = 0; i < XDP_FRAMES; i++)
		if (xdp_receive(loop, &data, &bytes, false) < 0)
			return -1;
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
