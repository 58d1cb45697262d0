/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control. A receiver can hold window_packets that it has not read yet. It shares them out among those
 * who sent lately, and says so in each packet that it sends; one credit is left to each however many they
 * are.
 */
#include "engine.h"

static uint16_t share(uint32_t window, uint32_t among)
{
	const uint32_t each = window / (among ? among : 1);

	return (uint16_t)(each < 1 ? 1 : each > PGR_CREDITS_MAX ? PGR_CREDITS_MAX : each);
}

/* Who shares changes rarely; dividing at each packet would be felt. */
void pgr_credits_divide(struct pgr *pgr)
{
	pgr->grant_to_clients = share(pgr->wire->window_packets, pgr->clients_active);
	pgr->grant_to_servers = share(pgr->wire->window_packets, pgr->busy_count);
}

void pgr_credits_renew(struct pgr *pgr)
{
	pgr->clients_active = pgr->clients_counted;
	pgr->clients_counted = 0;
	pgr->period++;
	pgr_credits_divide(pgr);
}
