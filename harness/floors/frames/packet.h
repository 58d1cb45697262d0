/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of the floor packet: as large as the network stack takes them, 64 KiB, and told how to be cut where the link wants
 * them smaller, as TCP's are. They look like TCP's, since cards cut such and kernels join such: `seq` tells a byte's place
 * in its message, whoever cut it off, and `ack` tells the message, so that nothing is joined across two of them.
 *
 * Their hardware addresses are the floor's own. The stacks of both hosts drop what is meant for another host before they look
 * at it, and nobody answers.
 */
#ifndef CADGE_FLOOR_PACKET_H
#define CADGE_FLOOR_PACKET_H

#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include "traffic/floor.h"

/* What precedes the payload in a send or receive call; the first part stays between kernel and program. */
struct packet_head {
	struct virtio_net_hdr offload;
	struct ether_header ether;
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));
#define PACKET_HEAD_BYTES sizeof(struct packet_head)
/* of IP and TCP, which count to the MTU */
#define PACKET_INNER_BYTES (sizeof(struct iphdr) + sizeof(struct tcphdr))
/* of payload: with all heads no more than what the kernel leaves whole (gso_max_size, which has to be larger) */
#define PACKET_BYTES_MAX (65535u - sizeof(struct ether_header) - PACKET_INNER_BYTES)

/* What arrives: messages in the order of their numbers, each in the order of its bytes. */
struct packet_gather {
	/* of the attempt: packets of another are none of ours */
	uint16_t attempt;
	/* the message that arrives, and how much of it is there */
	uint32_t number;
	size_t gathered;
	/* the other side wants a report */
	bool asked;
};

struct floor_state {
	int fd;
	uint32_t mtu;
	uint8_t mac[6];
	/* of all that is sent, but for what distinguishes packets; and the sums of its IP and TCP parts, as they begin */
	struct packet_head head;
	uint32_t ip_sum, tcp_sum;
	/* payload of a packet that no link has to cut, and of the largest that is sent */
	uint32_t segment_bytes, packet_bytes;
	/* as set; 0: by the size of messages */
	uint32_t fixed_packet_bytes;
	uint64_t receive_buffer_bytes;
	/* where packets arrive: a head, the largest message, and room for a packet behind it */
	uint8_t *in;
	size_t in_bytes;
	bool huge_in;
	struct packet_gather gather;
	/* messages sent */
	uint32_t sent;
	/* flow, client: messages that the other side has done with, and those of them that were whole */
	uint32_t reported, whole;
	/* flow, server: messages done with when it last reported */
	uint32_t last_reported;
};

/* packet_socket.c */
int packet_socket_open(struct floor_state *state, const char *device, bool block, struct drv_fail *fail);

/* packet_wire.c: both directions of the head. */
void packet_wire_start(struct floor_state *state, const uint8_t to[6], int endpoint);
/* `flags`: of TCP; TH_PUSH: the message ends here; TH_FIN: a report is wanted. */
void packet_wire_head(const struct floor_state *state, struct packet_head *head, uint32_t number,
		      size_t offset, size_t bytes, uint8_t flags);
/* How the `received` bytes at `at` were cut: bytes of payload; SIZE_MAX: not a packet of this attempt. */
size_t packet_wire_payload(const struct packet_gather *gather, const struct packet_head *head,
			   size_t received);
/*
 * Takes a packet that was received to state->in + gathered, its head over the end of what is there, which is in `covered`.
 * True: a message of *bytes_out bytes is whole, from state->in + PACKET_HEAD_BYTES on.
 */
bool packet_wire_take(struct floor_state *state, const uint8_t covered[PACKET_HEAD_BYTES], size_t received,
		      size_t *bytes_out);

/* packet.c: one packet leaves, from a head and what lies behind it. 0; 1: asked to stop (server); -1. */
int packet_leave(struct drv_floor_loop *loop, const void *head, size_t bytes);
/* The message at loop->made_at. `flags`: of its last packet, besides TH_PUSH. */
int packet_send(struct drv_floor_loop *loop, uint8_t flags);
/* 1: a message of *bytes is at *data; 0: none, or somebody asked for a report; -1. */
int packet_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes, int flags);

/* packet_flow.c */
int packet_flow_client(struct drv_floor_loop *loop);
int packet_flow_server(struct drv_floor_loop *loop);

#endif
