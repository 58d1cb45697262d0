/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ends of a blast, joined by a network that does what the input says: packets and reports are
 * delivered, lost, repeated, late; and, in the second half of the inputs, reports lie. Whatever happens, both
 * ends stay right in themselves; as long as nobody lies, what the receiver has is what was sent, and it gets
 * all of it in the end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../base/blast.h"
#include "must.h"

enum { BYTES_MAX = 5000, LARGE_BYTES = 1400, WAY_MAX = 64 };

/* What is on its way. */
struct thing {
	bool is_report;
	struct pgr_header head;
	uint8_t bitmap[PGR_NACK_BITMAP_BYTES];
};

static struct {
	struct pgr_outgoing out;
	struct pgr_incoming in;
	uint8_t from[BYTES_MAX], to[BYTES_MAX];
	struct thing way[WAY_MAX];
	unsigned int way_count;
	bool begun, lied;
} f;

static void check_outgoing(void)
{
	const struct pgr_outgoing *out = &f.out;
	uint32_t under_way = 0, lost = 0;

	MUST(out->acked <= out->next && out->next <= out->packets);
	if (!out->order) {
		MUST(out->packets == 1 && out->under_way <= 1);
		return;
	}
	for (uint32_t i = 0; i < out->packets; i++) {
		const uint32_t order = out->order[i];

		MUST((order & INT32_MAX) <= out->sendings);
		MUST(i < out->next || !order);
		if (order & ~(uint32_t)INT32_MAX) {
			lost++;
			MUST(i >= out->lost_from); /* none is overlooked */
		} else if (order) {
			under_way++;
		}
	}
	MUST(under_way == out->under_way && lost == out->lost && out->newest <= out->sendings);
}

static void check_incoming(void)
{
	const struct pgr_incoming *in = &f.in;
	uint32_t arrived = 0, below = 0;

	if (!f.begun)
		return;
	for (uint32_t i = 0; i < in->packets; i++) {
		const bool here = in->map[i / 64] >> i % 64 & 1;

		arrived += here;
		if (here && below == i)
			below++;
		if (here) {
			const uint32_t at = i * in->packet_bytes;
			const uint32_t bytes =
				in->bytes - at < in->packet_bytes ? in->bytes - at : in->packet_bytes;

			MUST(!memcmp(f.to + at, f.from + at, bytes));
		}
	}
	MUST(arrived == in->arrived && below == in->cumulative && in->unreported <= in->arrived);
	MUST((in->arrived == in->packets) == (below == in->packets));
	/* what the sender believes to have arrived has, unless somebody lied */
	if (in->packet_bytes != f.out.packet_bytes)
		return; /* nothing has come in the smaller packets yet */
	for (uint32_t i = 0; !f.lied && f.out.order && i < f.out.next; i++)
		MUST(f.out.order[i] || (in->map[i / 64] >> i % 64 & 1));
}

static void on_way(const struct thing *thing)
{
	if (f.way_count < WAY_MAX)
		f.way[f.way_count++] = *thing;
}

static void send_one(uint32_t number)
{
	const uint32_t at = number * f.out.packet_bytes;
	struct thing thing = {0};

	MUST(number < f.out.packets);
	thing.head.message_bytes = f.out.bytes;
	thing.head.packet_bytes = f.out.packet_bytes;
	thing.head.packet_number = number;
	thing.head.data_bytes = f.out.bytes - at < f.out.packet_bytes ? f.out.bytes - at : f.out.packet_bytes;
	on_way(&thing);
}

static void burst(uint32_t credits)
{
	for (;;) {
		const uint32_t number = pgr_outgoing_next(&f.out, credits);

		if (number == PGR_PACKETS_MAX)
			break;
		MUST(f.out.under_way < credits);
		pgr_outgoing_sent(&f.out, number);
		send_one(number);
	}
	MUST(f.out.under_way <= credits || f.out.under_way <= f.out.packets);
}

static void report(void)
{
	struct thing thing = {.is_report = true};

	if (!f.begun)
		return;
	thing.head.data_bytes = (uint32_t)pgr_incoming_report(&f.in, &thing.head, thing.bitmap);
	MUST(thing.head.data_bytes <= PGR_NACK_BITMAP_BYTES && thing.head.packet_number == f.in.cumulative);
	MUST((thing.head.type == PGR_ACK) == (f.in.arrived == f.in.cumulative));
	on_way(&thing);
}

/* A packet reaches the receiver, as in the engine. */
static void take(const struct pgr_header *head)
{
	struct pgr_piece pieces[PGR_IOV_MAX];
	const uint64_t at = (uint64_t)head->packet_number * head->packet_bytes;
	uint8_t data[LARGE_BYTES];
	const struct pgr_packet packet = {.head = *head, .data = data};
	struct pgr_outgoing cut = f.out;
	unsigned int count;
	size_t used = 0;

	cut.packet_bytes = head->packet_bytes; /* it may have been sent in the larger ones */
	count = pgr_outgoing_pieces(&cut, head->packet_number, pieces);
	for (unsigned int i = 0; i < count; i++) {
		MUST(pieces[i].bytes > 0 && used + pieces[i].bytes <= sizeof(data));
		memcpy(data + used, pieces[i].base, pieces[i].bytes);
		used += pieces[i].bytes;
	}
	MUST(used == head->data_bytes && at + used <= f.out.bytes);
	if (!f.begun) {
		if (pgr_incoming_start(&f.in, head, f.to, NULL, 0) != PGR_OK)
			abort();
		f.begun = true;
	}
	pgr_incoming_take(&f.in, &packet, 8);
}

/* Large packets do not arrive: the message begins anew in small ones. */
static void shrink(void)
{
	if (f.out.packet_bytes <= PGR_SMALL_BYTES || f.out.bytes <= PGR_SMALL_BYTES)
		return;
	pgr_outgoing_end(&f.out);
	if (pgr_outgoing_start(&f.out, PGR_SMALL_BYTES) != PGR_OK)
		abort();
}

static void arrive(unsigned int which, bool stays)
{
	struct thing thing;

	if (!f.way_count)
		return;
	which %= f.way_count;
	thing = f.way[which];
	if (!stays) {
		memmove(&f.way[which], &f.way[which + 1], (f.way_count - which - 1) * sizeof(thing));
		f.way_count--;
	}
	if (thing.is_report && thing.head.packet_bytes != f.out.packet_bytes)
		return; /* late */
	if (thing.is_report)
		pgr_outgoing_acknowledge(&f.out, thing.head.packet_number,
					 thing.head.type == PGR_NACK ? thing.bitmap : NULL,
					 thing.head.data_bytes);
	else
		take(&thing.head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint32_t left, packet_bytes;
	bool liars;

	if (bytes < 6)
		return 0;
	memset(&f, 0, sizeof(f));
	liars = data[0] & 1;
	packet_bytes = data[0] / 2 % 32 < 31 ? 1 + data[0] / 2 % 32u : LARGE_BYTES;
	f.out.bytes = left =
		((uint32_t)data[1] << 8 | data[2]) % (packet_bytes == LARGE_BYTES ? BYTES_MAX : 1500);
	for (size_t i = 0; i < sizeof(f.from); i++)
		f.from[i] = (uint8_t)(i * 7 + (i >> 8));
	/* the message lies in several pieces, some of them empty */
	for (f.out.count = 0; f.out.count < 3; f.out.count++) {
		const uint32_t piece = f.out.count == 2                    ? left
				       : data[3 + f.out.count] * 4u < left ? data[3 + f.out.count] * 4u
									   : left;

		f.out.iov[f.out.count] = (struct pgr_iov){f.from + f.out.bytes - left, piece};
		left -= piece;
	}
	if (pgr_outgoing_start(&f.out, packet_bytes) != PGR_OK)
		abort();
	data += 5, bytes -= 5;
	check_outgoing();
	for (; bytes >= 2; data += 2, bytes -= 2) {
		const uint8_t much = data[1];
		uint32_t open;

		switch (data[0] % 12) {
		case 0: burst(1 + much); break;
		case 1: arrive(much, false); break;
		case 2: arrive(0, false); break;
		case 3: arrive(much, true); break;
		case 4: /* lost */
			if (f.way_count)
				f.way_count--;
			break;
		case 5: report(); break;
		case 6: /* a time-out: the last one that is open, as the engine does */
			open = pgr_outgoing_unacked(&f.out);
			if (open == PGR_PACKETS_MAX || !f.out.next)
				break;
			if (much & 1)
				pgr_outgoing_all_lost(&f.out);
			pgr_outgoing_sent(&f.out, open);
			if (much & 2)
				pgr_outgoing_lost(&f.out, open);
			else
				send_one(open);
			break;
		case 7: /* the wire had no room */
			open = pgr_outgoing_next(&f.out, 1 + much);
			if (open != PGR_PACKETS_MAX) {
				pgr_outgoing_sent(&f.out, open);
				pgr_outgoing_lost(&f.out, open);
			}
			break;
		case 8:
			if (much == 1)
				pgr_outgoing_restart(&f.out);
			else if (much == 2)
				shrink();
			break;
		case 9: /* packets that are not of this message */
			if (f.begun) {
				struct pgr_header head = {
					.message_bytes = f.in.bytes ^ (much & 1u),
					.packet_bytes = f.in.packet_bytes ^ (much >> 1 & 1u),
					.packet_number = much & 2 || much & 1 ? much : f.in.packets + much};

				const struct pgr_packet packet = {.head = head, .data = f.from};

				MUST(f.in.packets == 1 || !pgr_incoming_take(&f.in, &packet, 8));
			}
			break;
		case 10:
			if (liars) {
				f.lied = true;
				pgr_outgoing_acknowledge(&f.out, much < 128 ? much : UINT32_MAX - much, NULL,
							 0);
			}
			break;
		default:
			if (liars) {
				const size_t room =
					bytes - 2 < PGR_NACK_BITMAP_BYTES ? bytes - 2 : PGR_NACK_BITMAP_BYTES;

				f.lied = true;
				pgr_outgoing_acknowledge(&f.out, much, data + 2, room);
			}
			break;
		}
		check_outgoing();
		check_incoming();
	}
	/* From now on nothing is lost, and nobody lies: it arrives. */
	for (unsigned int i = 0; !f.lied && (!f.begun || f.in.arrived < f.in.packets); i++) {
		MUST(i < 4 * f.out.packets + 100);
		f.way_count = 0;
		pgr_outgoing_all_lost(&f.out);
		if (!f.out.order)
			pgr_outgoing_restart(&f.out);
		burst(32);
		while (f.way_count)
			arrive(0, false);
		report();
		arrive(0, false);
		check_outgoing();
		check_incoming();
	}
	pgr_outgoing_end(&f.out);
	pgr_incoming_end(&f.in);
	return 0;
}
