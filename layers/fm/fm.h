/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fast Messages 2.x (Lauria, Pakin and Chien 1998) over wire/wire.h: messages are streams that are built of pieces;
 * their handler starts when the first packet is there and pulls pieces to addresses that it chooses, so that handlers of
 * several senders are in the middle of their messages at a time; the receiver says how much it wants to extract, and so
 * paces its senders, who have credits for the packets that it holds for its handlers.
 *
 * Where this differs from the published calls:
 * - Each call takes its context, and several peers are connected one by one.
 * - FM_send_piece and FM_end_message waited for credits. Here they say how far they came, since a layer may not block;
 *   FM_begin_message says that there is no credit, as in FM.
 * - FM wrote pieces into its card. Here they are copied into packets of the library, so that they are reusable at once:
 *   one copy at the sender, and one at the receiver, where the handler pulls them.
 * - Long messages are packets as well, as in FM: there is no rendezvous.
 *
 * Nothing keeps the members of an FM group apart: each can send to every handler of the other, as in 1998.
 */
#ifndef CADGE_FM_FM_H
#define CADGE_FM_FM_H

#include "wire/wire.h"

struct fm;
struct fm_stream; /* a message that is being sent or handled */

#define FM_HANDLERS_MAX 1024u /* as FM's table; handlers are numbered from 0 */
#define FM_HEAD_BYTES   4u    /* of a packet */
#define FM_STACK_BYTES  (1u << 20)

/*
 * A handler, on a stack of its own, of stack_bytes of fm_config for messages of any length: it may stop inside fm_receive. One
 * that needs more ends the process by SIGSEGV, with a line on stderr that says so. What it does not pull is dropped when it
 * returns. It may send; it may not extract, wait, connect, disconnect or close.
 */
typedef void fm_handler(struct fm_stream *in, uint32_t sender);

struct fm_events {
	void (*up)(void *arg, uint32_t peer);
	void (*down)(void *arg, uint32_t peer, int code);
	void *arg;
};

struct fm_config {
	uint32_t packet_bytes; /* longest packet, header included; may be granted less */
	uint32_t window;       /* packets of each sender that are held for handlers here; 4 to 32767 */
	bool uncredited;       /* packets are not counted: what bounds them is the wire */
	size_t stack_bytes;    /* of a handler, one for each peer; 0: FM_STACK_BYTES */
	struct fm_events events;
};

/* As the functions of the wire with these names; NULL is legal in close. */
int fm_open(const struct cadge_open_args *args, const struct fm_config *config, struct fm **fm_out);
void fm_close(struct fm *fm);
struct cadge_wire *fm_wire(const struct fm *fm);
int fm_address(struct fm *fm, uint32_t peer, struct cadge_blob_out *blob);
int fm_connect(struct fm *fm, uint32_t peer, struct cadge_blob_in *blob);
int fm_disconnect(struct fm *fm, uint32_t peer);
int fm_describe(struct fm *fm, uint32_t peer, struct cadge_path *path_out);
/* Bytes of a message that go into one packet. */
uint32_t fm_packet_bytes(const struct fm *fm);

/*
 * Before messages for it come; those for handlers that nobody registered are dropped, and counted. NULL: it is not registered
 * any more. DONE; E_ARGUMENT: id is not below FM_HANDLERS_MAX.
 */
int fm_register_handler(struct fm *fm, uint32_t id, fm_handler *handler);
void *fm_user(const struct fm_stream *in); /* events.arg */

/* FM_begin_message. NULL: not now, or never; fm_why_not says which. */
struct fm_stream *fm_begin_message(struct fm *fm, uint32_t peer, uint32_t handler);
/*
 * Why it was NULL. BUSY: no credit, a message to `peer` is open, or it is not up: extract, and try again; E_DOWN; E_ARGUMENT:
 * there can be no such handler or peer.
 */
int fm_why_not(const struct fm *fm, uint32_t peer, uint32_t handler);
/* FM_send_piece. How many bytes were taken: fewer than asked where credits or packets ran out; extract, and go on. */
size_t fm_send_piece(struct fm_stream *out, const void *piece, size_t bytes);
/* FM_end_message. DONE, BUSY (extract, and try again) or E_DOWN; but for BUSY the message is closed. */
int fm_end_message(struct fm_stream *out);

/*
 * FM_receive, inside a handler: the next bytes of the message, to any address; stops the handler until they are there.
 * How many came: fewer than asked where the message is shorter.
 */
size_t fm_receive(struct fm_stream *in, void *to, size_t bytes);

/*
 * FM_extract. Runs handlers for about budget_bytes of packets: whole ones, the last of which may go beyond. Returns the
 * number of packets that were handled and of ups and downs, or negative: the context is broken.
 */
int fm_extract(struct fm *fm, size_t budget_bytes);
/* Nothing is left to do that needs no news of the wire. */
bool fm_may_sleep(const struct fm *fm);
void fm_counters(const struct fm *fm, void (*each)(void *arg, const char *name, uint64_t value), void *arg);

#endif
