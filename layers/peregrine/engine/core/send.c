/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet leaves: its header as it is on the wire, the cookie and the check where they are needed, its data in pieces. */
#include "engine.h"

static PGR_COLD int send_with_extensions(struct pgr *pgr, const struct pgr_to *to,
					 const struct pgr_header *head, uint64_t cookie,
					 const struct pgr_piece *data, unsigned int pieces, bool more)
{
	_Alignas(8) uint8_t room[PGR_HEADER_BYTES + PGR_EXTENSIONS_BYTES];
	const uint8_t *key = pgr->has_key ? pgr->key : NULL;
	struct pgr_piece all[1 + PGR_IOV_MAX];
	unsigned int count = 1;
	int code;

	if (key && pieces) { /* the check wants the data in one piece */
		size_t used = 0;

		for (unsigned int i = 0; i < pieces; i++) {
			memcpy(pgr->scratch + used, data[i].base, data[i].bytes);
			used += data[i].bytes;
		}
		all[count++] = (struct pgr_piece){pgr->scratch, used};
	} else {
		for (unsigned int i = 0; i < pieces; i++)
			all[count++] = data[i];
	}
	all[0] = (struct pgr_piece){room, pgr_packet_write(head, cookie, key, pgr->scratch, room)};
	code = pgr->wire->ops->send(pgr->wire, to, all, count, more);
	if (key && pieces)
		pgr_flush_callers_data(pgr); /* the next one wants the scratch */
	return code;
}

int pgr_send(struct pgr *pgr, const struct pgr_to *to, const struct pgr_header *head, uint64_t cookie,
	     const struct pgr_piece *data, unsigned int pieces, bool more)
{
	struct pgr_piece all[1 + PGR_IOV_MAX];

	if (PGR_UNLIKELY(!pgr->here))
		return 0; /* what went on behind a continuation that forked */
	pgr->stats.packets_sent++;
	pgr->holding |= more;
	if (PGR_UNLIKELY(cookie || pgr->has_key || PGR_OWN_ORDER || (pgr->off & PGR_OFF_TEMPLATES)))
		return send_with_extensions(pgr, to, head, cookie, data, pieces, more);
	all[0] = (struct pgr_piece){head, sizeof(*head)};
	for (unsigned int i = 0; i < pieces; i++)
		all[1 + i] = data[i];
	return pgr->wire->ops->send(pgr->wire, to, all, 1 + pieces, more);
}

int pgr_send_line(struct pgr *pgr, const struct pgr_to *to, const struct pgr_line *line, uint64_t cookie,
		  const struct pgr_piece *data, unsigned int pieces, bool more)
{
	struct pgr_piece all[1 + PGR_IOV_MAX];
	struct pgr_header head;

	if (PGR_UNLIKELY(!pgr->here))
		return 0;
	if (PGR_UNLIKELY(cookie || pgr->has_key || (pgr->off & PGR_OFF_TEMPLATES))) {
		memcpy(&head, line, sizeof(head));
		pgr_le_header(&head, &head);
		return pgr_send(pgr, to, &head, cookie, data, pieces, more);
	}
	pgr->stats.packets_sent++;
	pgr->holding |= more;
	all[0] = (struct pgr_piece){line, sizeof(*line)};
	for (unsigned int i = 0; i < pieces; i++)
		all[1 + i] = data[i];
	return pgr->wire->ops->send(pgr->wire, to, all, 1 + pieces, more);
}

void pgr_flush(struct pgr *pgr)
{
	if (PGR_UNLIKELY(!pgr->here))
		return;
	pgr->wire->ops->flush(pgr->wire);
	pgr->holding = false;
}

/* ---- credits ---- */

/*
 * Flow control. A receiver can hold window_packets that it has not read yet. It shares them out among those
 * who sent lately, and says so in each packet that it sends; one credit is left to each however many they
 * are.
 */
static uint16_t window_part(uint32_t window, uint32_t among)
{
	const uint32_t each = window / (among ? among : 1);

	return (uint16_t)(each < 1 ? 1 : each > PGR_CREDITS_MAX ? PGR_CREDITS_MAX : each);
}

/* Who shares changes rarely; dividing at each packet would be felt. */
void pgr_credits_divide(struct pgr *pgr)
{
	pgr->grant_to_clients = window_part(pgr->wire->window_packets, pgr->clients_active);
	pgr->grant_to_servers = window_part(pgr->wire->window_packets, pgr->busy_count);
}

void pgr_credits_renew(struct pgr *pgr)
{
	pgr->clients_active = pgr->clients_counted;
	pgr->clients_counted = 0;
	pgr->period++;
	pgr_credits_divide(pgr);
}
