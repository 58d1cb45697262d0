/* SPDX-License-Identifier: BSD-3-Clause */
/* Floor packet: packets of up to 64 KiB through AF_PACKET on the data link, as TCP hands them over. */
#include "frames/packet.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop.h"

#define MESSAGE_BYTES_MAX (UINT64_C(4) << 20)
/* of the buffer that a message arrives in: small packets fill it with several times their bytes */
#define BUFFER_SHARE 4u

/*
 * Payload of the largest packets: about half of what the stack takes, so that the receiver copies one while the next is
 * sent, or nearly all of it, for messages of many packets.
 */
static const char *const packet_words[] = {"by-size", "32k", "60k", "16k", NULL};
static const uint32_t packet_sizes[] = {0, 32u << 10, 60u << 10, 16u << 10};
#define MANY_PACKETS_BYTES (UINT64_C(256) << 10)
/* Pages of large messages: huge ones where the kernel gives some. */
static const char *const pages_words[] = {"huge", "small", NULL};
#define HUGE_FROM_BYTES (UINT64_C(64) << 10)

/* A call on a socket failed. 0: to be tried again; 1: asked to stop (server); -1. */
static int __attribute__((cold, noinline)) refused(struct drv_floor_loop *loop, int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	int status;

	if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		return drv_floor_broke(loop, "send on a packet socket");
	status = drv_floor_poll_oob(loop);
	if (status)
		return status;
	if (poll(&ready, 1, loop->run->block ? 5 : 0) < 0 && errno != EINTR)
		return drv_floor_broke(loop, "poll");
	return 0;
}

int packet_leave(struct drv_floor_loop *loop, const void *head, size_t bytes)
{
	const int fd = loop->run->state->fd;
	int status;

	while (DRV_UNLIKELY(send(fd, head, PACKET_HEAD_BYTES + bytes, MSG_DONTWAIT) < 0)) {
		status = refused(loop, fd);
		if (status)
			return status;
	}
	return 0;
}

int packet_send(struct drv_floor_loop *loop, uint8_t flags)
{
	struct floor_state *state = loop->run->state;
	const uint32_t number = state->sent++;
	const size_t bytes = loop->bytes;
	size_t offset = 0;

	for (;;) {
		const bool last = bytes - offset <= state->packet_bytes;
		const size_t length = last ? bytes - offset : state->packet_bytes;
		struct packet_head *head = (struct packet_head *)(loop->made_at + offset) - 1;
		int status;

		/* over what has left: whoever looks at bodies has them written anew for each message */
		packet_wire_head(state, head, number, offset, length, last ? TH_PUSH | flags : 0);
		status = packet_leave(loop, head, length);
		if (status || last)
			return status;
		offset += length;
	}
}

int packet_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes, int flags)
{
	struct floor_state *state = loop->run->state;
	uint8_t covered[PACKET_HEAD_BYTES];

	for (;;) {
		uint8_t *const at = state->in + state->gather.gathered;
		ssize_t received;

		memcpy(covered, at, sizeof(covered));
		received = recv(state->fd, at, PACKET_HEAD_BYTES + PACKET_BYTES_MAX, flags);
		if (received < 0)
			return errno == EAGAIN || errno == EINTR
				       ? 0
				       : drv_floor_broke(loop, "recv on a packet socket");
		if (packet_wire_take(state, covered, (size_t)received, bytes)) {
			*data = state->in + PACKET_HEAD_BYTES;
			return 1;
		}
		if (state->gather.asked)
			return 0;
	}
}

DRV_INLINE int send_one(struct drv_floor_loop *loop, size_t bytes)
{
	(void)bytes;
	return packet_send(loop, 0);
}

DRV_INLINE int receive_poll(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes)
{
	return packet_receive(loop, data, bytes, MSG_DONTWAIT);
}

DRV_INLINE int receive_block(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes)
{
	return packet_receive(loop, data, bytes, 0);
}

static int packet_client(struct drv_floor_loop *loop)
{
	if (loop->run->block)
		return floor_client_loop(loop, true, true, send_one, receive_block);
	return floor_client_loop(loop, false, true, send_one, receive_poll);
}

static int packet_server(struct drv_floor_loop *loop)
{
	if (loop->run->block)
		return floor_server_loop(loop, true, send_one, receive_block);
	return floor_server_loop(loop, false, send_one, receive_poll);
}

/* The launch's largest message that this floor carries. */
static uint64_t most_bytes(const struct drv_floor_run *run)
{
	uint64_t most = 0;

	for (size_t i = 0; i < run->launch->points_count; i++) {
		const uint64_t bytes = drv_floor_point(run->launch, i).bytes;

		if (bytes > most && bytes <= run->bytes_max)
			most = bytes;
	}
	return most;
}

static int packet_open(struct drv_floor_run *run, struct drv_fail *fail)
{
	const char *device = run->launch->endpoints[run->endpoint].device;
	struct floor_state *state = calloc(1, sizeof(*state));
	uint64_t most;

	if (!state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the floor's state");
	run->state = state;
	state->fd = -1;
	run->path = (struct cadge_path){
		.bytes = sizeof(run->path), .medium = CADGE_MEDIUM_NETWORK, .as_asked = 1};
	snprintf(run->path.asked, sizeof(run->path.asked), "device %.100s", device);
	snprintf(run->path.device, sizeof(run->path.device), "%.60s", device);
	if (packet_socket_open(state, device, run->block, fail))
		return -1;
	run->bytes_max = state->receive_buffer_bytes / BUFFER_SHARE;
	if (run->bytes_max > MESSAGE_BYTES_MAX)
		run->bytes_max = MESSAGE_BYTES_MAX;
	most = most_bytes(run);
	run->huge_pages = drv_floor_choice(run, "pages") == 0;
	state->huge_in = run->huge_pages && most >= HUGE_FROM_BYTES;
	state->in_bytes = PACKET_HEAD_BYTES + (size_t)most + PACKET_HEAD_BYTES + PACKET_BYTES_MAX;
	state->in = drv_floor_memory(state->in_bytes, state->huge_in);
	if (!state->in)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for messages of %llu bytes",
				    (unsigned long long)most);
	return 0;
}

static int packet_connect(struct drv_floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	const uint32_t least = PACKET_INNER_BYTES + 64, choice = drv_floor_choice(run, "packet");
	json_t *mac = json_array(), *theirs = NULL;
	uint8_t to[sizeof(state->mac)];
	int mtu;

	for (size_t i = 0; i < sizeof(to); i++)
		if (json_array_append_new(mac, json_integer(state->mac[i]))) {
			json_decref(mac);
			return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
		}
	if (drv_floor_swap(run, "packets", json_pack("{s:o, s:i}", "mac", mac, "mtu", (int)state->mtu),
			   &theirs, fail))
		return -1;
	mac = json_object_get(theirs, "mac");
	mtu = (int)json_integer_value(json_object_get(theirs, "mtu"));
	for (size_t i = 0; i < sizeof(to); i++)
		to[i] = (uint8_t)json_integer_value(json_array_get(mac, i));
	json_decref(theirs);
	if (mtu <= 0)
		return drv_fail_set(fail, DRV_PROTOCOL, "the other endpoint sent no size of its packets");
	if ((uint32_t)mtu < state->mtu)
		state->mtu = (uint32_t)mtu;
	if (state->mtu < least)
		return drv_fail_set(fail, DRV_NODE_LACKS, "packets of %u bytes are too small for this floor",
				    state->mtu);
	state->segment_bytes = state->mtu - (uint32_t)PACKET_INNER_BYTES;
	state->fixed_packet_bytes = packet_sizes[choice];
	packet_wire_start(state, to, run->endpoint);
	snprintf(run->path.used, sizeof(run->path.used),
		 "AF_PACKET, packets of up to %s, cut to %u bytes by the device, private pages %s",
		 choice ? packet_words[choice] : "32k, above 256k of 60k", state->mtu,
		 run->huge_pages ? "advised to be huge" : "of 4 KiB");
	snprintf(run->path.note, sizeof(run->path.note), "large-packet floor, kernel included");
	return 0;
}

static int packet_begin(struct drv_floor_loop *loop, struct drv_fail *fail)
{
	struct floor_state *state = loop->run->state;

	(void)fail;
	loop->made_at = loop->out + PACKET_HEAD_BYTES;
	state->packet_bytes = state->fixed_packet_bytes
				      ? state->fixed_packet_bytes
				      : packet_sizes[loop->bytes > MANY_PACKETS_BYTES ? 2 : 1];
	state->gather = (struct packet_gather){.attempt = (uint16_t)(loop->seed ^ loop->seed >> 16)};
	state->sent = state->reported = state->whole = state->last_reported = 0;
	/* Packets of an earlier point that came late. */
	while (recv(state->fd, state->in, PACKET_HEAD_BYTES, MSG_DONTWAIT) >= 0)
		;
	return 0;
}

static void packet_close(struct drv_floor_run *run)
{
	if (!run->state)
		return;
	if (run->state->fd >= 0)
		close(run->state->fd);
	drv_floor_memory_free(run->state->in, run->state->in_bytes, run->state->huge_in);
	free(run->state);
	run->state = NULL;
}

static const struct drv_floor packet = {
	.name = "floor-packet",
	.substrate = "packet",
	.between = true,
	.poll = true,
	.block = true,
	.lossy = true,
	.settings = (const struct drv_floor_setting[]){{"packet", packet_words, 0},
						       {"pages", pages_words, 0},
						       {.name = NULL}},
	.open = packet_open,
	.connect = packet_connect,
	.begin = packet_begin,
	.exchange = {packet_client, packet_server},
	.flow = {packet_flow_client, packet_flow_server},
	.close = packet_close,
};
DRV_FLOOR(packet);
