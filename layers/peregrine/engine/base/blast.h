/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of several packets, on their way out and in. */
#ifndef PGR_BLAST_H
#define PGR_BLAST_H

#include <string.h>

#include "base.h"
#include "packet.h"

enum {
	/* a packet is lost when one sent so many sendings later has arrived; as RACK (RFC 8985), which counts time */
	PGR_REORDER_PACKETS = 3,
};

/* A message on its way out: what was sent and what is known to have arrived. */
struct pgr_outgoing {
	/* where it lies; the bytes are the caller's, or the slot's, or the work's, until the message has ended */
	struct pgr_iov iov[PGR_IOV_MAX];
	uint32_t count;
	/* of the message; of data in each packet but the last; how many packets that makes */
	uint32_t bytes, packet_bytes, packets;
	/* the first packet that was never sent, or not since a restart */
	uint32_t next;
	/* and that was never sent at all */
	uint32_t never_sent;
	/* all below have arrived */
	uint32_t acked;
	/* sent, not known to have arrived and not taken for lost: what credits count */
	uint32_t under_way;
	/* the packet sent last */
	uint32_t last;
	/*
	 * This and what follows only for more than one packet. Owned: the number of each packet's last sending, from
	 * 1; 0: arrived, or not sent
	 */
	uint32_t *order;
	/* so far */
	uint32_t sendings;
	/* largest order of a packet that arrived */
	uint32_t newest;
	/* packets to be sent again, flagged in the order's highest bit */
	uint32_t lost;
	/* no lost packet lies below */
	uint32_t lost_from;
};

/* A message on its way in. */
struct pgr_incoming {
	/* where it goes: lent; the caller has checked that there is room */
	const struct pgr_iov *to;
	uint32_t to_count;
	/* the same where it goes to one place */
	struct pgr_iov whole;
	/* as its first packet said */
	uint32_t bytes, packet_bytes, packets;
	/* how many packets */
	uint32_t arrived;
	/* all below are here */
	uint32_t cumulative;
	/* arrived since our last acknowledgement */
	uint32_t unreported;
	/* a bit a packet that is here: owned, or &few where 64 are enough; NULL: no message of several packets */
	uint64_t *map;
	uint64_t few;
};

/* What it consists of. */
static inline void pgr_outgoing_set(struct pgr_outgoing *out, const struct pgr_iov *iov, uint32_t count,
				    uint64_t bytes)
{
	for (uint32_t i = 0; i < count; i++)
		out->iov[i] = iov[i];
	out->count = count;
	out->bytes = (uint32_t)bytes;
}
/* Begins a message whose iov, count and bytes are set. PGR_OK or E_MEMORY, E_TOO_LARGE. */
int pgr_outgoing_start(struct pgr_outgoing *out, uint32_t packet_bytes);
/* Releases what it owns; legal on zeros, and twice. */
void pgr_outgoing_end(struct pgr_outgoing *out);
/*
 * The next packet to send under `credits` (PGR_PACKETS_MAX: on a wire that loses nothing, and so reports nothing): one that
 * is lost, else a new one. PGR_PACKETS_MAX: none now.
 */
uint32_t pgr_outgoing_next(struct pgr_outgoing *out, uint32_t credits);
/* Packet `number` goes out now. */
void pgr_outgoing_sent(struct pgr_outgoing *out, uint32_t number);
/* But it did not: the wire had no room for it. */
void pgr_outgoing_lost(struct pgr_outgoing *out, uint32_t number);
/* Learns from an ack (bitmap NULL) or nack. Returns whether something arrived that was not known to have. */
bool pgr_outgoing_acknowledge(struct pgr_outgoing *out, uint32_t below, const uint8_t *bitmap,
			      size_t bitmap_bytes);
/* The pieces of a packet's data; at most PGR_IOV_MAX. */
unsigned int pgr_outgoing_pieces(const struct pgr_outgoing *out, uint32_t number, struct pgr_piece *pieces);
/* As if nothing had been sent. */
void pgr_outgoing_restart(struct pgr_outgoing *out);
/* Nothing was heard for too long: what is under way is taken for lost. */
void pgr_outgoing_all_lost(struct pgr_outgoing *out);
/* The last packet sent that is not known to have arrived; PGR_PACKETS_MAX: all have. */
uint32_t pgr_outgoing_unacked(const struct pgr_outgoing *out);

/*
 * Begins a message whose first packet has this header; `to` is where it goes, NULL: to one place, `whole`. PGR_OK or
 * E_MEMORY.
 */
int pgr_incoming_start(struct pgr_incoming *in, const struct pgr_header *head, uint8_t *whole,
		       const struct pgr_iov *to, uint32_t to_count);
/* Releases what it owns; legal on zeros, and twice. */
void pgr_incoming_end(struct pgr_incoming *in);
enum pgr_came {
	/* the packet is new, and its data are in their place; else it is here already, or not of this message */
	PGR_CAME_NEW = 1,
	/* with it all are here */
	PGR_CAME_WHOLE = 2,
	/* its sender shall hear what has come: it asked, or this is a quarter of its window */
	PGR_CAME_REPORT = 4
};
/*
 * Takes a packet of the message, whose sender may have `window` of them under way. One that is cut smaller begins the
 * message anew: what is here of it in larger packets is dropped. Returns bits of enum pgr_came.
 */
unsigned int pgr_incoming_take(struct pgr_incoming *in, const struct pgr_packet *packet, uint32_t window);
/* Fills type (ack or nack), packet number, packet bytes and a bitmap; returns the bitmap's bytes. */
size_t pgr_incoming_report(struct pgr_incoming *in, struct pgr_header *head,
			   uint8_t bitmap[PGR_NACK_BITMAP_BYTES]);
/* Copies to offset `at` of what the list describes; the caller has checked that it fits. */
void pgr_scatter(const struct pgr_iov *iov, uint32_t count, uint64_t at, const uint8_t *data, size_t bytes);
/* Copies all that the list describes to one place, which has room. */
void pgr_gather(const struct pgr_iov *iov, uint32_t count, uint8_t *at);
/* Of all entries. */
uint64_t pgr_iov_bytes(const struct pgr_iov *iov, uint32_t count);
/* Whether the message is sent as the reference that belongs to it. */
static inline bool pgr_is_reference(const struct pgr_outgoing *out, const uint8_t *reference)
{
	return out->count == 1 && out->iov[0].base == reference;
}

#endif
