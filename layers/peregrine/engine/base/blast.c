/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of several packets. The sender numbers its sendings; a packet is lost when one that was sent
 * PGR_REORDER_PACKETS sendings later has arrived (as RACK, RFC 8985, does by time). So a hole is repaired
 * once a round trip, and a repetition that is lost too is found in the same way.
 */
#include "blast.h"

#include <stdlib.h>

#define LOST UINT32_C(0x80000000)

uint64_t pgr_iov_bytes(const struct pgr_iov *iov, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += iov[i].bytes;
	return bytes;
}

void pgr_gather(const struct pgr_iov *iov, uint32_t count, uint8_t *at)
{
	for (uint32_t i = 0; i < count; i++) {
		if (iov[i].bytes)
			memcpy(at, iov[i].base, iov[i].bytes);
		at += iov[i].bytes;
	}
}

/* Copies to offset `at` of what the list describes; the caller has checked that it fits. */
void pgr_scatter(const struct pgr_iov *iov, uint32_t count, uint64_t at, const uint8_t *data, size_t bytes)
{
	for (uint32_t i = 0; i < count && bytes; i++) {
		size_t part;

		if (at >= iov[i].bytes) {
			at -= iov[i].bytes;
			continue;
		}
		part = iov[i].bytes - (size_t)at < bytes ? iov[i].bytes - (size_t)at : bytes;
		memcpy((uint8_t *)iov[i].base + at, data, part);
		data += part, bytes -= part;
		at = 0;
	}
}

/* ---- sending ---- */

int pgr_outgoing_start(struct pgr_outgoing *out, uint32_t packet_bytes)
{
	out->packet_bytes = packet_bytes;
	out->packets = pgr_packets_of(out->bytes, packet_bytes);
	out->order = NULL;
	if (PGR_UNLIKELY(out->packets > 1)) {
		if (out->packets > PGR_PACKETS_MAX)
			return PGR_E_TOO_LARGE;
		out->order = calloc(out->packets, sizeof(*out->order));
		if (!out->order)
			return PGR_E_MEMORY;
	}
	out->next = out->acked = out->under_way = out->last = out->never_sent = 0;
	out->sendings = out->newest = out->lost = out->lost_from = 0;
	return PGR_OK;
}

void pgr_outgoing_end(struct pgr_outgoing *out)
{
	if (PGR_UNLIKELY(out->order != NULL)) {
		free(out->order);
		out->order = NULL;
	}
}

void pgr_outgoing_restart(struct pgr_outgoing *out)
{
	if (out->order)
		memset(out->order, 0, out->packets * sizeof(*out->order));
	out->next = out->acked = out->under_way = out->last = 0;
	out->sendings = out->newest = out->lost = out->lost_from = 0;
}

uint32_t pgr_outgoing_next(struct pgr_outgoing *out, uint32_t credits)
{
	if (out->under_way >= credits)
		return PGR_PACKETS_MAX;
	if (out->lost)
		for (; out->lost_from < out->next; out->lost_from++)
			if (out->order[out->lost_from] & LOST)
				return out->lost_from;
	/* the receiver's memory of what came is bounded: it reports only so far behind a hole, if it has to report at all */
	if (out->next < out->packets &&
	    (credits == PGR_PACKETS_MAX || out->next - out->acked < PGR_NACK_BITMAP_BYTES * 8))
		return out->next;
	return PGR_PACKETS_MAX;
}

void pgr_outgoing_sent(struct pgr_outgoing *out, uint32_t number)
{
	out->last = number;
	if (!out->order) {
		out->next = out->never_sent = 1;
		out->under_way = 1;
		return;
	}
	if (number == out->next) {
		out->next++;
		out->under_way++;
		if (out->next > out->never_sent)
			out->never_sent = out->next;
	} else if (out->order[number] & LOST) {
		out->lost--;
		out->under_way++;
	}
	out->order[number] = ++out->sendings;
}

void pgr_outgoing_lost(struct pgr_outgoing *out, uint32_t number)
{
	if (!out->order) {
		out->next = 0;
		out->under_way = 0;
		return;
	}
	out->order[number] |= LOST;
	out->lost++;
	out->under_way--;
	if (number < out->lost_from || out->lost == 1)
		out->lost_from = number;
}

void pgr_outgoing_all_lost(struct pgr_outgoing *out)
{
	if (!out->order)
		return;
	for (uint32_t i = out->acked; i < out->next; i++)
		if (out->order[i] && !(out->order[i] & LOST)) {
			out->order[i] |= LOST;
			out->lost++;
			out->under_way--;
		}
	out->lost_from = out->acked;
}

uint32_t pgr_outgoing_unacked(const struct pgr_outgoing *out)
{
	if (!out->order)
		return out->acked ? PGR_PACKETS_MAX : 0;
	for (uint32_t i = out->next; i-- > out->acked;)
		if (out->order[i])
			return i;
	return PGR_PACKETS_MAX;
}

static bool arrived(struct pgr_outgoing *out, uint32_t number)
{
	uint32_t order = out->order[number];

	if (!order)
		return false;
	if (order & LOST)
		out->lost--; /* it was only late */
	else
		out->under_way--;
	order &= ~LOST;
	if (order > out->newest)
		out->newest = order;
	out->order[number] = 0;
	return true;
}

bool pgr_outgoing_acknowledge(struct pgr_outgoing *out, uint32_t below, const uint8_t *bitmap,
			      size_t bitmap_bytes)
{
	bool progress = false;
	uint32_t end;

	if (below > out->never_sent)
		return false; /* what was never sent cannot have arrived */
	if (!out->order) {
		if (below < 1 || !out->next || out->acked)
			return false;
		out->acked = 1;
		out->under_way = 0;
		return true;
	}
	if (below > out->next) { /* it was sent before a restart */
		out->next = below;
		progress = true;
	}
	for (uint32_t i = out->acked; i < below; i++)
		progress |= arrived(out, i);
	if (below > out->acked)
		out->acked = below;
	for (size_t i = 0; i < bitmap_bytes * 8; i++) {
		const uint64_t number = (uint64_t)below + 1 + i;

		if (number >= out->next)
			break;
		if (bitmap[i / 8] >> (i % 8) & 1)
			progress |= arrived(out, (uint32_t)number);
	}
	/* What was sent well before something that arrived, and has not arrived, is lost. */
	end = out->next;
	for (uint32_t i = out->acked; i < end; i++) {
		const uint32_t order = out->order[i];

		if (!order || (order & LOST) || order + PGR_REORDER_PACKETS > out->newest)
			continue;
		out->order[i] |= LOST;
		out->lost++;
		out->under_way--;
		if (i < out->lost_from || out->lost == 1)
			out->lost_from = i;
	}
	return progress;
}

unsigned int pgr_outgoing_pieces(const struct pgr_outgoing *out, uint32_t number, struct pgr_piece *pieces)
{
	uint64_t at = (uint64_t)number * out->packet_bytes;
	uint64_t left = out->bytes - at < out->packet_bytes ? out->bytes - at : out->packet_bytes;
	unsigned int used = 0;

	for (uint32_t i = 0; i < out->count && left; i++) {
		uint64_t part;

		if (at >= out->iov[i].bytes) {
			at -= out->iov[i].bytes;
			continue;
		}
		part = out->iov[i].bytes - at < left ? out->iov[i].bytes - at : left;
		pieces[used++] = (struct pgr_piece){(const uint8_t *)out->iov[i].base + at, (size_t)part};
		left -= part;
		at = 0;
	}
	return used;
}

/* ---- receiving ---- */

/* Makes room to note which packets of a message, that is cut like this, are here: none. */
static bool note_none(struct pgr_incoming *in, const struct pgr_header *head)
{
	const uint32_t packets = pgr_packets_of(head->message_bytes, head->packet_bytes);
	uint64_t *map = &in->few;

	if (packets > 64) {
		map = calloc((packets + 63) / 64, sizeof(*map));
		if (!map)
			return false;
	}
	pgr_incoming_end(in);
	in->packet_bytes = head->packet_bytes;
	in->packets = packets;
	in->arrived = in->cumulative = in->unreported = 0;
	in->few = 0;
	in->map = map;
	return true;
}

int pgr_incoming_start(struct pgr_incoming *in, const struct pgr_header *head, uint8_t *whole,
		       const struct pgr_iov *to, uint32_t to_count)
{
	in->bytes = head->message_bytes;
	in->whole = (struct pgr_iov){whole, head->message_bytes};
	in->to = to ? to : &in->whole;
	in->to_count = to ? to_count : 1;
	in->map = NULL;
	return note_none(in, head) ? PGR_OK : PGR_E_MEMORY;
}

void pgr_incoming_end(struct pgr_incoming *in)
{
	if (in->map && in->map != &in->few)
		free(in->map);
	in->map = NULL;
}

/* Marks a packet; false: it is here already, or is not of this message, or there is no memory for it. */
static bool mark(struct pgr_incoming *in, const struct pgr_header *head)
{
	const uint32_t number = head->packet_number;
	const uint64_t bit = UINT64_C(1) << number % 64;

	if (head->message_bytes != in->bytes)
		return false;
	if (PGR_UNLIKELY(head->packet_bytes == PGR_SMALL_BYTES && in->packet_bytes > PGR_SMALL_BYTES) &&
	    !note_none(in, head))
		return false;
	if (head->packet_bytes != in->packet_bytes || number >= in->packets || (in->map[number / 64] & bit))
		return false;
	in->map[number / 64] |= bit;
	in->arrived++;
	in->unreported++;
	while (in->cumulative < in->packets && (in->map[in->cumulative / 64] >> in->cumulative % 64 & 1))
		in->cumulative++;
	return true;
}

unsigned int pgr_incoming_take(struct pgr_incoming *in, const struct pgr_packet *packet, uint32_t window)
{
	const struct pgr_header *head = &packet->head;
	unsigned int came = head->flags & PGR_FLAG_ASK ? PGR_CAME_REPORT : 0;

	if (!mark(in, head))
		return came;
	pgr_scatter(in->to, in->to_count, (uint64_t)head->packet_number * head->packet_bytes, packet->data,
		    head->data_bytes);
	if (in->arrived == in->packets)
		return PGR_CAME_NEW | PGR_CAME_WHOLE;
	if (in->unreported * UINT64_C(4) >= window)
		came |= PGR_CAME_REPORT;
	return came | PGR_CAME_NEW;
}

size_t pgr_incoming_report(struct pgr_incoming *in, struct pgr_header *head,
			   uint8_t bitmap[PGR_NACK_BITMAP_BYTES])
{
	size_t bytes = 0;

	in->unreported = 0;
	head->packet_number = in->cumulative;
	head->packet_bytes = in->packet_bytes;
	head->type = PGR_ACK;
	if (in->arrived == in->cumulative)
		return 0;
	head->type = PGR_NACK;
	memset(bitmap, 0, PGR_NACK_BITMAP_BYTES);
	for (uint32_t i = 0; i < PGR_NACK_BITMAP_BYTES * 8 && in->cumulative + 1 + i < in->packets; i++) {
		const uint32_t number = in->cumulative + 1 + i;

		if (in->map[number / 64] >> number % 64 & 1) {
			bitmap[i / 8] = (uint8_t)(bitmap[i / 8] | 1u << i % 8);
			bytes = i / 8 + 1;
		}
	}
	return bytes;
}
